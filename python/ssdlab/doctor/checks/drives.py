"""Drive models: which have power-loss protection, and how much flash they contain.

Sources: the makers' data sheets of these families ("power-loss protection", "enhanced power-loss
data protection"); the flash of the 850 Pro and the 840 Pro from a published overprovisioning
test. A model that is not listed may be protected too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.spare import SECTOR, SpareArea

GIB: Final = 1 << 30

_PROTECTED: Final = re.compile(
    r"MICRON[_ ]5[1-4]00"
    r"|MTFDD\w*(?:TBY|TCB|TCC|TDC|TDD|TDS|TDT|TGA|TGB)"
    r"|SSDSC[12](?:B[ABX]|K[BG])\w+"  # Intel DC S3500 to S4620; BW, CW, KW are client drives
    r"|SOLIDIGM.*S4[56]"
    r"|(?:PM|SM)(?:863|883|893|897)A?\b|MZ7(?:LM|KM|LH|KH|L3)\w+"
    r"|NYTRO|XA\d{3,4}(?:LE|ME)\d+"
    r"|KINGSTON SEDC(?:500|600)|HK4R|THNSN8",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Flash:
    """The total flash of a drive in bytes; `why` is the source of the number."""

    size_bytes: int
    why: str


_KNOWN: Final = (
    (re.compile(r"850 PRO 128", re.IGNORECASE), SpareArea(129 * GIB, 128 * 10**9)),
    (re.compile(r"840 PRO.*512", re.IGNORECASE), SpareArea(512 * GIB, 1_000_215_216 * SECTOR)),
)


def is_protected(model: str | None) -> bool:
    """Whether this model's data sheet lists capacitors that protect its write cache."""
    return bool(model and _PROTECTED.search(model))


def published(model: str | None) -> SpareArea | None:
    """Flash and visible capacity of a model from a published test; None for other models."""
    return next((area for pattern, area in _KNOWN if model and pattern.search(model)), None)


def flash_of(model: str | None, size_bytes: int) -> Flash:
    """The total flash of a drive: as published, else the next power of two GiB.

    Most drives whose dies have a power-of-two size have that much; those with other dies have more.
    """
    known = published(model)
    if known is not None and known.flash >= size_bytes:
        return Flash(known.flash, "from a published test of this model")
    flash = GIB
    while flash < size_bytes:
        flash *= 2
    return Flash(flash, "estimated: the next power of two above its capacity")

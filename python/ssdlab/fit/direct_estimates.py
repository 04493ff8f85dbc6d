"""What an experiment's own inference tells of a profile: chunk, dies, memories, spare, promises.

These numbers are not searched for. Chunk and units are exact. Buffer and spare come with the bias
of the experiment that finds them (what collection keeps in reserve is never seen): the candidate
is asked by the same experiment, and what it hides from that is what the drive hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import describe_twin
from ssdlab.errors import TargetError, UsageError
from ssdlab.fit.measured import Measured
from ssdlab.fit.objective import CAPACITY, buffer_and_rate, hidden_spare
from ssdlab.profiles.toml_edit import number, with_number, without
from ssdlab.records import Finding
from ssdlab.units import parse_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SLC: Final = "slc.size"
DOUBLINGS: Final = 8
"""Of a buffer that is too small for the pages of so many dies."""
SURE: Final = 1.25
"""A number whose bounds lie farther apart than this is not determined."""
_PROMISES: Final = {
    "protected": {"buffer.power_loss_protection": True, "buffer.honours_flush": True},
    "volatile": {"buffer.power_loss_protection": False, "buffer.honours_flush": True},
    "ignores flush": {"buffer.power_loss_protection": False, "buffer.honours_flush": False},
}


@dataclass(frozen=True)
class Inferred:
    """A number of the profile with its bounds, in the profile's own words."""

    key: str
    value: Any
    low: Any
    high: Any
    told: bool = True


def begin(profile: str, results: Sequence[Measured]) -> Iterator[Inferred]:
    """What the search begins with.

    Chunk and dies of a regular stripe, the buffer as it was seen, that there is no SLC cache, what
    a write cache promises.
    """
    for each in results:
        chunk, units = each.number("chunk_kib"), each.number("units")
        if each.experiment == "stripe" and chunk is not None and units is not None:
            yield _exactly("ftl.chunk", f"{chunk:g} KiB")
            yield from _dies(profile, int(units), each.where)
        if (buffer := each.number("buffer_mib")) is not None:
            yield _exactly("buffer.size", f"{round(buffer * MIB / KIB)} KiB")
        if _has_no_slc(each) and number(profile, SLC) is not None:
            yield _exactly(SLC, None)
        if each.experiment == "fsync":
            for key, value in _PROMISES.get(each.word("class") or "", {}).items():
                yield _exactly(key, value)


def _has_no_slc(results: Measured) -> bool:
    """Whether writes were seen to fall to their lasting rate without an SLC cache's doing."""
    fell = results.experiment == "cache" and results.number("lasting_mib_per_s") is not None
    return fell and "slc_mib" in results.findings and results.number("slc_mib") is None


def _dies(profile: str, units: int, where: str) -> Iterator[Inferred]:
    channels = number(profile, "flash.channels")
    if not isinstance(channels, int) or units < 1:
        raise UsageError(f"{where}: {units} units cannot be dies of the profile to start from")
    fits = max(each for each in range(1, min(channels, units) + 1) if units % each == 0)
    if fits != channels:
        yield _exactly("flash.channels", fits)
    yield _exactly("flash.dies_per_channel", units // fits)


def _exactly(key: str, value: Any) -> Inferred:
    return Inferred(key, value, value, value)


def applied(profile: str, found: Sequence[Inferred], source: str) -> str:
    """The text with these numbers; what is so already keeps its source.

    A buffer that is too small for the dies is doubled until it is not.

    Raises:
        UsageError: the profile and the numbers do not go together.
    """
    for each in found:
        if number(profile, each.key) == each.value:
            continue
        if each.key == SLC and each.value is None:
            profile = without(profile, "slc")  # its times mean nothing without it
        else:
            profile = with_number(profile, each.key, each.value, source)
    return _buffered(profile, source)


def _buffered(profile: str, source: str) -> str:
    for _ in range(DOUBLINGS):
        try:
            size = describe_twin("the profile", profile)["buffer_bytes"]
            describe_twin("the candidate", profile, CAPACITY)
        except TargetError as error:
            if "buffer.size" not in str(error):
                raise
            size = _bytes(str(number(profile, "buffer.size")))
            profile = with_number(profile, "buffer.size", f"{2 * size // KIB} KiB", source)
        else:
            assert size > 0, "a twin has a buffer"
            return profile
    raise UsageError("buffer.size: is too small for so many dies; give another profile to start")


def _bytes(text: str) -> int:
    return parse_size(text)


def refined(profile: str, results: Sequence[Measured]) -> list[Inferred]:
    """Spare and buffer, by asking the candidate as the drive was asked.

    Raises:
        TargetError: the drive cannot be a twin with such numbers.
    """
    found: list[Inferred] = []
    for each in results:
        refine = _REFINED.get(each.experiment)
        if refine is not None:
            found += refine(profile, each)
    return found


def _spare(profile: str, results: Measured) -> list[Inferred]:
    """Flash that takes data is seen; superblocks held back by collection come on top.

    How large the drive's superblocks are is not known: as large as the candidate's, half of that
    and twice as large give the bounds.
    """
    seen = results.findings.get("hidden_spare")
    if seen is None or results.number("hidden_spare") is None:
        return []
    visible = results.parameters.get("drive_mib") or results.parameters.get("region_mib") or 0
    visible = int(visible * MIB) or describe_twin("the candidate", profile)["capacity_bytes"]
    held = _held(profile)
    built = describe_twin("the candidate", profile, max(visible, CAPACITY))
    # Of a smaller drive blocks are smaller.
    size = float(built["superblock_bytes"]) * min(1.0, visible / CAPACITY)

    def spare(percent: float, superblocks: float) -> float:
        flash: float = visible / (1 - percent / 100) + superblocks * size
        return round(1 - visible / flash, 4)

    low, high = _ends(seen)
    assert isinstance(seen.value, float | int)
    bounds = spare(low, held / 2), spare(high, 2 * held)
    value = spare(seen.value, held)
    return [Inferred("ftl.spare", value, *bounds, told=bounds[1] / bounds[0] <= SURE)]


def _held(profile: str) -> float:
    """Superblocks of the candidate that its own measurement does not see."""
    built = describe_twin("the candidate", profile, CAPACITY)
    found = hidden_spare(profile).findings.get("hidden_spare")
    if found is None or not isinstance(found.value, float):
        return 0.0
    hidden = float(built["flash_bytes"]) - CAPACITY / (1 - found.value / 100)
    return max(0.0, hidden / float(built["superblock_bytes"]))


def _buffer(profile: str, results: Measured) -> list[Inferred]:
    """The size, with what the candidate hides of its own; and that of an SLC cache."""
    found = list(_slc(profile, results))
    seen = results.findings.get("buffer_mib")
    if seen is None or results.number("buffer_mib") is None:
        return found
    here = _bytes(str(number(profile, "buffer.size"))) / KIB
    answer = buffer_and_rate(profile).findings.get("buffer_mib")
    shown = answer.value if answer is not None and isinstance(answer.value, float) else None
    hidden = max(0.0, here - shown * KIB) if shown else 0.0  # in pages that are being filled
    assert isinstance(seen.value, float | int)
    value, low, high = (f"{round(x * KIB + hidden)} KiB" for x in (seen.value, *_ends(seen)))
    return [*found, Inferred("buffer.size", value, low, high)]


def _slc(profile: str, results: Measured) -> Iterator[Inferred]:
    """The cache's size, where the profile to start from has one."""
    size = results.number("slc_mib")
    if size is not None and number(profile, SLC) is not None:
        ends = _ends(results.findings["slc_mib"])
        value, low, high = (f"{round(each)} MiB" for each in (size, *ends))
        yield Inferred(SLC, value, low, high)


def _ends(finding: Finding) -> tuple[float, float]:
    assert isinstance(finding.value, float | int)
    low = finding.value if finding.low is None else finding.low
    return low, finding.value if finding.high is None else finding.high


_REFINED: Final[dict[str, Callable[[str, Measured], list[Inferred]]]] = {
    "cache": _buffer,
    "steady": _spare,
}

"""What is declared of each layer and what the kernel counted as sent: observations of a course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from ssdlab.runner.session import RunSession
from ssdlab.storage_stack.blockdev import BlockDevice, device_by_name
from ssdlab.storage_stack.trim import TrimLayer, blocking_layer, discarded_bytes, used_bytes

MIB: Final = 1 << 20
_VALUES: Final = {"yes": 1.0, "no": 0.0, "unknown": None}


def tell(session: RunSession, rows: Sequence[TrimLayer]) -> None:
    """Observes `passes` for each layer, and `stops` for the layer that says it lets none through.

    A layer's detail is JSON with the fields of `TrimLayer`.
    """
    for row in rows:
        detail = msgspec.json.encode(msgspec.structs.asdict(row)).decode()
        session.observe("passes", _VALUES[row.passes], detail)
    stops = blocking_layer(rows)
    if stops is not None:
        session.observe("stops", detail=f"{stops.device} ({stops.layer})")


def devices_of(rows: Sequence[TrimLayer]) -> list[BlockDevice]:
    """The devices of the rows down to a loop device; below that its file stands between."""
    names = [row.device for row in rows if not row.below_file]
    return [found for name in names if (found := device_by_name(name)) is not None]


def bottom_of(rows: Sequence[TrimLayer]) -> list[str]:
    """Names of the drives among the rows; a loop device counts as one."""
    kinds = {"drive", "USB", "loop"}
    return [row.device for row in rows if row.layer in kinds and not row.below_file]


@dataclass
class Meters:
    """What devices counted before something was asked of them; sizes in bytes."""

    devices: list[BlockDevice]
    drives: list[str]
    _before: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Reads them."""
        self._before = self._read()

    def _read(self) -> dict[str, int]:
        counts = {device.name: discarded_bytes(device) for device in self.devices}
        return {name: count for name, count in counts.items() if count is not None}

    def sent(self) -> dict[str, int]:
        """Bytes discarded since, by device, from the top down."""
        return {name: count - self._before[name] for name, count in self._read().items()}

    def drives_got(self, size_bytes: int) -> bool:
        """Whether the drives together were sent that much."""
        sent = self.sent()
        return sum(sent.get(name, 0) for name in self.drives) >= size_bytes

    def tell(self, session: RunSession) -> None:
        """Observes `sent_mib` for each device, and `sent_drives_mib` for those at the bottom."""
        sent = self.sent()
        for name, size in sent.items():
            session.observe("sent_mib", size / MIB, name)
        drives = [name for name in self.drives if name in sent]
        if drives and len(drives) == len(self.drives):
            whole = sum(sent[name] for name in drives)
            session.observe("sent_drives_mib", whole / MIB, " ".join(drives))

    def tell_used(self, session: RunSession, when: str) -> None:
        """Observes `used_<when>_mib`: what lies below a device says that it holds for it."""
        for device in self.devices:
            used = used_bytes(device)
            if used is not None:
                session.observe(f"used_{when}_mib", used / MIB, device.name)

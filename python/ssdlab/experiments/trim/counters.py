"""Records what each layer declares, and the discards that the kernel counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from ssdlab.runner.session import RunSession
from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.blockdev import BlockDevice, device_by_name
from ssdlab.storage_stack.trim.devices import discarded_bytes, used_bytes
from ssdlab.storage_stack.trim.stack import blocking_layer

MIB: Final = 1 << 20
_VALUES: Final = {"yes": 1.0, "no": 0.0, "unknown": None}


def record_declared(session: RunSession, layers: Sequence[TrimLayer]) -> None:
    """Records `passes` for each layer, and as `stops` the first that declares no discards.

    The detail of a layer is JSON with the fields of `TrimLayer`.
    """
    for layer in layers:
        detail = msgspec.json.encode(msgspec.structs.asdict(layer)).decode()
        session.observe("passes", _VALUES[layer.passes], detail)
    stops = blocking_layer(layers)
    if stops is not None:
        session.observe("stops", detail=f"{stops.device} ({stops.layer})")


def devices_of(layers: Sequence[TrimLayer]) -> list[BlockDevice]:
    """The devices of the layers, down to a loop device but not below its backing file."""
    names = [layer.device for layer in layers if not layer.below_file]
    return [device for name in names if (device := device_by_name(name)) is not None]


def drives_of(layers: Sequence[TrimLayer]) -> list[str]:
    """Names of the drives among the layers; a loop device counts as a drive."""
    kinds = {"drive", "USB", "loop"}
    return [layer.device for layer in layers if layer.layer in kinds and not layer.below_file]


@dataclass
class DiscardCounters:
    """Counts the bytes discarded on devices since this object was created."""

    devices: list[BlockDevice]
    drives: list[str]
    _before: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Reads the start values."""
        self._before = self._read()

    def _read(self) -> dict[str, int]:
        counts = {device.name: discarded_bytes(device) for device in self.devices}
        return {name: count for name, count in counts.items() if count is not None}

    def sent(self) -> dict[str, int]:
        """Bytes discarded on each device, from the top layer down."""
        return {name: count - self._before[name] for name, count in self._read().items()}

    def drives_received(self, size_bytes: int) -> bool:
        """Whether the drives together received discards of at least this many bytes."""
        sent = self.sent()
        return sum(sent.get(name, 0) for name in self.drives) >= size_bytes

    def record_sent(self, session: RunSession) -> None:
        """Records `sent_mib` for each device, and `sent_drives_mib` if all drives have counters."""
        sent = self.sent()
        for name, size in sent.items():
            session.observe("sent_mib", size / MIB, name)
        drives = [name for name in self.drives if name in sent]
        if drives and len(drives) == len(self.drives):
            total = sum(sent[name] for name in drives)
            session.observe("sent_drives_mib", total / MIB, " ".join(drives))

    def record_used(self, session: RunSession, when: str) -> None:
        """Records `used_<when>_mib`: the space in use below each device, as reported there."""
        for device in self.devices:
            used = used_bytes(device)
            if used is not None:
                session.observe(f"used_{when}_mib", used / MIB, device.name)

"""Lists a run's target, parameters and provenance as table rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ssdlab.records import Manifest, Run
from ssdlab.units import format_size
from ssdlab.wording import UNKNOWN, format_number, label, plain, quantity

_FIO: Final = "results of fio"
"""The kind of device of a run that was read from results of fio."""

_LABELS: Final = {
    "fs_type": "File system",
    "options": "Mount options",
    "mount_point": "Mounted at",
    "capacity_bytes": "Capacity",
    "size_bytes": "Size",
    "flash_bytes": "All flash",
    "spare": "Spare (of all flash)",
    "dies": "Dies",
    "planes": "Planes per die",
    "page_bytes": "Flash page",
    "chunk_bytes": "Chunk (contiguous on one die)",
    "stripe_bytes": "Stripe (one chunk on each die)",
    "superblock_bytes": "Superblock",
    "buffer_bytes": "Write buffer",
    "slc_bytes": "SLC cache",
    "power_loss_protection": "Protected against power loss",
    "write_cache": "Write cache",
    "rotational": "Rotating disk, per the kernel",
    "link_mib_per_s": "Link, each direction",
}
_DECIMAL_SIZES: Final = {"capacity_bytes", "size_bytes"}


@dataclass(frozen=True)
class Row:
    """A label with its value; a row without a value is a heading for the rows below it."""

    label: str
    value: str | None


def target_rows(run: Run) -> list[Row]:
    """The identity of the drive, file system or twin that was measured."""
    return list(_rows(run.manifest.device))


def parameter_rows(run: Run, known: Mapping[str, str]) -> list[Row]:
    """The run's parameters, under the labels of its experiment."""
    parameters = run.manifest.parameters
    return [Row(label(key, known), quantity(key, value)) for key, value in parameters.items()]


def provenance_rows(run: Run) -> list[Row]:
    """The versions, seed, clock and host, which are needed to judge or repeat the run."""
    manifest = run.manifest
    versions = ", ".join(f"{name} {text}" for name, text in manifest.versions.items())
    rows = [
        Row("Run", plain(manifest.run)),
        Row("Started", started(manifest)),
        Row("Took", took(run)),
        Row("Ended", plain(manifest.outcome)),
        Row("ssdlab", plain(manifest.ssdlab)),
        Row("Versions", plain(versions) or UNKNOWN),
        Row("Seed", str(manifest.seed)),
        Row("Clock", "virtual: the twin's own" if manifest.virtual else "the measuring machine's"),
    ]
    return rows + [Row(f"Host: {row.label.lower()}", row.value) for row in _rows(manifest.host)]


def summary(run: Run) -> str:
    """The target in one line: "Toshiba XG5 KXG50ZNV512G, nvme, 477 GiB, spare 6.9 %"."""
    device = run.manifest.device
    drives = device.get("drives")
    members = drives if isinstance(drives, list) else []
    parts = [_brief(one) for one in (device, *members) if isinstance(one, Mapping)]
    unknown = f"{_FIO}, which name no drive" if device.get("kind") == _FIO else UNKNOWN
    return "; ".join(part for part in parts if part) or unknown


def started(manifest: Manifest) -> str:
    """Start time in UTC: "2026-11-21 10:15:00 UTC"; an invalid time is returned unchanged."""
    try:
        when = datetime.fromisoformat(manifest.started)
    except ValueError:
        return plain(manifest.started)
    return f"{when.astimezone(UTC) if when.tzinfo else when:%Y-%m-%d %H:%M:%S} UTC"


def took(run: Run) -> str:
    """The duration of the run, with its unit."""
    return quantity("duration_s", run.result.duration_s)


def when(run: Run) -> str:
    """Start, duration and seed in one phrase; other programs' results have no seed."""
    seed = "" if run.manifest.device.get("kind") == _FIO else f", seed {run.manifest.seed}"
    return f"{started(run.manifest)}, took {took(run)}{seed}"


def _brief(device: Mapping[str, Any]) -> str:
    """Model, interface, size and spare in one phrase."""
    words = [device.get(key) for key in ("vendor", "model", "fs_type")]
    size = device.get("capacity_bytes", device.get("size_bytes"))
    spare = device.get("spare")
    parts = [
        plain(" ".join(str(word) for word in words if word)),
        plain(device.get("interface") or device.get("transport") or ""),
        format_size(size) if _is_number(size) else "",
        f"spare {_percent(spare)}" if spare is not None and _is_number(spare) else "",
    ]
    return ", ".join(part for part in parts if part)


def _rows(record: Mapping[str, Any]) -> Iterator[Row]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield Row(label(key, _LABELS), None)
            yield from _rows(value)
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            for at, item in enumerate(value, 1):
                count = f" {at} of {len(value)}" if len(value) > 1 else ""
                yield Row(f"{label(key).removesuffix('s')}{count}", None)
                yield from _rows(item)
        else:
            yield Row(label(key, _LABELS), _value(key, value))


def _value(key: str, value: Any) -> str:
    if key == "spare" and _is_number(value):
        return _percent(value)
    if key in _DECIMAL_SIZES and _is_number(value):
        return f"{format_size(value)} ({value / 1e9:.4g} GB)"
    return quantity(key, value)


def _percent(fraction: float) -> str:
    return f"{format_number(round(fraction * 100, 1))} %"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Controls: did the software flush at all, and was the power really lost?

A drive is blamed last. Before it come a kernel that was told that the drive has no cache, a file
system without barriers, a machine that was reset and kept its standby power.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ssdlab.storage_stack.blockdev import SYS, BlockDevice, device_at, is_block_device
from ssdlab.storage_stack.device_warnings import device_warnings
from ssdlab.storage_stack.filesystem import mount_warnings
from ssdlab.storage_stack.layers import Layer, devices_of_mount, layers_under
from ssdlab.storage_stack.mounts import PROC, mount_of
from ssdlab.storage_stack.pseudofile import read_text
from ssdlab.witness.nbd import SCHEMES

Run = Callable[[list[str]], str | None]
ATA_UNSAFE: Final = (174, 192)
"""SMART attributes that count unexpected power losses: unexpected loss, power-off retract."""
ATA_CYCLES: Final = 12
_SOFTWARE: Final = frozenset({"no-barrier", "memory", "network", "pseudo"})
"""Doubts under which a flush does not reach a drive."""
_FLUSH_FIELD: Final = 15
"""Of /sys/block/*/stat: flush requests completed (Documentation/block/stat.rst)."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the power was lost between two looks.

    "measured": the drive counted one unsafe shutdown. "attested": somebody says so. "none": nothing
    tells. "contradicted": what was measured says that it was not.
    """

    level: Literal["measured", "attested", "none", "contradicted"]
    sentence: str

    @property
    def counts(self) -> bool:
        """Whether a cut with this proof is one."""
        return self.level in {"measured", "attested"}


def describe(target: str, run: Run | None = None) -> dict[str, Any]:
    """What must be known of a target before and after a cut, as JSON has it.

    Keys: host, kernel, boot_id, software (sentences: why no flush would arrive), doubts, drives.
    """
    known: dict[str, Any] = {
        "host": platform.node(),
        "kernel": platform.release(),
        "boot_id": read_text(PROC / "sys/kernel/random/boot_id"),
        "software": [],
        "doubts": [],
        "drives": [],
    }
    if target.startswith(SCHEMES):
        return known
    path = Path(target)
    mount = None if is_block_device(path) else mount_of(path)
    if mount is not None:
        found = mount_warnings(mount)
        known["software"] += [doubt.sentence for doubt in found if doubt.code in _SOFTWARE]
        known["doubts"] += [doubt.sentence for doubt in found if doubt.code not in _SOFTWARE]
    tops = (device_at(path),) if mount is None else devices_of_mount(mount)
    layers = [layer for top in tops for layer in layers_under(top)]
    for layer in layers:
        known["doubts"] += [doubt.sentence for doubt in device_warnings(layer.device)]
        drive = _drive(layer.device, run or _run) if layer.is_drive else None
        if drive is not None:
            known["drives"].append(drive)
        known["software"] += _dropped(layer, drive)
    return known


def proof(before: dict[str, Any], after: dict[str, Any], *, attested: bool) -> Proof:
    """Whether the power was lost between two descriptions.

    A drive's own count decides; where there is none, a boot id that did not change says that the
    machine, at least, went on.
    """
    counted = _counted(before, after)
    if counted is not None:
        name, more = counted
        if more == 1:
            return Proof("measured", f"{name} counted one unsafe shutdown more: its power was lost")
        if more == 0:
            sentence = f"{name} counted no unsafe shutdown: it kept its power, nothing was tested"
            return Proof("contradicted", sentence)
        sentence = f"{name} counted {more} unsafe shutdowns: verify after each cut"
        return Proof("attested" if attested else "none", sentence)
    if attested:
        return Proof("attested", "that the power was cut is known from whoever ran this")
    if before.get("boot_id") == after.get("boot_id"):
        sentence = "the machine has not booted since, and no drive tells of lost power"
        return Proof("none", sentence)
    sentence = "the machine has booted since; that its drive lost power, nothing tells"
    return Proof("none", sentence)


def flush_count(target: str, sys: Path = SYS) -> int | None:
    """Flush requests that the target's drives have completed; None where that is not counted."""
    if target.startswith(SCHEMES):
        return None
    path = Path(target)
    tops = (device_at(path, sys),) if is_block_device(path) else devices_of_mount(mount_of(path))
    drives = {
        layer.device.whole_disk: layer.device
        for top in tops
        for layer in layers_under(top, sys)
        if layer.is_drive and layer.device.transport != "loop"
    }
    counts = []
    for name in drives:
        fields = (read_text(sys / "block" / name / "stat") or "").split()
        if len(fields) <= _FLUSH_FIELD:
            return None
        counts.append(int(fields[_FLUSH_FIELD]))
    return sum(counts) if counts else None


def _dropped(layer: Layer, drive: dict[str, Any] | None) -> list[str]:
    """Why the kernel sends this device no flush."""
    device = layer.device
    if device.write_cache != "write through":
        return []
    cached = None if drive is None else drive["volatile_cache"]
    if cached is False:
        return []  # the drive says that it has no volatile cache: there is nothing to flush
    known = "though the drive says that it has one" if cached else "and the drive was not asked"
    believed = "the kernel believes that it has no volatile cache (queue/write_cache)"
    return [f"{device.name}: {believed}, {known}: no flush is sent"]


def _counted(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, int] | None:
    """The drive that counts unsafe shutdowns, and how many more they are now."""
    earlier = {each["serial"] or each["name"]: each for each in before.get("drives", ())}
    for each in after.get("drives", ()):
        was = earlier.get(each["serial"] or each["name"], {}).get("unsafe_shutdowns")
        if was is not None and each["unsafe_shutdowns"] is not None:
            return each["name"], each["unsafe_shutdowns"] - was
    return None


def _drive(device: BlockDevice, run: Run) -> dict[str, Any]:
    """Counters and identity of a drive, as far as its tools are here."""
    node = str(device.node)
    found: dict[str, Any] = {
        "name": device.name,
        "model": device.model,
        "serial": device.serial,
        "write_cache": device.write_cache,
        "unsafe_shutdowns": None,
        "power_cycles": None,
        "volatile_cache": None,
    }
    if device.transport.startswith("nvme"):  # over a network, too
        log = _json(run(["nvme", "smart-log", "--output-format=json", node]))
        identity = _json(run(["nvme", "id-ctrl", "--output-format=json", node]))
        found["unsafe_shutdowns"] = _count(log.get("unsafe_shutdowns"))
        found["power_cycles"] = _count(log.get("power_cycles"))
        if "vwc" in identity:
            found["volatile_cache"] = bool(identity["vwc"] & 1)
    if found["unsafe_shutdowns"] is None:
        found.update(_smartctl(_json(run(["smartctl", "--json", "--all", node]))))
    return found


def _count(value: Any) -> int | None:
    """A counter of 128 bits: nvme-cli before and after 2.3 prints a number, 2.3 itself a text."""
    return int(value) if str(value).isdecimal() else None


def _smartctl(report: dict[str, Any]) -> dict[str, Any]:
    """The counters of smartctl's JSON, of NVMe and ATA drives."""
    log = report.get("nvme_smart_health_information_log", {})
    table = report.get("ata_smart_attributes", {}).get("table", [])
    raw = {row["id"]: row["raw"]["value"] for row in table}
    unsafe = log.get("unsafe_shutdowns")
    for number in ATA_UNSAFE:
        unsafe = raw.get(number) if unsafe is None else unsafe
    return {
        "unsafe_shutdowns": unsafe,
        "power_cycles": report.get("power_cycle_count", raw.get(ATA_CYCLES)),
    }


def _json(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _run(command: list[str]) -> str | None:
    """A tool's output; None where it is missing or hangs. Its status may tell of an old error."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout

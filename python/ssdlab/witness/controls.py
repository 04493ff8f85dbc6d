"""Controls: did the software send flushes, and did the drive lose power?

Before the drive is blamed, these must be ruled out: a kernel that believes that the drive has no
volatile cache, a file system without barriers, and a reset during which the drive kept its power.
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
from ssdlab.witness.limits import NBD_SCHEMES

RunTool = Callable[[list[str]], str | None]
ATA_UNSAFE: Final = (174, 192)
"""SMART attributes that count unexpected power losses: unexpected loss, power-off retract."""
ATA_CYCLES: Final = 12
_FLUSH_BLOCKERS: Final = frozenset({"no-barrier", "memory", "network", "pseudo"})
"""Codes of the mount warnings with which a flush does not reach a drive."""
_FLUSH_FIELD: Final = 15
"""Field of /sys/block/*/stat with the completed flush requests (Documentation/block/stat.rst)."""


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """Evidence that the drive lost power between two descriptions.

    level: "measured" (the drive counted one unsafe shutdown), "attested" (the user says so),
    "none" (no evidence), "contradicted" (the drive counted no unsafe shutdown).
    """

    level: Literal["measured", "attested", "none", "contradicted"]
    sentence: str

    @property
    def counts(self) -> bool:
        """Whether a verification with this evidence counts as a cut."""
        return self.level in {"measured", "attested"}


def describe(target: str, run_tool: RunTool | None = None) -> dict[str, Any]:
    """The state of a target's software and drives, to compare before and after a cut.

    Keys: host, kernel, boot_id, software (sentences: why no flush reaches the drive), doubts
    (sentences: other warnings), drives (counters and identity).
    """
    state: dict[str, Any] = {
        "host": platform.node(),
        "kernel": platform.release(),
        "boot_id": read_text(PROC / "sys/kernel/random/boot_id"),
        "software": [],
        "doubts": [],
        "drives": [],
    }
    if target.startswith(NBD_SCHEMES):
        return state
    path = Path(target)
    mount = None if is_block_device(path) else mount_of(path)
    if mount is not None:
        for warning in mount_warnings(mount):
            key = "software" if warning.code in _FLUSH_BLOCKERS else "doubts"
            state[key].append(warning.sentence)
    tops = (device_at(path),) if mount is None else devices_of_mount(mount)
    for layer in (layer for top in tops for layer in layers_under(top)):
        state["doubts"] += [warning.sentence for warning in device_warnings(layer.device)]
        drive = _drive_state(layer.device, run_tool or _run_tool) if layer.is_drive else None
        if drive is not None:
            state["drives"].append(drive)
        state["software"] += _suppressed_flushes(layer, drive)
    return state


def power_loss(before: dict[str, Any], after: dict[str, Any], *, attested: bool) -> PowerLoss:
    """Evidence for a power loss between two results of `describe`.

    The drive's count of unsafe shutdowns decides. Without such a count, an unchanged boot id shows
    at least that the machine kept running.
    """
    counted = _unsafe_shutdowns(before, after)
    if counted is not None:
        name, more = counted
        if more == 1:
            return PowerLoss("measured", f"{name} counted one more unsafe shutdown: it lost power")
        if more == 0:
            sentence = f"{name} counted no unsafe shutdown: it kept its power, nothing was tested"
            return PowerLoss("contradicted", sentence)
        sentence = f"{name} counted {more} unsafe shutdowns; verify after each cut"
        return PowerLoss("attested" if attested else "none", sentence)
    if attested:
        return PowerLoss("attested", "you stated that the power was cut (--power-was-cut)")
    if before.get("boot_id") == after.get("boot_id"):
        sentence = "the machine has not booted since, and no drive counts unsafe shutdowns"
        return PowerLoss("none", sentence)
    sentence = "the machine has booted since, but nothing shows that the drive lost power"
    return PowerLoss("none", sentence)


def flush_count(target: str, sys: Path = SYS) -> int | None:
    """Flush requests completed by the target's drives; None if the kernel does not count them."""
    if target.startswith(NBD_SCHEMES):
        return None
    path = Path(target)
    tops = (device_at(path, sys),) if is_block_device(path) else devices_of_mount(mount_of(path))
    drives = {
        layer.device.whole_disk
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


def _suppressed_flushes(layer: Layer, drive: dict[str, Any] | None) -> list[str]:
    """Why the kernel sends no flush to this device; empty if it does, or need not."""
    device = layer.device
    if device.write_cache != "write through":
        return []
    has_cache = None if drive is None else drive["volatile_cache"]
    if has_cache is False:
        return []  # the drive reports no volatile cache: there is nothing to flush
    reported = "but the drive reports one" if has_cache else "and the drive could not be queried"
    believed = "the kernel believes that it has no volatile cache (queue/write_cache)"
    return [f"{device.name}: {believed}, {reported}: no flush is sent"]


def _unsafe_shutdowns(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, int] | None:
    """Name of the first drive that counts unsafe shutdowns, and the increase of its counter."""
    earlier = {drive["serial"] or drive["name"]: drive for drive in before.get("drives", ())}
    for drive in after.get("drives", ()):
        count = earlier.get(drive["serial"] or drive["name"], {}).get("unsafe_shutdowns")
        if count is not None and drive["unsafe_shutdowns"] is not None:
            return drive["name"], drive["unsafe_shutdowns"] - count
    return None


def _drive_state(device: BlockDevice, run_tool: RunTool) -> dict[str, Any]:
    """Identity and counters of a drive, from nvme-cli or smartctl if installed."""
    node = str(device.node)
    state: dict[str, Any] = {
        "name": device.name,
        "model": device.model,
        "serial": device.serial,
        "write_cache": device.write_cache,
        "unsafe_shutdowns": None,
        "power_cycles": None,
        "volatile_cache": None,
    }
    if device.transport.startswith("nvme"):  # also over a network
        log = _json(run_tool(["nvme", "smart-log", "--output-format=json", node]))
        identity = _json(run_tool(["nvme", "id-ctrl", "--output-format=json", node]))
        state["unsafe_shutdowns"] = _count(log.get("unsafe_shutdowns"))
        state["power_cycles"] = _count(log.get("power_cycles"))
        if "vwc" in identity:
            state["volatile_cache"] = bool(identity["vwc"] & 1)
    if state["unsafe_shutdowns"] is None:
        state.update(_smartctl(_json(run_tool(["smartctl", "--json", "--all", node]))))
    return state


def _count(value: Any) -> int | None:
    """A 128-bit counter: nvme-cli 2.3 prints a string, versions before and after it a number."""
    return int(value) if str(value).isdecimal() else None


def _smartctl(report: dict[str, Any]) -> dict[str, Any]:
    """The counters in smartctl's JSON, of NVMe and ATA drives."""
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
        decoded = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _run_tool(command: list[str]) -> str | None:
    """Standard output; None if the tool is missing or hangs.

    The exit status is ignored: that of smartctl also reports past errors of the drive.
    """
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout

"""The storage stack of a FreeBSD machine, from the output of the collector script.

Sources: geom(4) and the XML of sysctl kern.geom.confxml (classes DISK, PART, LABEL, ELI, MIRROR,
RAID, ...), diskinfo(8), tunefs(8), ada(4) and da(4) (delete_method), geli(8) (-T: no BIO_DELETE),
zpool-status(8). Tested on recorded output only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from ssdlab.errors import UsageError
from ssdlab.snapshot import Device, Mounted, Pool, Snapshot, Swap, TrimLayer, Unread
from ssdlab.storage_stack.health.report import health_in
from ssdlab.storage_stack.health.smart import Runner, parse_json_object
from ssdlab.storage_stack.zfs import read_pools, read_properties

_KIB: Final = 1024
_LAYERS: Final = {
    "DISK": "drive",
    "PART": "partition",
    "LABEL": "label",
    "ELI": "GELI",
    "MIRROR": "gmirror",
    "RAID": "graid",
    "STRIPE": "gstripe",
    "CONCAT": "gconcat",
    "MULTIPATH": "multipath",
    "NOP": "gnop",
}
_SUPPORT: Final = re.compile(r"^\s*(\S+)\s+# TRIM/UNMAP support$", re.MULTILINE)
_TRANSPORTS: Final = (("nvd", "nvme"), ("nda", "nvme"), ("ada", "sata"), ("vtbd", "virtio"))
_RAID_DRIVERS: Final = ("mfid", "mrsas", "aacd", "amrd", "ips", "twed", "mlyd", "idad")


@dataclass(frozen=True)
class _Provider:
    """A GEOM provider: its class, its own settings, those of its geom, and the ids below."""

    name: str
    kind: str
    size: int | None
    sector: int | None
    stripe: int | None
    settings: dict[str, str]
    below: tuple[str, ...]


def read_freebsd(target: str, run: Runner, *, as_root: bool, kernel: str) -> Snapshot:
    """The snapshot of the target's stack.

    Raises:
        UsageError: the GEOM tree is missing or malformed.
    """
    providers = _providers(run(("sysctl", "-n", "kern.geom.confxml")) or "")
    pools = read_pools(run)
    mounts = _mounts(target, run)
    tops = [name for mount in mounts for name in _tops(mount, providers, pools)]
    if target.startswith("/dev/"):
        name = target.removeprefix("/dev/")
        tops = tops or [providers[name].name if name in providers else name]
    devices = list(_devices(tops, providers, run))
    memory = (run(("sysctl", "-n", "hw.physmem")) or "").strip()
    return Snapshot(
        target=target,
        as_root=as_root,
        kernel=f"FreeBSD {kernel}",
        memory_bytes=int(memory) if memory.isdecimal() else None,
        mounts=tuple(_mounted(m, devices, providers, pools, run) for m in mounts),
        devices=tuple(devices),
        layers=() if mounts else tuple(_device_layer(d, providers[d.name], run) for d in devices),
        swaps=tuple(_swaps(run)),
        unread=tuple(_unread(devices, as_root=as_root)),
    )


def _providers(xml: str) -> dict[str, _Provider]:
    try:
        # Expat 2.4.1 and later limits the expansion of entities.
        mesh = ET.fromstring(xml)  # noqa: S314
    except ET.ParseError as error:
        raise UsageError(
            f"the recording has no GEOM tree ({error}): record again with the script that "
            "`ssdlab doctor --collector freebsd` prints"
        ) from error
    names = {node.get("id", ""): node.findtext("name", "") for node in mesh.iter("provider")}
    found: dict[str, _Provider] = {}
    for kind in mesh.iter("class"):
        for geom in kind.iter("geom"):
            refs = (node.find("provider") for node in geom.findall("consumer"))
            below = tuple(names[ref.get("ref", "")] for ref in refs if ref is not None)
            common = _settings(geom.find("config"))
            for node in geom.findall("provider"):
                provider = _Provider(
                    name=node.findtext("name", ""),
                    kind=kind.findtext("name", ""),
                    size=_int(node.findtext("mediasize")),
                    sector=_int(node.findtext("sectorsize")),
                    stripe=_int(node.findtext("stripesize")),
                    settings={**common, **_settings(node.find("config"))},
                    below=below,
                )
                # nda0 has the alias nvd0, under which it may be mounted
                aliases = (alias.text or "" for alias in node.findall("alias"))
                found |= dict.fromkeys([provider.name, *aliases], provider)
    return found


@dataclass(frozen=True)
class _Mount:
    point: str
    source: str
    kind: str


def _settings(config: ET.Element | None) -> dict[str, str]:
    return {} if config is None else {item.tag: (item.text or "").strip() for item in config}


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _mounts(target: str, run: Runner) -> list[_Mount]:
    """The target's mount; for a device, all mounts on it."""
    rows = [line.split() for line in (run(("mount", "-p")) or "").splitlines()]
    mounts = [_Mount(row[1], row[0], row[2]) for row in rows if len(row) >= 4]
    if target.startswith("/dev/"):
        return [mount for mount in mounts if mount.source.startswith(target)]
    above = [m for m in mounts if Path(target).is_relative_to(m.point)]
    return [max(above, key=lambda m: len(m.point))] if above else []


def _tops(mount: _Mount, providers: dict[str, _Provider], pools: Mapping[str, Pool]) -> list[str]:
    if mount.kind == "zfs":
        pool = pools.get(mount.source.split("/")[0])
        nodes = [] if pool is None else [member.node for member in pool.members]
    else:
        nodes = [mount.source]
    names = [node.removeprefix("/dev/") for node in nodes]
    return [providers[name].name for name in names if name in providers]


def _devices(tops: list[str], providers: dict[str, _Provider], run: Runner) -> Iterator[Device]:
    pending = [(name, 0) for name in tops if name in providers]
    seen: set[str] = set()
    while pending:
        name, depth = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        provider = providers[name]
        yield _device(provider, depth, run)
        pending = [(lower, depth + 1) for lower in provider.below] + pending


def _device(provider: _Provider, depth: int, run: Runner) -> Device:
    is_drive = provider.kind == "DISK"
    node = f"/dev/{provider.name}"
    report = parse_json_object(run(("smartctl", "--json", "-x", node))) if is_drive else None
    rate = provider.settings.get("rotationrate", "")
    is_volume = is_drive and provider.name.startswith(_RAID_DRIVERS)
    return Device(
        name=provider.name,
        node=node,
        layer="RAID controller" if is_volume else _LAYERS.get(provider.kind, provider.kind),
        transport=_transport(provider.name) if is_drive else provider.kind.lower(),
        depth=depth,
        is_drive=is_drive,
        is_partition=provider.kind == "PART",
        below=provider.below,
        size_bytes=provider.size,
        start_bytes=_int(provider.settings.get("offset")),
        model=provider.settings.get("descr") or None,
        serial=provider.settings.get("ident") or None,
        rotational={"0": False, "unknown": None, "": None}.get(rate, True),
        logical_sector_bytes=provider.sector,
        physical_sector_bytes=max(provider.sector or 0, provider.stripe or 0) or None,
        array_level=provider.settings.get("RAIDLevel"),
        array_metadata=provider.settings.get("Metadata") if provider.kind == "RAID" else None,
        controller=provider.name.rstrip("0123456789") if is_volume else None,
        health=None if report is None else health_in(report, node, run),
    )


def _transport(name: str) -> str:
    known = (transport for prefix, transport in _TRANSPORTS if name.startswith(prefix))
    return next(known, "scsi")


def _device_layer(device: Device, provider: _Provider, run: Runner) -> TrimLayer:
    """Whether a provider passes BIO_DELETE."""
    if provider.kind == "DISK":
        text = run(("diskinfo", "-v", device.name)) or ""
        match = _SUPPORT.search(text)
        if match is None:
            return TrimLayer(device.layer, device.name, "unknown", "diskinfo -v does not say")
        method = _delete_method(device.name, run)
        passes = "yes" if match[1] == "Yes" else "no"
        return TrimLayer(
            device.layer, device.name, passes, f"diskinfo -v: TRIM/UNMAP support {match[1]}{method}"
        )
    if provider.kind == "ELI" and "NODELETE" in provider.settings.get("Flags", ""):
        return TrimLayer(device.layer, device.name, "no", "attached with NODELETE (geli -T)")
    if provider.kind in _LAYERS:
        return TrimLayer(device.layer, device.name, "yes", f"GEOM class {provider.kind} passes it")
    why = f"ssdlab does not know GEOM class {provider.kind}"
    return TrimLayer(device.layer, device.name, "unknown", why)


def _delete_method(name: str, run: Runner) -> str:
    match = re.fullmatch(r"(ada|da|nda)(\d+)", name)
    if match is None:
        return ""
    key = f"kern.cam.{match[1]}.{match[2]}.delete_method: "
    lines = (run(("sysctl", "kern.cam")) or "").splitlines()
    return next((f", {line.removeprefix('kern.cam.')}" for line in lines if key in line), "")


def _mounted(
    mount: _Mount,
    devices: list[Device],
    providers: dict[str, _Provider],
    pools: Mapping[str, Pool],
    run: Runner,
) -> Mounted:
    point, source, kind = mount.point, mount.source, mount.kind
    pool = pools.get(source.split("/")[0]) if kind == "zfs" else None
    rows = [line.split() for line in (run(("df", "-k")) or "").splitlines()]
    row = next((row for row in rows if len(row) >= 6 and row[5] == point), None)
    schedule, passes = _schedule(source, kind, pool, run)
    file_system = TrimLayer("file system", point, passes, f"{kind}: {schedule.why}")
    below = [_device_layer(device, providers[device.name], run) for device in devices]
    return Mounted(
        mount_point=point,
        fs_type=kind,
        source=source,
        devices=tuple(device.name for device in devices if not device.depth),
        total_bytes=None if row is None else int(row[1]) * _KIB,
        free_bytes=None if row is None else max(0, int(row[3])) * _KIB,
        pool=pool,
        properties={} if pool is None else read_properties(source, run),
        layers=(
            TrimLayer("schedule", point, schedule.passes, schedule.why),
            file_system,
            *below,
        ),
    )


def _schedule(source: str, kind: str, pool: Pool | None, run: Runner) -> tuple[TrimLayer, str]:
    """What issues TRIM, and whether the file system can send it."""
    if kind == "ufs":
        text = run(("tunefs", "-p", source)) or ""
        match = re.search(r"trim: \(-t\)\s+(\w+)", text)
        if match is None:
            return TrimLayer("schedule", source, "unknown", "tunefs -p needs root"), "unknown"
        is_on = match[1] == "enabled"
        why = f"tunefs -p: trim is {match[1]}"
        return TrimLayer("schedule", source, "yes" if is_on else "no", why), "yes"
    if pool is not None:
        is_on = bool(pool.autotrim)
        why = f"autotrim={'on' if is_on else 'off'} of the pool {pool.name}"
        return TrimLayer("schedule", source, "yes" if is_on else "no", why), "yes"
    why = f"ssdlab does not know whether {kind} discards"
    return TrimLayer("schedule", source, "unknown", why), "unknown"


def _swaps(run: Runner) -> Iterator[Swap]:
    for line in (run(("swapinfo", "-k")) or "").splitlines()[1:]:
        words = line.split()
        if len(words) >= 3 and words[0].startswith("/dev/"):
            yield Swap(words[0], int(words[1]) * _KIB, int(words[2]) * _KIB)


def _unread(devices: list[Device], *, as_root: bool) -> Iterator[Unread]:
    for device in devices:
        if device.is_drive and device.health is None:
            why = "smartctl printed nothing" if as_root else "it takes root"
            yield Unread(f"health of {device.name}", why, f"sudo smartctl -x {device.node}")

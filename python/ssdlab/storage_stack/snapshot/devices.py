"""One block device as a `snapshot.Device`: queue, position in the stack, link, temperature."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ssdlab.snapshot import Device
from ssdlab.storage_stack.blockdev import BlockDevice, directory_of
from ssdlab.storage_stack.health.hardware import (
    best_link_bytes_per_s,
    link_bytes_per_s,
    temperature,
)
from ssdlab.storage_stack.layers import Roots, directly_below, layers_under
from ssdlab.storage_stack.pseudofile import read_int, read_text
from ssdlab.storage_stack.raid import firmware_metadata, volume_of
from ssdlab.storage_stack.resync import component_bytes
from ssdlab.storage_stack.trim.devices import device_layer, used_bytes
from ssdlab.storage_stack.trim.tables import data_starts


def devices_under(tops: Iterable[BlockDevice], roots: Roots) -> list[Device]:
    """`tops` and the devices under them, each once, from the top down; without their health."""
    devices: dict[str, Device] = {}
    for top in tops:
        for layer in layers_under(top, roots.sys, roots.proc):
            if layer.device.name not in devices:
                devices[layer.device.name] = _record(layer.device, roots, layer.depth)
    return list(devices.values())


def _record(device: BlockDevice, roots: Roots, depth: int) -> Device:
    below = directly_below(device, roots.sys, roots.proc)
    directory = directory_of(device, roots.sys)
    whole = directory.parent if device.is_partition else directory
    uuid = read_text(directory / "dm" / "uuid") or ""
    layer = device_layer(device, below, roots).layer
    volume = volume_of(device, roots.sys)
    return Device(
        name=device.name,
        node=str(device.node),
        layer="multipath" if uuid.startswith("mpath-") else layer,
        transport=device.transport,
        depth=depth,
        is_drive=not below,
        is_partition=device.is_partition,
        below=tuple(lower.name for lower in below),
        size_bytes=device.size,
        start_bytes=device.start,
        model=device.model,
        vendor=device.vendor,
        serial=device.serial,
        firmware=device.firmware,
        rotational=device.rotational,
        read_only=device.read_only,
        scheduler=device.scheduler,
        is_multipath=uuid.startswith("mpath-"),
        mapped_name=(mapped := read_text(directory / "dm" / "name")),
        data_starts_bytes=data_starts(roots.tables.get(mapped or "", ())),
        used_bytes=used_bytes(device, roots.sys),
        controller=None if volume is None else volume.driver,
        array_metadata=firmware_metadata(directory, roots.sys),
        array_level=read_text(directory / "md" / "level") if volume is None else volume.level,
        **_queue(device, whole),
        **_kind_specific(directory),
        **_hardware(device, whole, roots),
    )


def _queue(device: BlockDevice, whole: Path) -> dict[str, Any]:
    queue = whole / "queue"
    fua = read_int(queue / "fua")
    return {
        "logical_sector_bytes": device.logical_sector,
        "physical_sector_bytes": device.physical_sector,
        "optimal_io_bytes": read_int(queue / "optimal_io_size") or None,
        "write_cache": device.write_cache,
        "fua": None if fua is None else bool(fua),
        "discard_max_bytes": device.discard_max,
        "discard_max_hw_bytes": read_int(queue / "discard_max_hw_bytes"),
        "discard_granularity_bytes": device.discard_granularity,
        "zoned": None if (zoned := read_text(queue / "zoned")) == "none" else zoned,
        "cache_type": _scsi(whole, "cache_type"),
        "provisioning_mode": _scsi(whole, "provisioning_mode"),
    }


def _scsi(whole: Path, name: str) -> str | None:
    paths = sorted((whole / "device" / "scsi_disk").glob(f"*/{name}"))
    return next(filter(None, map(read_text, paths)), None)


def _kind_specific(directory: Path) -> dict[str, Any]:
    """Attributes of partitions, loop devices and md arrays."""
    direct = read_int(directory / "loop" / "dio")
    return {
        "off_by_bytes": read_int(directory / "alignment_offset"),
        "backing_file": read_text(directory / "loop" / "backing_file"),
        "direct_io": None if direct is None else bool(direct),
        "array_missing": read_int(directory / "md" / "degraded"),
        "array_component_bytes": component_bytes(directory),
        "array_action": read_text(directory / "md" / "sync_action"),
    }


def _hardware(device: BlockDevice, whole: Path, roots: Roots) -> dict[str, Any]:
    if device.is_partition:
        return {}
    sensor = temperature(device, roots.sys)
    return {
        "usb_id": _usb_id(whole) if device.transport == "usb" else None,
        "usb_driver": _usb_driver(whole) if device.transport == "usb" else None,
        "link_bytes_per_s": link_bytes_per_s(device, roots.sys),
        "best_link_bytes_per_s": best_link_bytes_per_s(device, roots.sys),
        "temperature_c": None if sensor is None else sensor.celsius,
        "temperature_limit_c": None if sensor is None else sensor.limit,
    }


def _usb_id(whole: Path) -> str | None:
    """Vendor and product id of the USB bridge: "152d:0578"."""
    for parent in whole.parents:
        vendor, product = read_text(parent / "idVendor"), read_text(parent / "idProduct")
        if vendor and product:
            return f"{vendor}:{product}"
    return None


def _usb_driver(whole: Path) -> str | None:
    """The driver of the USB interface: "uas", or "usb-storage" (one command at a time)."""
    for parent in whole.parents:
        driver = parent / "driver"
        if driver.is_symlink() and driver.readlink().name in {"uas", "usb-storage"}:
            return driver.readlink().name
    return None

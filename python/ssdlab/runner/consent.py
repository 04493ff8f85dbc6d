"""Consent to overwrite a block device: `--destroy-data` checked against what is on the device."""

from __future__ import annotations

from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import BlockDevice, is_block_device
from ssdlab.storage_stack.signatures import signatures
from ssdlab.target import Consent
from ssdlab.units import format_size


def require_consent(target: str, consent: Consent) -> None:
    """Refuses a block device without consent.

    Raises:
        TargetError: `--destroy-data` is missing, or names another device.
    """
    if not consent.given:
        raise TargetError(
            f"{target} is a block device and the test would destroy what is on it; give a "
            "directory on it instead, or add --destroy-data if nothing there is needed"
        )
    if consent.device and not _is_same_device(Path(consent.device), Path(target)):
        raise TargetError(
            f"--destroy-data names {consent.device}, but the target is {target}; give the "
            "device that may be destroyed"
        )


def check_content(path: Path, device: BlockDevice, consent: Consent) -> str:
    """Describes the device and what is on it. A device that holds data must have been named.

    Call this while the device is open exclusively, so that its content cannot change in between.

    Raises:
        TargetError: the device was not named, and has a signature or could not be searched for one.
    """
    description = describe_device(path, device)
    try:
        content = "; ".join(map(str, signatures(device)))
    except TargetError as error:
        if consent.device:
            return f"{description}, whose content is unknown"
        raise TargetError(
            f"{description}: {error}, so it may hold something; if it may be destroyed, give "
            f"--destroy-data={path}"
        ) from error
    if content and not consent.device:
        raise TargetError(
            f"{description} holds {content}; if it may be destroyed, give --destroy-data={path}"
        )
    if content:
        return f"{description}, with {content}"
    return f"{description}, on which no file system was found"


def describe_device(path: Path, device: BlockDevice) -> str:
    """Path, vendor, model, serial number and size of a device, as far as they are known."""
    model = " ".join(word for word in (device.vendor, device.model) if word)
    serial = f"serial {device.serial}" if device.serial else ""
    size = format_size(device.size) if device.size is not None else ""
    details = ", ".join(part for part in (model, serial, size) if part)
    return f"{path} ({details})" if details else str(path)


def _is_same_device(one: Path, other: Path) -> bool:
    """Compares device numbers, so that links to a device count as the device."""
    return is_block_device(one) and one.stat().st_rdev == other.stat().st_rdev

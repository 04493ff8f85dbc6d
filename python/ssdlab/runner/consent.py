"""Whether a block device may be destroyed: what the user typed against what is on it."""

from __future__ import annotations

from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import BlockDevice, is_block_device
from ssdlab.storage_stack.signatures import signatures
from ssdlab.target import Consent
from ssdlab.units import format_size


def require_consent(target: str, consent: Consent) -> None:
    """Refuses a block device that was not given up, or not this one.

    Raises:
        TargetError: `--destroy-data` is missing, or names another device.
    """
    if not consent.given:
        raise TargetError(
            f"{target} is a block device and the test would destroy what is on it; give a "
            "directory on it instead, or add --destroy-data if nothing there is needed"
        )
    if consent.device and not _same(Path(consent.device), Path(target)):
        raise TargetError(
            f"--destroy-data names {consent.device}, but the target is {target}; give the "
            "device that may be destroyed"
        )


def given_up(path: Path, device: BlockDevice, consent: Consent) -> str:
    """What is destroyed, in words. Where anything is on it, it must have been named.

    To be asked while the device is held exclusively: then nobody puts something there meanwhile.

    Raises:
        TargetError: a signature was found, or none could be looked for, and it was not named.
    """
    which = described(path, device)
    try:
        found = "; ".join(map(str, signatures(device)))
    except TargetError as error:
        if consent.device:
            return f"{which}, of which it is not known what it holds"
        raise TargetError(
            f"{which}: {error}, so it may hold something; if it may be destroyed, give "
            f"--destroy-data={path}"
        ) from error
    if found and not consent.device:
        raise TargetError(
            f"{which} holds {found}; if it may be destroyed, give --destroy-data={path}"
        )
    return f"{which}, with {found}" if found else f"{which}, on which no file system was found"


def described(path: Path, device: BlockDevice) -> str:
    """A device for people: path, maker, model, serial number and size, as far as they are known."""
    words = " ".join(word for word in (device.vendor, device.model) if word)
    serial = f"serial {device.serial}" if device.serial else ""
    size = format_size(device.size) if device.size is not None else ""
    known = ", ".join(part for part in (words, serial, size) if part)
    return f"{path} ({known})" if known else str(path)


def _same(one: Path, other: Path) -> bool:
    """Whether two device files are the same device, by its number."""
    return is_block_device(one) and one.stat().st_rdev == other.stat().st_rdev

"""Consent: a block device is overwritten only with it, and by name if the device holds data."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.runner import consent
from ssdlab.runner.consent import describe_device
from ssdlab.runner.open_target import OpenTarget, TargetOptions, check, open_for_run
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.target import parse_consent, parse_target

MIB = 1 << 20


def _opened(device: Path, named: object = "") -> OpenTarget:
    options = TargetOptions(
        parse_target(str(device)), 16 * MIB, consent=parse_consent(str(named) or True)
    )
    with open_for_run(options) as target:
        return target


def _refusal(device: Path, named: object = "") -> str:
    with pytest.raises(TargetError) as refused:
        _opened(device, named)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def with_files(loop_device: Callable[..., Path]) -> Path:
    """A free loop device with a file system."""
    device = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", "-L", "data", device], check=True)
    return device


def test_an_empty_device_need_not_be_named_and_is_described(
    loop_device: Callable[..., Path],
) -> None:
    device = loop_device(64)
    description = f"{device} (64 MiB), on which no file system was found"
    assert _opened(device).destroys == description


def test_a_device_with_a_file_system_must_be_named(with_files: Path) -> None:
    before = with_files.read_bytes()
    assert f"holds ext4 'data' on {with_files}; if it may be destroyed, give " in _refusal(
        with_files
    )
    assert with_files.read_bytes() == before
    target = _opened(with_files, with_files)
    assert target.destroys == f"{with_files} (64 MiB), with ext4 'data' on {with_files}"


def test_a_link_to_the_device_counts_as_its_name(with_files: Path, tmp_path: Path) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(with_files)
    assert _opened(with_files, link).destroys
    assert _opened(link, with_files).destroys


@pytest.mark.parametrize("named", ["/dev/null", "/dev/none", "yes", "an empty one"])
def test_another_name_is_refused_even_if_the_device_is_empty(
    loop_device: Callable[..., Path], named: str
) -> None:
    device = loop_device(64)
    assert f"--destroy-data names {named}, but the target is {device}" in _refusal(device, named)


def test_the_device_must_be_named_if_it_cannot_be_searched_for_signatures(
    loop_device: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> list[object]:
        raise TargetError("wipefs is not installed")

    monkeypatch.setattr(consent, "signatures", broken)
    device = loop_device(64)
    assert "wipefs is not installed, so it may hold something" in _refusal(device)
    assert "whose content is unknown" in _opened(device, device).destroys


def test_the_device_is_open_exclusively_while_it_is_searched(
    loop_device: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, errors = loop_device(64), []

    def open_again(_: object) -> list[object]:
        try:
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
        except OSError as error:
            errors.append(error.strerror)
        return []

    monkeypatch.setattr(consent, "signatures", open_again)
    _opened(device)
    assert errors == ["Device or resource busy"]


def test_a_mounted_device_is_refused_even_if_it_is_named(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 64)
    device = Path(mount_of(top).source)
    assert "stays untouched" in _refusal(device, device)


def test_a_mounted_device_is_in_use_before_any_word_about_consent(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 64)
    device = mount_of(top).source
    with pytest.raises(TargetError) as refused:
        check(TargetOptions(parse_target(device), 16 * MIB))
    assert f"{device} is in use and stays untouched: {device} is mounted at {top}" in str(
        refused.value
    )
    assert "--destroy-data" not in str(refused.value)


def test_a_device_is_described_by_its_known_attributes() -> None:
    drive = BlockDevice(
        *("nvme0n1", 259, 0, "nvme0n1", "nvme", 1 << 40),
        model="980 PRO",
        vendor="Samsung",
        serial="S5GX",
    )
    description = "/dev/nvme0n1 (Samsung 980 PRO, serial S5GX, 1 TiB)"
    assert describe_device(Path("/dev/nvme0n1"), drive) == description
    bare = BlockDevice("vda", 254, 0, "vda", "virtio", None)
    assert describe_device(Path("/dev/vda"), bare) == "/dev/vda"

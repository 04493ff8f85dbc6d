"""A TARGET and the consent to destroy it are parsed once, into types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab import device, profiles
from ssdlab.errors import TargetError, UsageError
from ssdlab.target import (
    NO_CONSENT,
    BlockDevice,
    Consent,
    Directory,
    Twin,
    parse_consent,
    parse_target,
)

SOURCES = Path(ssdlab.__file__).parent


def test_a_text_is_a_twin_a_directory_or_a_block_device(tmp_path: Path) -> None:
    twin = parse_target("twin:toshiba-xg5", 1 << 30)
    assert twin == Twin("toshiba-xg5", 1 << 30)
    assert (str(twin), twin.label, twin.capacity_bytes) == (
        *("twin:toshiba-xg5", "toshiba-xg5"),
        1 << 30,
    )
    directory = parse_target(str(tmp_path))
    assert directory == Directory(str(tmp_path))
    assert (str(directory), directory.capacity_bytes) == (str(tmp_path), None)


def test_a_device_file_is_a_block_device(loop_device: Any) -> None:
    path = loop_device(16)
    target = parse_target(str(path))
    assert target == BlockDevice(str(path))
    assert target.capacity_bytes == 16 << 20


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the target is empty"),
        ("/no/such/place", "No such file or directory; give a directory"),
        ("/dev/null", "neither a directory nor a block device"),
        ("twin:toshiba-xg6", "did you mean toshiba-xg5?"),
    ],
)
def test_what_is_none_of_them_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        parse_target(text)


def test_only_a_twin_is_scaled(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--capacity scales a twin"):
        parse_target(str(tmp_path), 1 << 30)
    with pytest.raises(TargetError, match="scaled to 1 B"):
        parse_target("twin:toshiba-xg5", 1)


@pytest.mark.parametrize(
    ("given", "consent"),
    [
        (False, NO_CONSENT),
        ("", NO_CONSENT),
        (True, Consent(any_empty=True)),
        ("/dev/sdz", Consent(device="/dev/sdz")),
        (Path("/dev/sdz"), Consent(device="/dev/sdz")),
    ],
)
def test_consent_is_none_any_empty_device_or_a_named_one(given: Any, consent: Consent) -> None:
    assert parse_consent(given) == consent
    assert parse_consent(consent) == consent
    assert parse_consent(str(consent)) == consent
    assert consent.given == bool(given)


def test_the_prefix_of_twins_is_known_in_one_place() -> None:
    knowing = [path for path in SOURCES.rglob("*.py") if '"twin:"' in path.read_text()]
    assert [path.name for path in knowing] == ["target.py"]


def test_a_profile_is_read_and_described_once_a_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[str] = []
    load, describe = profiles.load, device.describe_twin

    def counted_load(name: str) -> str:
        calls.append("load")
        return load(name)

    def counted_describe(*words: Any) -> dict[str, Any]:
        calls.append("describe")
        return describe(*words)

    monkeypatch.setattr(profiles, "load", counted_load)
    monkeypatch.setattr(device, "describe_twin", counted_describe)
    twin = ssdlab.open_target("twin:toshiba-xg5", capacity="2GiB")
    twin.run(ssdlab.Steady(region="64MiB", drive_writes=1, quick=True), out=tmp_path)
    assert sorted(calls) == ["describe", "load"]

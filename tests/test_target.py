"""Parsing of targets and of the consent to overwrite a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab import device, profiles
from ssdlab.errors import TargetError, UsageError
from ssdlab.runner.open_target import TargetOptions
from ssdlab.target import (
    NO_CONSENT,
    BlockDevice,
    Consent,
    Directory,
    Twin,
    anywhere,
    parse_consent,
    parse_target,
)

SOURCES = Path(ssdlab.__file__).parent


def test_a_target_is_a_twin_or_a_directory(tmp_path: Path) -> None:
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


def test_the_name_of_a_twin_is_enough_unless_a_path_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_target("toshiba-xg5", 1 << 30) == Twin("toshiba-xg5", 1 << 30)
    Path("toshiba-xg5").mkdir()
    assert parse_target("toshiba-xg5") == Directory("toshiba-xg5")


def test_a_path_is_a_target_also_where_the_profiles_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names() -> list[str]:
        raise PermissionError

    monkeypatch.setattr(profiles, "names", names)
    assert parse_target(str(tmp_path)) == Directory(str(tmp_path))
    with pytest.raises(TargetError, match="No such file or directory"):
        parse_target(str(tmp_path / "missing"))


def test_a_target_is_found_from_another_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "mine.toml").write_text(profiles.load("toshiba-xg5"))
    monkeypatch.chdir(tmp_path)
    typed = [parse_target(text) for text in ("data", "twin:mine.toml", "twin:toshiba-xg5")]
    stored = [anywhere(target) for target in typed]
    assert TargetOptions(typed[0], 0).to_manifest()["target"] == str(tmp_path / "data")
    monkeypatch.chdir("/")
    assert stored == [parse_target(str(target)) for target in stored]
    assert str(stored[0]) == str(tmp_path / "data")
    assert str(stored[2]) == "twin:toshiba-xg5"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the target is empty"),
        ("/no/such/place", "No such file or directory; give a directory"),
        ("/dev/null", "neither a directory nor a block device"),
        ("twin:toshiba-xg6", "did you mean toshiba-xg5?"),
        ("toshiba-xg6", "did you mean twin:toshiba-xg5?"),
    ],
)
def test_any_other_target_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        parse_target(text)


def test_only_a_twin_can_be_scaled(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--capacity scales a twin"):
        parse_target(str(tmp_path), 1 << 30)
    with pytest.raises(TargetError, match="scaled to 1 B"):
        parse_target("twin:toshiba-xg5", 1)


@pytest.mark.parametrize(
    ("value", "consent"),
    [
        (False, NO_CONSENT),
        ("", NO_CONSENT),
        (True, Consent(any_empty=True)),
        ("/dev/sdz", Consent(device="/dev/sdz")),
        (Path("/dev/sdz"), Consent(device="/dev/sdz")),
    ],
)
def test_consent_is_none_any_empty_device_or_a_named_one(value: Any, consent: Consent) -> None:
    assert parse_consent(value) == consent
    assert parse_consent(consent) == consent
    assert parse_consent(str(consent)) == consent
    assert consent.given == bool(value)


def test_only_one_module_has_the_prefix_of_twins() -> None:
    modules = [path for path in SOURCES.rglob("*.py") if '"twin:"' in path.read_text()]
    assert [path.name for path in modules] == ["target.py"]


def test_a_profile_is_loaded_once_per_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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

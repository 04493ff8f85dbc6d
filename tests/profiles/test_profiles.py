"""Shipped profiles: each makes a twin, and each number has a source and a kind."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from ssdlab import profiles
from ssdlab.device import Job, describe_twin, open_twin, run_job
from ssdlab.errors import TargetError, UsageError
from ssdlab.profiles.toml_edit import get_value, set_values, values_only
from ssdlab.units import parse_size

KINDS = {"datasheet", "measured", "fitted", "guessed"}
WORDS = {"drive.model", "drive.interface", "ftl.placement", "ftl.victim", "ftl.relocation"}


def _values(name: str) -> Iterator[tuple[str, Any]]:
    for table, keys in tomllib.loads(profiles.load(name)).items():
        for key, value in keys.items():
            yield f"{table}.{key}", value


MEASURED = {
    *("intel-p3520", "intel-p4500", "intel-s3510-120", "intel-s3510-480", "intel-s4500-480"),
    *("micron-5200-eco", "samsung-840-pro", "samsung-970-evo-plus-500", "samsung-pm1725b"),
    *("samsung-pm883", "samsung-pm963", "samsung-pm981", "samsung-pm983", "toshiba-xg5"),
}


def test_the_drives_of_the_published_tables_have_profiles() -> None:
    assert set(profiles.names()) >= MEASURED
    assert profiles.names() == sorted(profiles.names())


@pytest.mark.parametrize("name", profiles.names())
def test_a_shipped_profile_makes_a_twin_of_the_stated_capacity(name: str) -> None:
    described = describe_twin(name, profiles.load(name))
    stated = parse_size(dict(_values(name))["drive.capacity"]["value"])
    assert described["capacity_bytes"] == pytest.approx(stated, abs=4096)
    assert described["model"] == dict(_values(name))["drive.model"]
    assert 0 < described["spare"] < 0.5


@pytest.mark.parametrize("name", profiles.names())
def test_the_values_of_a_profile_alone_make_the_same_twin(name: str) -> None:
    profile, changes = profiles.load(name), {"buffer.honours_flush": None, "ftl.victim": "fifo"}
    assert describe_twin(name, values_only(profile)) == describe_twin(name, profile)
    changed = values_only(profile, changes)
    assert "source" not in changed
    assert describe_twin(name, changed) == describe_twin(name, set_values(profile, changes))
    assert {key: get_value(changed, key) for key in changes} == changes


@pytest.mark.parametrize("name", profiles.names())
def test_every_number_of_a_shipped_profile_has_a_source_and_a_kind(name: str) -> None:
    for key, value in _values(name):
        if key in WORDS:
            assert isinstance(value, str), key
            continue
        assert isinstance(value, dict), f"{key} has no source"
        assert set(value) == {"value", "source", "kind"}, key
        assert value["kind"] in KINDS, key
        assert value["source"].strip(), key
        if value["kind"] == "fitted":
            assert re.search(r"\bfit\b.*20\d\d-\d\d-\d\d", value["source"]), key


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("toshiba-xg6", "toshiba-xg5"),
        ("TOSHIBA-XG5", "toshiba-xg5"),
        ("toshiba", "toshiba-xg5"),
        ("intel-s3510", "intel-s3510-480"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(TargetError, match=f"{name!r}; did you mean {suggestion}"):
        profiles.load(name)


def test_an_unknown_name_gets_the_list_of_all() -> None:
    with pytest.raises(TargetError) as raised:
        profiles.load("qqqq")
    for name in profiles.names():
        assert name in str(raised.value)


def test_a_name_cannot_be_a_path_outside_the_folder_of_profiles(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(TargetError, match="no twin called"):
        profiles.load(str(tmp_path / "mine"))


def test_a_file_is_read_unchanged(tmp_path: Path) -> None:
    text = "# µs\n[drive]\n"
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert profiles.load(str(tmp_path / "mine.toml")) == text


def test_a_missing_file_a_directory_and_binary_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "directory.toml").mkdir()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, reason in (("none", "No such file"), ("binary", "UTF-8")):
        with pytest.raises(TargetError, match=rf"{name}\.toml: .*{reason}"):
            profiles.load(str(tmp_path / f"{name}.toml"))
    with pytest.raises(UsageError, match=r"directory\.toml is a directory; give a regular file"):
        profiles.load(str(tmp_path / "directory.toml"))


SOLD = {
    "intel-s4500-480": (72_000, None),
    "micron-5200-eco": (95_000, None),
    "samsung-970-evo-plus-500": (480_000, 550_000),
    "samsung-980-pro": (1_000_000, 1_000_000),
    "samsung-pm983": (400_000, None),
    "wd-sn850": (1_000_000, 720_000),
}
"""4 KiB random reads and writes per second that the drive was sold with, at any queue depth."""


@pytest.mark.parametrize("name", SOLD)
def test_no_twin_is_faster_at_random_than_its_drive_was_sold(name: str) -> None:
    drive = open_twin(name, profiles.load(name), 2 << 30)
    size = 64 << 20
    run_job(drive, Job(op="write", length_bytes=size, block_bytes=1 << 20, amount_bytes=size))
    drive.rest(60.0)
    ops: tuple[Literal["read", "write"], ...] = ("read", "write")
    for op, most in zip(ops, SOLD[name], strict=True):
        job = Job(
            op=op,
            pattern="random",
            length_bytes=size,
            block_bytes=4096,
            amount_bytes=size,
            queue_depth=256,
        )
        outcome = run_job(drive, job)
        if most is not None:
            assert outcome.requests / outcome.seconds < 1.01 * most, op

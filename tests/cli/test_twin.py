"""`ssdlab twin`: list, show and check profiles."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from ssdlab import profiles

Program = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]
XG5 = "toshiba-xg5"


def test_the_list_has_every_profile_that_is_shipped(ssdlab: Program) -> None:
    done = ssdlab("twin", "list")
    assert done.returncode == 0
    assert all(name in done.stdout for name in profiles.names())
    listed = json.loads(ssdlab("twin", "list", "--json").stdout)["twins"]
    assert [twin["name"] for twin in listed] == profiles.names()
    assert all(0 < twin["spare"] < 0.5 for twin in listed)


def test_spare_is_shown_by_both_definitions(ssdlab: Program) -> None:
    shown = ssdlab("twin", "show", XG5).stdout
    assert "6.91%" in shown
    assert "7.43%" in shown


def test_each_number_is_shown_with_its_kind_and_source(ssdlab: Program) -> None:
    numbers = json.loads(ssdlab("twin", "show", XG5, "--json").stdout)["numbers"]
    read = next(number for number in numbers if number["key"] == "flash.read")
    assert read["value"] == ["50 us", "65 us", "80 us"]
    assert read["kind"] == "fitted"
    assert "ageing" in read["source"] or "ageing" in str(numbers)


def test_a_scaled_twin_keeps_its_spare(ssdlab: Program) -> None:
    full = json.loads(ssdlab("twin", "show", XG5, "--json").stdout)
    small = json.loads(ssdlab("twin", "show", XG5, "--capacity", "8GiB", "--json").stdout)
    assert small["capacity_bytes"] == 8 << 30
    assert abs(small["spare"] - full["spare"]) < 0.01


def test_a_right_profile_passes_and_a_wrong_key_is_named(
    ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(profiles.load(XG5))
    done = ssdlab("twin", "check", file)
    assert done.returncode == 0
    assert "is right" in done.stdout
    file.write_text(profiles.load(XG5).replace("chunk =", "chnk ="))
    line = refused("twin", "check", file)
    assert "ftl.chnk" in line
    assert "did you mean chunk?" in line


def test_bad_input_to_the_twin_verbs_is_one_line(refused: Refused, tmp_path: Path) -> None:
    assert "toshiba-xg5" in refused("twin", "show", "toshiba-xg6")
    assert "No such file" in refused("twin", "check", tmp_path / "none.toml")
    assert "at least about" in refused("twin", "show", XG5, "--capacity", "1MiB")
    assert "needs a unit" in refused("twin", "show", XG5, "--capacity", "8")

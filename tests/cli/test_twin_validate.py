"""`ssdlab twin validate`: names, profiles, tables, JSON and the page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

from forked import Program

from ssdlab import profiles
from ssdlab.fit.iocost import measure

Refused = Callable[..., str]
TABLE = """
[[iocost]]
name = "mine"
drive = "Drive X"
gb = 256
interface = "nvme"
nand = "tlc"
rbps = 2000
rseqiops = 100000
rrandiops = 100000
wbps = 500
wseqiops = 50000
wrandiops = 40000
"""


def test_a_row_prints_the_command_that_computes_it_again(ssdlab: Program) -> None:
    words = ("twin", "validate", "wdc-sn730-512", "--quiet")
    printed = ssdlab(*words).stdout
    assert "ssdlab twin validate wdc-sn730-512 --table iocost" in printed
    assert "all: figures 6, drives 1" in printed
    first = json.loads(ssdlab(*words, "--json").stdout)
    assert first["summary"][0]["figures"] == len(first["figures"]) == 6
    [command] = {figure["command"] for figure in first["figures"]}
    again = ssdlab(*shlex.split(command)[1:], "--quiet", "--json")
    assert json.loads(again.stdout) == first


def test_a_readers_table_and_profile_are_compared(ssdlab: Program, tmp_path: Path) -> None:
    table, profile = tmp_path / "table.toml", tmp_path / "my profile.toml"
    table.write_text(TABLE)
    profile.write_text(profiles.load("samsung-pm981"))
    own = json.loads(ssdlab("twin", "validate", table, "--json", "--quiet").stdout)
    assert own["drives"] == 1
    both = ssdlab("twin", "validate", profile, table, "mine", "--json", "--quiet")
    assert both.returncode == 0, both.stderr
    figures = json.loads(both.stdout)["figures"]
    assert {figure["role"] for figure in figures} == {"predicted"}
    assert figures[0]["command"] == shlex.join(
        ["ssdlab", "twin", "validate", str(profile), str(table), "mine", "--table", "iocost"]
    )
    assert [one["twin"] for one in figures] == [*measure(profile.read_text()).values()]


def test_the_page_has_the_tables_and_pictures(ssdlab: Program, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = ssdlab("twin", "validate", "wdc-sn730-512", "samsung-pm9a3-960", "--html", page)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{page}\n")
    html = page.read_text()
    assert html.count("<svg") >= 4  # two tables, each in two widths
    assert "ssdlab twin validate wdc-sn730-512 --table iocost" in html
    assert html.count("<script") == 1  # it shows values under the pointer


def test_every_figure_has_its_unit(ssdlab: Program) -> None:
    shown = ssdlab("twin", "validate", "samsung-980-pro", "--table", "stripe", "--quiet").stdout
    lines = [line.split() for line in shown.splitlines()]
    [head] = [at for at, words in enumerate(lines) if "Published" in words and "Twin" in words]
    assert "MB/s MB/s" in " ".join(lines[head + 1]) or "MB/s MB/s" in " ".join(lines[head])


def test_wrong_input_is_one_line(refused: Refused, tmp_path: Path) -> None:
    assert "no published table contains 'nothing'" in refused("twin", "validate", "nothing")
    assert "did you mean samsung-970-evo-500" in refused("twin", "validate", "samsung-970-evo")
    assert "cannot read" in refused("twin", "validate", tmp_path / "none.toml")
    page = tmp_path / "missing" / "page.html"
    assert "existing directory" in refused("twin", "validate", "wdc-sn730-512", "--html", page)
    broken = tmp_path / "broken.toml"
    broken.write_text("[[iocost]\n")
    assert "is not valid TOML" in refused("twin", "validate", broken)

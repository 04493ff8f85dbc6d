"""`ssdlab twin new`: a generic twin, and how little a data sheet says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from forked import Program

Refused = Callable[..., str]
NEW = ("twin", "new", "--interface", "nvme", "--capacity", "512GB", "--nand", "tlc", "--quiet")


def test_a_generic_twin_is_written_and_its_range_printed(ssdlab: Program, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    done = ssdlab(*NEW, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    new = json.loads(done.stdout)
    assert ssdlab("twin", "check", out).returncode == 0
    for finding in new["findings"].values():
        assert finding["low"] <= finding["value"] <= finding["high"]
    reads = new["findings"]["rrandiops"]
    assert reads["high"] > 1.5 * reads["low"]
    read = next(one for one in new["numbers"] if one["key"] == "flash.read")
    assert (read["kind"], read["low"], read["high"]) == ("guessed", "40 us", "80 us")
    text = ssdlab(*NEW, "--out", out).stdout
    assert "by a factor of" in " ".join(text.split())


def test_rates_of_the_data_sheet_narrow_the_range(ssdlab: Program, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    rates = ("--read", "3000MB/s", "--read-iops", "200000", "--write-iops", "50000")
    done = ssdlab(*NEW, *rates, "--out", out, "--model", "Drive X", "--json")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)["findings"]
    for name, value in (("rbps", 3000), ("rrandiops", 200000), ("wseqiops", 50000)):
        assert abs(findings[name]["value"] / value - 1) < 0.03, name
    assert findings["rrandiops"]["high"] < 1.1 * findings["rrandiops"]["low"]
    assert findings["wbps"]["high"] > 1.5 * findings["wbps"]["low"]
    assert 'kind = "fitted"' in out.read_text()
    assert 'model = "Drive X"' in out.read_text()


def test_wrong_options_are_one_line(refused: Refused, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    words = ("twin", "new", "--capacity", "512GB", "--out", out, "--quiet")
    assert "it must be nvme or sata" in refused(*words, "--interface", "usb")
    assert "--nand is 'xlc'" in refused(*words, "--interface", "nvme", "--nand", "xlc")
    assert "--read is 'fast'" in refused(*words, "--interface", "nvme", "--read", "fast")
    assert not out.exists()


def test_a_rate_needs_its_unit_and_an_interface_that_carries_it(
    refused: Refused, tmp_path: Path
) -> None:
    words = (*NEW, "--out", tmp_path / "mine.toml")
    assert "--read is 3500, without a unit; give 3500MB/s" in refused(*words, "--read", "3500")
    sata = tuple("sata" if word == "nvme" else word for word in words)
    message = refused(*sata, "--read", "3500MB/s")
    assert "more than sata carries (580 MB/s); correct it, or --interface" in message


def test_the_numbers_are_those_of_the_profile(ssdlab: Program, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    done = ssdlab(*NEW, "--read", "3500MB/s", "--out", out, "--json")
    numbers = {one["key"]: one for one in json.loads(done.stdout)["numbers"]}
    assert (numbers["link.bandwidth"]["value"], numbers["link.bandwidth"]["kind"]) == (
        *("3535.0 MB/s", "fitted"),
    )
    assert numbers["link.write_command"]["kind"] == "guessed"
    assert numbers["flash.dies_per_channel"]["value"] == 1
    text = " ".join(ssdlab(*NEW, "--out", out).stdout.split())
    assert "flash.dies_per_channel 1 " in text
    assert "4 KiB random reads x64 requests/s" in text

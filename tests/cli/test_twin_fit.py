"""`ssdlab twin fit` with results of several experiments."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from forked import Program

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.cli.twin.fit import CONTRADICTED, _error_of, _report_to, _warnings
from ssdlab.fit.checks import FITTED, HELD_OUT, Check
from ssdlab.fit.fitted import Fitted, finished_profile
from ssdlab.fit.parameters import Estimate
from ssdlab.fit.starts import Attempt
from ssdlab.profiles.toml_edit import list_values
from ssdlab.runner.progress import Report

Refused = Callable[..., str]
STRIPE = '[stripe]\nchunk = "64 KiB"\nunits = 6\n'


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str, str], Path]:
    """`table(name, text)` -> a file with that text."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_runs_and_tables_together_make_a_profile(
    ssdlab: Program, table: Callable[[str, str], Path], tmp_path: Path
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "mine.toml"
    options = ("twin:samsung-pm963", "--capacity", "1GiB", "--quick", "--quiet", "--out", runs)
    assert ssdlab("run", "split", *options).returncode == 0
    words = (runs, table("a.toml", STRIPE), "--start", "toshiba-xg5", "--out", out, "--quiet")
    result = ssdlab("twin", "fit", *words, "--json", "--hold-out", "split:4, 1")
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    parameters = {each["key"]: each for each in output["parameters"]}
    assert parameters["ftl.chunk"]["value"] == "64 KiB"
    assert parameters["flash.channels x flash.dies_per_channel"]["value"] == 6
    assert {"link.bandwidth", "link.read_overhead", "flash.read"} <= set(parameters)
    held_out = [row["case"] for row in output["measures"] if row["held_out"]]
    assert "4, 1" in held_out
    assert len(held_out) < len(output["measures"])
    assert ssdlab("twin", "check", out).returncode == 0


def test_the_time_left_is_that_of_the_search_that_is_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times, reports = iter([0.0, 10.0, 20.0, 22.0]), list[Report]()
    monkeypatch.setattr("ssdlab.cli.twin.fit.time.monotonic", lambda: next(times))
    report = _report_to(reports.append)
    for done in (5, 10, 1):
        report(done, 10)
    assert [each.left_s for each in reports] == [10.0, 0.0, 18.0]


def test_what_no_result_determines_is_inherited_from_the_start_profile(
    ssdlab: Program, table: Callable[[str, str], Path], tmp_path: Path
) -> None:
    out, chunk = tmp_path / "mine.toml", table("a.toml", STRIPE.replace("64 KiB", "32 KiB"))
    words = (chunk, "--start", "toshiba-xg5", "--out", out, "--quiet")
    fitted = ssdlab("twin", "fit", *words)
    assert fitted.returncode == 0
    assert "flash.independent_plane_reads false, " in " ".join(fitted.stdout.split())
    shown = ssdlab("twin", "show", out, "--json", env={**os.environ, "COLUMNS": "200"})
    numbers = {entry["key"]: entry for entry in json.loads(shown.stdout)["numbers"]}
    assert numbers["flash.erase"]["kind"] == "inherited"
    assert numbers["flash.erase"]["source"] == "the profile toshiba-xg5, there guessed"
    assert numbers["ftl.victim"]["kind"] == "inherited"
    assert numbers["ftl.chunk"]["value"] == "32 KiB"  # that of the start profile, and determined
    assert numbers["ftl.chunk"]["kind"] == "fitted"
    assert not {"datasheet", "guessed"} & {entry["kind"] for entry in numbers.values()}
    for verb in ("show", "check"):
        text = " ".join(ssdlab("twin", verb, out).stdout.split())
        assert "Inherited from the start profile, so they may be wrong" in text, verb
        assert "flash.erase" in text, verb
    assert "flash.erase" in json.loads(ssdlab("twin", "check", out, "--json").stdout)["inherited"]
    different = ssdlab("twin", "diff", out, "samsung-pm963", env={**os.environ, "COLUMNS": "120"})
    assert "(inherited)" in different.stdout
    again = tmp_path / "again.toml"
    more = (table("b.toml", STRIPE), "--start", out, "--out", again, "--quiet")
    assert ssdlab("twin", "fit", *more).returncode == 0
    assert 'there guessed", kind = "inherited"' in again.read_text()  # its first source stays


def test_only_what_was_determined_is_fitted_although_it_did_not_change() -> None:
    start = profiles.load("toshiba-xg5")
    for determined, kind in ((True, "fitted"), (False, "inherited")):
        chunk = Estimate("ftl.chunk", "32 KiB", "32 KiB", "32 KiB", determined=determined)
        text = finished_profile(Fitted(start, (chunk,), ()), "Box", "fit", start, "toshiba-xg5")
        kinds = {entry["key"]: entry["kind"] for entry in list_values(text)}
        assert kinds["ftl.chunk"] == kind


def test_the_capacity_is_that_of_the_measured_drive(
    ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "mine.toml"
    options = ("twin:samsung-pm963", "--capacity", "1GiB", "--quick", "--quiet", "--out", runs)
    done = ssdlab("run", "stripe", *options, "--json")
    words = ("twin", "fit", runs, "--start", "toshiba-xg5", "--out", out, "--quiet")

    def capacity() -> dict[str, str]:
        assert ssdlab(*words).returncode == 0
        numbers = json.loads(ssdlab("twin", "show", out, "--json").stdout)["numbers"]
        return next(entry for entry in numbers if entry["key"] == "drive.capacity")

    assert capacity()["value"] == "960000000000 B"  # of the whole twin, not of the scaled one
    path = Path(json.loads(done.stdout)["folder"], "manifest.json")
    manifest = json.loads(path.read_text())
    drive = {"model": "Samsung PM963", "size_bytes": 256_060_514_304}
    manifest |= {"virtual": False, "device": {"kind": "directory", "drives": [drive]}}
    path.write_text(json.dumps(manifest))
    found = capacity()
    assert (found["value"], found["kind"]) == ("256060514304 B", "measured")
    assert found["source"].startswith("reported by the drive; fit of stripe")
    assert ssdlab("run", "split", *options).returncode == 0
    message = refused(*words)
    assert "of drives of" in message
    assert "give those of one" in message


def test_values_that_the_twin_misses_by_more_than_ten_per_cent_are_named() -> None:
    def check(case: str, twin: float, note: str = FITTED) -> Check:
        return Check("suite", Cell((case,), "mean", 100.0), twin, note)

    checks = (check("random 4k", 89.0), check("access time", 109.0), check("zeros", 200, HELD_OUT))
    fitted = Fitted("", (), checks)
    (warning,) = _warnings(fitted)
    assert warning.startswith(
        "1 of 2 values of the twin are off by more than 10% (suite random 4k -11.0%)"
    )
    assert _warnings(replace(fitted, checks=checks[1:])) == []
    missed, contradicted = _warnings(replace(fitted, contradicted=True))
    assert (missed, contradicted) == (warning, CONTRADICTED)
    errors = [
        _error_of(Attempt("toshiba-xg5", "", replace(fitted, contradicted=each)))
        for each in (False, True)
    ]
    assert errors == [
        "toshiba-xg5 10.0%",
        "toshiba-xg5 10.0% (but the rates of steady contradict it)",
    ]


def test_invalid_results_are_refused_with_one_line(
    refused: Refused, table: Callable[[str, str], Path], tmp_path: Path
) -> None:
    words = ("--start", "toshiba-xg5", "--out", tmp_path / "mine.toml")
    one, other = table("a.toml", STRIPE), table("b.toml", STRIPE.replace("64", "32"))
    assert "these cannot be one drive" in refused("twin", "fit", one, other, *words)
    assert "is empty" in refused("twin", "fit", table("c.csv", ""), *words)
    no_unit = table("d.toml", "[steady]\nhidden_spare = 7\n")
    assert "with its unit" in refused("twin", "fit", no_unit, *words)
    bare = table("f.csv", "test,op,mean\nrandom 4k,read,47\n")
    assert "no column 'unit'" in refused("twin", "fit", bare, *words)
    row = "[aging]\nfile_mib = 4096\nwritten_mib = [50]\nseconds = [1.9, 2.9]\n"
    aged, slow = table("g.toml", row), table("h.toml", row.replace("1.9, 2.9", "9.9, 12"))
    assert "these cannot be one drive" in refused("twin", "fit", aged, slow, *words)
    far = table("e.toml", '[steady]\nhidden_spare = "99 %"\n')
    assert "from 0.01 to 90 %" in refused("twin", "fit", far, *words)
    assert "these results have no rows" in refused(
        "twin", "fit", one, *words, "--hold-out", "suite"
    )


def test_the_source_of_a_number_names_what_it_was_fitted_to(
    ssdlab: Program, table: Callable[[str, str], Path], tmp_path: Path
) -> None:
    out = tmp_path / "mine.toml"
    rates = table(
        "iocost.toml", "[iocost]\nrbps = '2000 MB/s'\nwbps = '500 MB/s'\nwseqiops = 40000\n"
    )
    words = (rates, "--start", "toshiba-xg5", "--out", out, "--quiet")
    assert ssdlab("twin", "fit", *words).returncode == 0
    numbers = json.loads(ssdlab("twin", "show", out, "--json").stdout)["numbers"]
    link = next(entry for entry in numbers if entry["key"] == "link.bandwidth")
    assert link["source"].endswith(": rbps, wbps, wseqiops")

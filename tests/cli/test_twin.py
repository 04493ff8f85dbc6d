"""`ssdlab twin list`, `show`, `check` and `fit`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from forked import Program

from ssdlab import profiles
from ssdlab.cli.twin import relatives
from ssdlab.errors import UsageError
from ssdlab.fit.published import SOURCE_PHRASES, twins_of
from ssdlab.profiles.relatives import DriveFacts
from ssdlab.snapshot import Device, Snapshot
from ssdlab.storage_stack import snapshot

Refused = Callable[..., str]
XG5 = "toshiba-xg5"


def test_the_list_has_every_shipped_profile(ssdlab: Program) -> None:
    result = ssdlab("twin", "list")
    assert result.returncode == 0
    assert all(name in result.stdout for name in profiles.names())
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
    assert len(read["value"]) == 3
    assert read["kind"] == "fitted"
    assert "ageing" in read["source"] or "ageing" in str(numbers)


def test_the_profile_itself_is_printed_to_copy_and_change(
    ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(ssdlab("twin", "show", XG5, "--toml").stdout, encoding="utf-8")
    assert copy.read_text(encoding="utf-8") == profiles.load(XG5)
    assert ssdlab("twin", "check", str(copy)).returncode == 0
    assert "toshiba-xg5 is valid" in ssdlab("twin", "check", XG5).stdout
    for option in (("--json",), ("--capacity", "8GiB")):
        assert "without --json and --capacity" in refused("twin", "show", XG5, "--toml", *option)


def test_the_list_has_the_errors_of_each_twin(ssdlab: Program) -> None:
    listed = json.loads(ssdlab("twin", "list", "--json").stdout)["twins"]
    tables = {twin["name"]: twin["tables"] for twin in listed}
    [ageing] = tables[XG5]
    assert ageing["table"] == "aging"
    assert ageing["fitted"]
    assert 0 < ageing["mean_error"] < ageing["worst_error"] < 0.18
    assert [each["table"] for each in tables["samsung-980-pro"]] == ["stripe", "fragments"]
    compared = {twin for table in SOURCE_PHRASES for twin in twins_of(table)}
    assert {name for name, errors in tables.items() if errors} == compared
    assert "placement-study" not in compared, "a study's emulated drive"


def test_the_list_fits_on_a_terminal_of_80_columns(ssdlab: Program) -> None:
    lines = ssdlab("twin", "list").stdout.splitlines()
    assert any("provisioning" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert lines[0].split() == ["name", "capacity", "spare", "table", "error", "fitted"]


def test_a_fit_writes_a_valid_profile_and_warns_of_undetermined_numbers(
    ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    results, out = tmp_path / "flat.toml", tmp_path / "mine.toml"
    results.write_text(
        "[aging]\nfile_mib = 4096\nwritten_mib = [50, 200]\nseconds = [10.7, 10.7, 10.8]\n"
    )
    words = ("twin", "fit", results, "--start", "intel-s3510-480", "--out", out)
    result = ssdlab(*words, "--hold-out", "aging:200", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    fitted = json.loads(result.stdout)
    assert [row["held_out"] for row in fitted["measures"]] == [False, False, True]
    assert fitted["mean_error"] < 0.05
    page, read = (
        next(text for text in fitted["warnings"] if text.startswith(key))
        for key in ("flash.planes x flash.page is not determined", "flash.read is right only with")
    )
    assert "add results of fsync or split or suite" in page
    assert "ftl.chunk 32 KiB, taken from the start profile" in read
    assert ssdlab("twin", "check", out).returncode == 0
    text = out.read_text()
    assert text.startswith("# flat: fit of the ageing row of flat")
    assert 'model = "flat"' in text
    assert "Intel DC S3510" not in text.split("[link]")[0]
    assert "it must be aging:" in refused(*words, "--hold-out", "aging:77")
    assert "cannot read results" in refused("twin", "fit", tmp_path / "none.toml", *words[3:])


def test_a_scaled_twin_keeps_its_spare(ssdlab: Program) -> None:
    full = json.loads(ssdlab("twin", "show", XG5, "--json").stdout)
    small = json.loads(ssdlab("twin", "show", XG5, "--capacity", "8GiB", "--json").stdout)
    assert small["capacity_bytes"] == 8 << 30
    assert abs(small["spare"] - full["spare"]) < 0.01


def test_a_valid_profile_passes_and_a_wrong_key_is_named(
    ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(profiles.load(XG5))
    result = ssdlab("twin", "check", file)
    assert result.returncode == 0
    assert "is valid" in result.stdout
    file.write_text(profiles.load(XG5).replace("chunk =", "chnk ="))
    line = refused("twin", "check", file)
    assert "ftl.chnk" in line
    assert "did you mean chunk?" in line


def test_invalid_input_to_twin_is_refused_with_one_line(refused: Refused, tmp_path: Path) -> None:
    assert "toshiba-xg5" in refused("twin", "show", "toshiba-xg6")
    assert "No such file" in refused("twin", "check", tmp_path / "none.toml")
    assert "at least about" in refused("twin", "show", XG5, "--capacity", "1MiB")
    assert "needs a unit" in refused("twin", "show", XG5, "--capacity", "8")


def test_the_command_prints_each_figure_and_its_error(ssdlab: Program) -> None:
    command = ("twin", "validate", "intel-s3510-480", "--table", "aging")
    document = json.loads(ssdlab(*command, "--json").stdout)
    assert [figure["published"] for figure in document["figures"]] == [10.7, 10.7, 10.8, 10.8, 10.8]
    assert document["summary"][0]["worst_error"] < 0.02
    shown = ssdlab(*command, "--quiet")
    assert shown.stderr == ""
    assert "fitted: figures 5, drives 1, mean error" in shown.stdout


def test_on_50_columns_the_list_has_each_error_with_its_table(ssdlab: Program) -> None:
    lines = ssdlab("twin", "list", env={**os.environ, "COLUMNS": "50"}).stdout.splitlines()
    assert lines[0].split() == ["name", "table", "error", "fitted"]
    row = next(line for line in lines if line.startswith(" samsung-970-"))
    assert row.split()[1] == "fsync"
    assert max(map(len, lines)) <= 50
    assert not any("…" in line for line in lines)


def test_the_twin_of_a_model_is_found_and_a_virtual_disk_is_refused(
    ssdlab: Program, refused: Callable[..., str]
) -> None:
    done = ssdlab("twin", "for", "--model", "SAMSUNG MZVLB1T0HALR-00000")
    assert "its twin is samsung-pm981." in done.stdout
    relative = ssdlab("twin", "for", "--model", "Samsung SSD 990 PRO 2TB", "--interface", "nvme")
    assert (
        "no twin of this model is shipped. The most similar is samsung-980-pro." in relative.stdout
    )
    unknown = ssdlab("twin", "for", "--model", "Frobnicator 9").stdout
    assert "none is similar" in unknown
    assert not any(name in unknown for name in profiles.names())
    crucial = ssdlab("twin", "for", "--model", "Crucial MX500").stdout
    assert "micron-5200-eco" in crucial
    assert "intel" not in crucial, "nothing in common with the drive"
    [drive] = json.loads(ssdlab("twin", "for", "--model", "XG5 1TB", "--json").stdout)["drives"]
    assert (drive["capacity_bytes"], len(drive["twins"])) == (10**12, len(profiles.names()) - 1)
    assert "give either a drive" in refused("twin", "for")
    assert "--interface is 'scsi'" in refused("twin", "for", "--model", "A", "--interface", "scsi")


def test_the_drives_of_a_path_are_those_of_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Device("nvme0n1", "/dev/nvme0n1", "drive", "nvme", is_drive=True)
    known = msgspec.structs.replace(drive, model="KXG50ZNV512G TOSHIBA", size_bytes=512110190592)

    def stack_of(*devices: Device) -> None:
        stack = Snapshot("/mnt", as_root=False, devices=devices)
        monkeypatch.setattr(snapshot, "read_snapshot", lambda *_: stack)

    stack_of(known)
    [(name, facts)] = relatives.drives_at("/mnt")
    assert name == "nvme0n1"
    assert facts == DriveFacts("KXG50ZNV512G TOSHIBA", 512110190592, "nvme")
    stack_of(drive)
    with pytest.raises(UsageError, match=r"nvme0n1 reports no model \(nvme\); give --model"):
        relatives.drives_at("/mnt")
    stack_of(msgspec.structs.replace(known, rotational=True))
    with pytest.raises(UsageError, match="is a spinning disk"):
        relatives.drives_at("/mnt")
    stack_of()
    with pytest.raises(UsageError, match="is not on a drive of this machine"):
        relatives.drives_at("/mnt")


def test_two_twins_are_compared_key_by_key(ssdlab: Program) -> None:
    shown = ssdlab("twin", "diff", "samsung-pm981", "twin:samsung-980-pro").stdout
    rows = [line.split() for line in shown.splitlines() if " " in line.strip()]
    assert ["flash.channels", "8", "16", "2"] in rows
    document = json.loads(
        ssdlab("twin", "diff", "samsung-pm981", "samsung-980-pro", "--json").stdout
    )
    keys = [row["key"] for row in document["differences"]]
    assert keys[:3] == ["drive.model", "drive.capacity", "ftl.spare"]
    assert "drive.interface" not in keys
    narrow = ssdlab("twin", "diff", "samsung-pm981", "samsung-980-pro", env={"COLUMNS": "50"})
    assert "flash.channels: 8 -> 16\n" in narrow.stdout
    assert "are the same" in ssdlab("twin", "diff", "toshiba-xg5", "toshiba-xg5").stdout

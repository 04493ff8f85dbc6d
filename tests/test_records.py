"""Run folders: round trip, damaged files, missing files."""

from __future__ import annotations

import errno
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ssdlab.errors import UsageError
from ssdlab.records import (
    CHECKUP_FILE,
    INTERVAL_LATENCY,
    INTERVALS,
    LATENCY,
    OBSERVATIONS,
    STEPS,
    Finding,
    Manifest,
    Recording,
    Result,
    StepRow,
    encode_json,
    find_runs,
    make_folder,
    read_run,
    run_name,
    write_run,
)
from ssdlab.warning import MeasurementWarning

STARTED = datetime(2026, 11, 21, 10, 15, 0, tzinfo=UTC)
FILES = (
    "manifest.json",
    "steps.parquet",
    "intervals.parquet",
    "latency.parquet",
    "interval_latency.parquet",
    "observations.parquet",
    "result.json",
)
NEEDED = tuple(name for name in FILES if name != "observations.parquet")


def _manifest(target: str = "twin:x") -> Manifest:
    return Manifest(
        run="r",
        ssdlab="1",
        experiment="aging",
        target=target,
        virtual=True,
        seed=2**53 - 1,
        started="2026-11-21T10:15:00+00:00",
        parameters={"size_mib": 16.0},
        versions={"python": "3"},
        host={"cores": 2},
        device={"kind": "twin"},
        profile="[drive]\n",
    )


def _result(folder: Path, target: str = "twin:x") -> Result:
    return Result(
        ssdlab="1",
        experiment="aging",
        target=target,
        virtual=True,
        seed=2**53 - 1,
        duration_s=1.5,
        parameters={"size_mib": 16.0},
        measures=[{"written_mib": 0.0, "read_s": 0.1, "read_s_all": [0.1, 0.2]}],
        findings={
            "slowdown": Finding(3.3, "x", 3.1, None, "because"),
            "recovers": Finding(value=False, unit="", low=None, high=None, why="so"),
        },
        verdict="It is slow.",
        warnings=[MeasurementWarning("virtual", "A sentence.")],
        folder=str(folder),
    )


def _recording() -> Recording:
    recording = Recording()
    texts = {"phase": "fill", "case": "", "job": "{}", "opened": None, "engine": "twin"}
    values = {**dict.fromkeys(STEPS.names[1:], 0), **texts}
    values["extents"] = None
    intervals = {name: np.array([1, 2], dtype=np.uint64) for name in INTERVALS.names[1:]}
    latency = {name: np.array([3], dtype=np.uint64) for name in LATENCY.names[1:]}
    fine = {name: np.array([3], dtype=np.uint64) for name in INTERVAL_LATENCY.names[1:]}
    recording.add(StepRow(values, intervals, latency, fine))
    recording.add(StepRow({**values, "phase": "flush", "extents": 7}))
    recording.add(StepRow({**values, "phase": "read"}, intervals, latency))
    recording.observe("temperature_c", 41.5)
    recording.observe("layer", detail="dm-crypt passes no TRIM")
    return recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete run."""
    made = make_folder(tmp_path / "results", "one")
    write_run(made, _manifest(), _recording(), _result(made))
    return made


def test_a_run_is_read_back_as_it_was_written(folder: Path) -> None:
    run = read_run(folder)
    assert (run.manifest, run.result) == (_manifest(), _result(folder))
    expected = _recording().tables()
    assert {name: table.to_pylist() for name, table in run.tables.items()} == {
        name: table.to_pylist() for name, table in expected.items()
    }
    assert {name: table.schema for name, table in run.tables.items()} == {
        "steps": STEPS,
        "intervals": INTERVALS,
        "latency": LATENCY,
        "interval_latency": INTERVAL_LATENCY,
        "observations": OBSERVATIONS,
    }


def test_a_folder_has_no_partial_files(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_steps_are_numbered_in_order_in_all_tables() -> None:
    tables = _recording().tables()
    assert tables["steps"]["step"].to_pylist() == [0, 1, 2]
    assert tables["intervals"]["step"].to_pylist() == [0, 0, 2, 2]
    assert tables["latency"]["step"].to_pylist() == [0, 2]
    assert tables["interval_latency"]["step"].to_pylist() == [0]


def test_missing_columns_are_null() -> None:
    recording = Recording()
    recording.add(StepRow({"phase": "read"}, {"start_ns": [1], "requests": [2], "bytes": [3]}))
    tables = recording.tables()
    assert tables["intervals"]["latency_ns_max"].to_pylist() == [None]
    assert tables["steps"]["foreign_cpu_s"].to_pylist() == [None]
    more = {"start_ns": [4, 5], "requests": [6, 7], "bytes": [8, 9], "latency_ns_max": [10, 11]}
    recording.add(StepRow({"phase": "read"}))
    recording.add(StepRow({"phase": "read"}, more))
    recording.add(StepRow({"phase": "read"}, {"start_ns": [12], "requests": [13], "bytes": [14]}))
    intervals = recording.tables()["intervals"]
    assert intervals["step"].to_pylist() == [0, 2, 2, 3]
    assert intervals["bytes"].to_pylist() == [3, 8, 9, 14]
    assert intervals["latency_ns_max"].to_pylist() == [None, 10, 11, None]


def test_columns_of_other_types_keep_all_digits() -> None:
    recording, large = Recording(), (1 << 63) + 1
    for times in ([large], np.array([large], np.uint64), np.array([7], np.int64)):
        recording.add(StepRow({}, {"start_ns": times, "requests": [1], "bytes": [1]}))
    assert recording.tables()["intervals"]["start_ns"].to_pylist() == [large, large, 7]
    recording.add(StepRow({}, {"start_ns": np.array([-1]), "requests": [1], "bytes": [1]}))
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        recording.tables()


def test_a_recording_without_steps_has_empty_tables_with_all_columns() -> None:
    tables = Recording().tables()
    assert [table.num_rows for table in tables.values()] == [0, 0, 0, 0, 0]
    assert tables["steps"].schema == STEPS


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_file_is_named_in_the_error(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UsageError, match=rf"not the folder of a finished run \(no {name}\)"):
        read_run(folder)


def test_observations_may_be_missing_as_in_older_versions(folder: Path) -> None:
    (folder / "observations.parquet").unlink()
    assert read_run(folder).tables["observations"].to_pylist() == []


def test_observations_have_the_number_of_steps_before_them(folder: Path) -> None:
    assert read_run(folder).tables["observations"].to_pylist() == [
        {"step": 3, "name": "temperature_c", "detail": "", "value": 41.5},
        {"step": 3, "name": "layer", "detail": "dm-crypt passes no TRIM", "value": None},
    ]


@pytest.mark.parametrize("content", [b"", b"{", b'{"run": 1}', b"\xff" * 100])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_refused_in_one_line(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read") as raised:
        read_run(folder)
    assert "\n" not in str(raised.value)


def test_a_results_folder_gives_its_finished_runs_oldest_first(tmp_path: Path) -> None:
    for name in ("20260102-b", "20260101-a", "20260103-c"):
        made = make_folder(tmp_path, name)
        write_run(made, _manifest(), _recording(), _result(made))
    make_folder(tmp_path, "20260104-killed")
    names = [path.name for path in find_runs(tmp_path)]
    assert names == ["20260101-a", "20260102-b", "20260103-c"]
    assert find_runs(tmp_path / "20260103-c") == [tmp_path / "20260103-c"]
    deeper = tmp_path / "20260104-d" / "20260104-e"
    deeper.mkdir(parents=True)
    (deeper / "result.json").touch()
    assert deeper not in find_runs(tmp_path, in_checkups=True), "no folder of a checkup"
    (deeper.parent / CHECKUP_FILE).touch()
    assert find_runs(tmp_path, in_checkups=True)[-1] == deeper


@pytest.mark.parametrize("name", ["", "missing", "a" * 300])
def test_a_path_without_runs_is_refused_with_what_to_give(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="give"):
        find_runs(tmp_path / name)


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("toshiba-xg5", "toshiba-xg5"),
        ("/mnt/My Data", "mnt-my-data"),
        ("/", "root"),
        (".", "here"),
        ("../../x.toml", "x-toml"),
    ],
)
def test_the_name_of_a_run_has_its_time_experiment_and_target(target: str, word: str) -> None:
    name = run_name("aging", target, STARTED)
    assert re.fullmatch(rf"20261121-101500-aging-{word}-[0-9a-f]{{4}}", name)


@given(st.text(max_size=300))
@example("x-" + 31 * "y")
def test_any_target_gives_a_short_folder_name_of_letters_and_digits(target: str) -> None:
    word = re.fullmatch(
        r"20261121-101500-aging-([a-z0-9-]{1,32})-[0-9a-f]{4}",
        run_name("aging", target, STARTED),
    )
    assert word is not None
    assert word[1].strip("-") == word[1]


def test_two_runs_of_the_same_second_have_different_names() -> None:
    assert len({run_name("aging", "twin:x", STARTED) for _ in range(8)}) > 1


def test_a_results_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for results in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="no run folder can be created there"):
            make_folder(results, "name")


def test_a_folder_without_a_result_says_how_to_resume_the_run(folder: Path) -> None:
    (folder / "result.json").unlink()
    with pytest.raises(UsageError, match=re.escape(f"ssdlab run resume {folder}")):
        read_run(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(UsageError, match="give a folder that `ssdlab run` created"):
        read_run(folder)


def test_no_room_for_a_run_folder_asks_for_space_instead_of_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(UsageError, match="free some space there, or give --out") as refusal:
        make_folder(tmp_path, "one")
    assert "permission" not in str(refusal.value)


def test_a_full_file_system_is_an_error_and_leaves_no_partial_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> int:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match=r"cannot be written there \(No space left"):
        write_run(folder, _manifest(), _recording(), _result(folder))
    assert list(folder.glob("*.part")) == []


def test_a_file_name_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    made = make_folder(tmp_path, "one")
    odd = "/mnt/d\udcff"
    write_run(made, _manifest(odd), _recording(), _result(made, odd))
    assert read_run(made).result.target == read_run(made).manifest.target == "/mnt/d\\xff"


def test_a_run_folder_may_have_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    made = make_folder(tmp_path / "r\udcff", "one")
    write_run(made, _manifest(), _recording(), _result(made))
    assert read_run(made).manifest == _manifest()


def test_json_is_one_object_and_ends_with_a_newline(folder: Path) -> None:
    text = encode_json(read_run(folder).result)
    assert text.endswith("}\n")
    assert msgspec.json.decode(text)["findings"]["slowdown"] == {
        "value": 3.3,
        "unit": "x",
        "low": 3.1,
        "high": None,
        "why": "because",
    }

"""A sweep's folder: a Parquet dataset in which each run counts once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep.dataset import (
    SweepManifest,
    numeric_keys,
    open_dataset,
    open_for_writing,
)
from ssdlab.sweep.execute import Outcome, execute
from ssdlab.sweep.spec import SweepRun


def _manifest(small: list[SweepRun]) -> SweepManifest:
    keys = [run.key for run in small]
    numeric = numeric_keys(small)
    return SweepManifest("0.1.0", "small", "grid", "toshiba-xg5", "", numeric, keys, 1)


def test_a_run_stored_twice_counts_once_and_success_replaces_failure(
    small: list[SweepRun], tmp_path: Path
) -> None:
    row = execute(small[0])
    with open_for_writing(tmp_path / "s", _manifest(small)) as dataset:
        dataset.store(Outcome(small[0], None, "its worker was killed", 2))
        assert [each["status"] for each in dataset.rows()] == ["failed"]
        assert dataset.done() == set()
        for _ in range(2):
            dataset.store(Outcome(small[0], row, "", 1))
        assert dataset.done() == {small[0].key}
    table = pyarrow.dataset.dataset(tmp_path / "s" / "runs").to_table()
    assert table.num_rows == 1
    [stored] = table.to_pylist()
    assert stored["ftl.spare"] == 0.1
    assert stored["ftl.victim"] == "greedy"
    assert stored["waf"] == row["waf"] > 1
    assert open_dataset(tmp_path / "s").rows() == [stored]


def test_runs_of_another_sweep_and_a_second_writer_are_refused(
    small: list[SweepRun], tmp_path: Path
) -> None:
    with open_for_writing(tmp_path, _manifest(small)) as dataset:
        dataset.store(Outcome(small[0], None, "", 2))
        with (
            pytest.raises(UsageError, match="another sweep is writing"),
            open_for_writing(tmp_path, dataset.manifest),
        ):
            pass
    with (
        pytest.raises(UsageError, match="contains 1 runs of another sweep"),
        open_for_writing(tmp_path, _manifest(small[1:])),
    ):
        pass


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        open_dataset(tmp_path)

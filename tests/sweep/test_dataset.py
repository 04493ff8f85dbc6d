"""A sweep's folder: a Parquet dataset in which a run counts once, whatever happens."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep.dataset import About, made, numeric_of, open_dataset
from ssdlab.sweep.design import Order
from ssdlab.sweep.here import Ended
from ssdlab.sweep.work import perform


def _about(small: list[Order]) -> About:
    keys = [order.key for order in small]
    return About("0.1.0", "small", "grid", "toshiba-xg5", "", numeric_of(small), keys, 1)


def test_a_run_kept_twice_counts_once_and_a_good_end_replaces_a_failed_one(
    small: list[Order], tmp_path: Path
) -> None:
    row = perform(small[0])
    with made(tmp_path / "s", _about(small)) as dataset:
        dataset.put(Ended(small[0], None, "its worker was killed", 2))
        assert [each["status"] for each in dataset.rows()] == ["failed"]
        assert dataset.done() == set()
        for _ in range(2):
            dataset.put(Ended(small[0], row, "", 1))
        assert dataset.done() == {small[0].key}
    table = pyarrow.dataset.dataset(tmp_path / "s" / "runs").to_table()
    assert table.num_rows == 1
    [found] = table.to_pylist()
    assert found["ftl.spare"] == 0.1
    assert found["ftl.victim"] == "greedy"
    assert found["waf"] == row["waf"] > 1
    assert open_dataset(tmp_path / "s").rows() == [found]


def test_runs_of_another_sweep_and_a_second_writer_are_refused(
    small: list[Order], tmp_path: Path
) -> None:
    with made(tmp_path, _about(small)) as dataset:
        dataset.put(Ended(small[0], None, "", 2))
        with pytest.raises(UsageError, match="another sweep writes"), made(tmp_path, dataset.about):
            pass
    with (
        pytest.raises(UsageError, match="holds 1 runs that are none"),
        made(tmp_path, _about(small[1:])),
    ):
        pass


def test_a_folder_with_a_damaged_description_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        open_dataset(tmp_path)

"""Classification of a drive's write cache: which source has priority."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.power_loss_protection import protection_of, protection_of_drives
from ssdlab.target import Twin


def _drive(**more: Any) -> dict[str, Any]:
    return {"name": "sda", "transport": "sata", "write_cache": "write back", **more}


@pytest.mark.parametrize(
    ("drive", "expected"),
    [
        (_drive(model="SOME SSD"), "unknown"),
        (_drive(model="SOME SSD", write_cache="write through"), "protected"),
        (_drive(model="SOME SSD", transport="nvme"), "volatile"),
        (_drive(model="SOME SSD", transport="nvme-tcp"), "volatile"),
        (_drive(model="SOME SSD", transport="virtio"), "unknown"),
        (_drive(model="INTEL SSDSC2BB480G6"), "protected"),
        (_drive(model="Samsung SSD 870 EVO 480GB"), "unknown"),
        (_drive(model="KXG50ZNV512G TOSHIBA", transport="nvme"), "volatile"),
        (_drive(model=None), "unknown"),
    ],
)
def test_a_profile_of_the_model_has_priority_over_the_kernel(
    drive: dict[str, Any], expected: str
) -> None:
    assert protection_of_drives([drive]).cache_class == expected


def test_with_several_drives_the_worst_class_counts() -> None:
    known, unknown = _drive(model="INTEL SSDSC2BB480G6"), _drive(model="SOME SSD")
    assert protection_of_drives([known]).cache_class == "protected"
    assert protection_of_drives([known, unknown]).cache_class == "unknown"
    assert protection_of_drives([]).cache_class == "unknown"


def test_a_twins_profile_is_not_read_but_the_users_data_sheet_is() -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 1 << 20)) as target:
        assert protection_of(target).cache_class == "unknown"
        assert protection_of(target, "protected").cache_class == "protected"

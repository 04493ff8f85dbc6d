"""What is said of a drive's write cache: who is believed, and before whom."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.runner.claim import claim_of, of_drives
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.target import Twin


def _drive(**more: Any) -> dict[str, Any]:
    return {"name": "sda", "transport": "sata", "write_cache": "write back", **more}


@pytest.mark.parametrize(
    ("drive", "word"),
    [
        (_drive(model="SOME SSD"), "unknown"),
        (_drive(model="SOME SSD", write_cache="write through"), "protected"),
        (_drive(model="SOME SSD", transport="nvme"), "volatile"),
        (_drive(model="SOME SSD", transport="nvme-tcp"), "volatile"),
        (_drive(model="SOME SSD", transport="virtio"), "unknown"),
        (_drive(model="INTEL SSDSC2BB480G6"), "protected"),
        (_drive(model="KXG50ZNV512G TOSHIBA", transport="nvme"), "volatile"),
        (_drive(model=None), "unknown"),
    ],
)
def test_a_profile_of_the_model_is_believed_before_the_kernel(
    drive: dict[str, Any], word: str
) -> None:
    assert of_drives([drive]).word == word


def test_of_several_drives_the_worst_counts() -> None:
    known, unknown = _drive(model="INTEL SSDSC2BB480G6"), _drive(model="SOME SSD")
    assert of_drives([known]).word == "protected"
    assert of_drives([known, unknown]).word == "unknown"
    assert of_drives([]).word == "unknown"


def test_a_twin_is_what_its_profile_says_unless_the_user_knows_better() -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 1 << 20)) as site:
        assert claim_of(site).word == "volatile"
        assert claim_of(site, "protected").word == "protected"

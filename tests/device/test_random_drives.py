"""The generator of random drives: what it draws."""

from __future__ import annotations

from random_drives import random_drive

DRIVES = [random_drive(seed) for seed in range(60)]


def test_the_same_seed_gives_the_same_drive() -> None:
    assert random_drive(7).profile == DRIVES[7].profile
    assert random_drive(7).profile != DRIVES[8].profile


def test_some_drives_empty_victims_at_once_and_some_fold_while_writing() -> None:
    at_once = [drive for drive in DRIVES if drive.get("ftl.pacing") == "victim"]
    dynamic = [drive for drive in DRIVES if drive.get("slc.mode") == "dynamic"]
    folded = [drive for drive in DRIVES if drive.get("slc.folding") == "while writing"]
    assert 5 <= len(at_once) <= 30
    assert 2 <= len(folded) < len(dynamic)
    assert all(drive.get("slc.mode") == "dynamic" for drive in folded)
    assert "folded while writing" in str(folded[0])

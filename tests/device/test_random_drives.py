"""The generator of random drives: what it draws."""

from __future__ import annotations

import pytest

from random_drives import random_drive
from ssdlab.device import Job, run_job

DRIVES = [random_drive(seed) for seed in range(60)]


def test_the_same_seed_gives_the_same_drive() -> None:
    assert random_drive(7).profile == DRIVES[7].profile
    assert random_drive(7).profile != DRIVES[8].profile


def test_a_larger_scale_makes_more_superblocks_of_about_the_same_size() -> None:
    for small in DRIVES[:10]:
        one, four = small.describe(), random_drive(small.seed, scale=4).describe()
        assert four["capacity_bytes"] == 4 * one["capacity_bytes"]
        assert four["superblock_bytes"] == one["superblock_bytes"]
        assert 3.9 < four["superblocks"] / one["superblocks"] < 4.1


def test_some_drives_empty_victims_at_once_and_some_fold_while_writing() -> None:
    at_once = [drive for drive in DRIVES if drive.get("ftl.pacing") == "victim"]
    dynamic = [drive for drive in DRIVES if drive.get("slc.mode") == "dynamic"]
    folded = [drive for drive in DRIVES if drive.get("slc.folding") == "while writing"]
    assert 5 <= len(at_once) <= 30
    assert 2 <= len(folded) < len(dynamic)
    assert all(drive.get("slc.mode") == "dynamic" for drive in folded)
    assert "folded while writing" in str(folded[0])


RARE = (
    "flash.keeps_page",
    "flash.independent_plane_reads",
    "flash.delay_limit",
    "ftl.reserve",
    "ftl.idle_reserve",
    "link.write_bandwidth",
)


@pytest.mark.parametrize("key", RARE)
def test_some_drives_have_what_few_drives_have(key: str) -> None:
    assert 2 <= sum(drive.get(key) is not None for drive in DRIVES) <= 20


def test_reads_for_partial_writes_do_not_wait_for_all_programs_of_a_full_buffer() -> None:
    # Without cache registers a die waits for its transfers: behind the booked transfers of a full
    # buffer's programs, each read would delay these further, without a bound.
    drive = random_drive(52000).open()
    size, written = 2 << 30, 64 << 20
    run_job(drive, Job("write", length_bytes=size, block_bytes=1 << 20, amount_bytes=size))
    took_ns = 0
    for seed in range(3):
        began = drive.now_ns()
        job = Job(
            "write",
            pattern="random",
            length_bytes=size,
            block_bytes=4096,
            amount_bytes=written,
            queue_depth=32,
            seed=seed,
        )
        run_job(drive, job)
        took_ns = drive.now_ns() - began
    counters = drive.counters()
    assert counters is not None
    assert counters["collection_moves"], "the drive collects"
    assert took_ns < 10e9

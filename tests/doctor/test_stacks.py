"""The doctor's verdicts on captured stacks: the codes are listed here, the whole text in snapshots.

To accept a change of the text: run with SSDLAB_WRITE_SNAPSHOTS=1, then review the diff.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from machine import CapturedMachine
from raid_stacks import RAID_STACKS
from rich.console import Console
from stacks import STACKS, roots_of
from zfs_stacks import ZFS_STACKS

from ssdlab.doctor.checks import Verdict, findings, judge, summary
from ssdlab.doctor.report import Report, render
from ssdlab.snapshot import Snapshot
from ssdlab.storage_stack.snapshot import read_snapshot
from ssdlab.warning import MeasurementWarning

SNAPSHOTS = Path(__file__).with_name("snapshots")

SERIOUS = {
    "laptop": ["bad trim-stopped dm-0"],
    "laptop_open": [],
    "laptop_off": ["bad misaligned-inside dm-1"],
    "laptop_as_user": [],
    "raid1": ["bad array-degraded md0", "warn trim-never-asked /srv"],
    "raid5": ["bad trim-stopped md0", "warn resync-fills md0"],
    "usb": ["warn trim-stopped sdb", "warn link-slow sdb"],
    "usb_unmap": ["warn trim-never-asked /media/backup"],
    "hba": ["bad media-errors sda", "bad trim-stopped sda", "warn link-errors sda"],
    "protected": [
        "bad write-cache-before-protected sda",
        "warn amplification sda",
        "warn trim-online-unqueued sda",
        "warn link-slow sda",
    ],
    "guest": ["bad no-barrier /", "warn trim-stopped vda"],
    "loop": ["warn trim-stopped loop0"],
    "zram": ["warn swap-busy /dev/sda2"],
    "btrfs": [
        "bad failing nvme1n1",
        "bad spare-blocks-low nvme1n1",
        "bad worn nvme1n1",
        "warn hot nvme1n1",
        "warn link-slow nvme1n1",
    ],
    "multipath": ["warn single-path dm-0"],
    "full": [
        "bad flush-off sda",
        "bad no-barrier /",
        "bad nearly-full /",
        "warn trim-never-asked /",
        "warn block-small /",
    ],
    "misaligned": ["bad misaligned sda1"],
    "memory": [],
    "rotating": [],
    "no_flush": ["bad flush-off dm-0"],
    "firmware_raid1": [],
    "firmware_raid5": ["bad trim-stopped md126", "warn resync-fills md126"],
    "perc": ["bad trim-stopped sda", "warn member-cache-volatile bus/0:megaraid,1"],
    "perc_without_tool": ["bad trim-stopped sda", "warn member-cache-volatile bus/0:megaraid,1"],
    "perc_as_user": ["bad trim-stopped sda"],
    "perc_two_volumes": [
        "bad trim-stopped sda",
        "bad trim-stopped sdb",
        "warn member-cache-volatile bus/0:megaraid,1",
    ],
    "smart_array": ["bad trim-stopped sda"],
    "smart_array_ssacli": ["bad trim-stopped sda"],
    "adaptec": [
        "bad trim-stopped sdb",
        "warn member-cache-volatile sdb:aacraid,4,0,8",
        "warn member-cache-volatile sdb:aacraid,4,0,9",
        "warn member-cache-volatile sdb:aacraid,4,0,10",
    ],
    "perc_12": ["bad trim-stopped sdg"],
    "passed_through": [],
    "zfs": ["bad zfs-ashift tank", "bad zfs-sync-off tank/db", "warn trim-never-asked /tank/db"],
    "zfs_autotrim": ["bad zfs-pool-degraded tank"],
    "zfs_untrimmable": ["warn trim-stopped /tank/db"],
}

ALL = STACKS | RAID_STACKS | ZFS_STACKS
ReadStack = Callable[[str], Snapshot]


@pytest.fixture
def read_stack(tmp_path: Path) -> ReadStack:
    """`read_stack(name)` -> the snapshot of that stack."""

    def read(name: str) -> Snapshot:
        machine = CapturedMachine(tmp_path / name)
        stack = ALL[name](machine)
        return read_snapshot(stack.target, roots_of(machine, stack), stack.probes())

    return read


def _serious(verdicts: list[Verdict]) -> list[str]:
    return [
        f"{verdict.severity} {verdict.code} {verdict.where.split(' ')[0]}"
        for verdict in verdicts
        if verdict.severity in {"bad", "warn"}
    ]


@pytest.mark.parametrize("name", ALL)
def test_each_stack_has_the_expected_problems_worst_first(read_stack: ReadStack, name: str) -> None:
    assert _serious(judge(read_stack(name))) == SERIOUS[name]


@pytest.mark.parametrize("name", ALL)
def test_the_report_of_each_stack_equals_its_snapshot(read_stack: ReadStack, name: str) -> None:
    text = _text(read_stack(name))
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("SSDLAB_WRITE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text()


def _text(stack: Snapshot) -> str:
    verdicts = judge(stack)
    warnings = [
        MeasurementWarning("unread", f"{u.what}: {u.why}; {u.command}") for u in stack.unread
    ]
    report = Report(
        ssdlab="0",
        target=stack.target,
        duration_s=0.0,
        measures=[],
        findings=findings(verdicts),
        verdict=summary(verdicts),
        verdicts=verdicts,
        warnings=warnings,
        stack=stack,
    )
    out = io.StringIO()
    render(report, Console(file=out, width=80), quiet=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("name", ALL)
def test_every_problem_has_evidence_a_cost_and_a_remedy(read_stack: ReadStack, name: str) -> None:
    for verdict in judge(read_stack(name)):
        assert verdict.says.endswith((".", "%"))
        assert verdict.evidence
        if verdict.severity in {"bad", "warn"}:
            assert verdict.costs, verdict.code
            assert verdict.remedy, verdict.code


def test_findings_that_share_a_code_are_named_by_their_place(read_stack: ReadStack) -> None:
    by_name = findings(judge(read_stack("btrfs")))
    assert (by_name["worn:nvme0n1"].value, by_name["worn:nvme1n1"].value) == (4.0, 104.0)
    assert by_name["failing"].value == "the spare blocks are below their threshold"


def test_the_summary_is_the_worst_verdict_and_the_counts(read_stack: ReadStack) -> None:
    assert summary(judge(read_stack("hba"))) == (
        "The drive could not read back stored data. (2 bad and 1 warning in all)"
    )
    assert summary(judge(read_stack("laptop_open"))).startswith("No problem found")


def test_without_root_unreadable_parts_are_listed_and_the_trim_verdict_is_the_same(
    read_stack: ReadStack,
) -> None:
    stack = read_stack("laptop_as_user")
    assert [unread.what for unread in stack.unread] == [
        "health of nvme0n1",
        "device-mapper tables of vg-root, cryptroot",
    ]
    assert all(unread.why == "it takes root" for unread in stack.unread)
    assert "trim-passes" in {verdict.code for verdict in judge(stack)}


def test_a_drive_is_checked_with_all_file_systems_on_it(read_stack: ReadStack) -> None:
    stack = read_stack("misaligned")
    assert [mount.mount_point for mount in stack.mounts] == ["/", "/home"]

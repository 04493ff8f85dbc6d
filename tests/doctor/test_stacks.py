"""What the doctor says of captured stacks: the codes by hand, the whole text as snapshots.

After a change that is meant: SSDLAB_WRITE_SNAPSHOTS=1 writes them anew; then read the difference.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from machine import CapturedMachine
from rich.console import Console
from stacks import STACKS, roots_of

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
    "raid5": ["bad trim-stopped md0"],
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
}

Looked = Callable[[str], Snapshot]


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    """`looked(name)` -> what was read of that stack."""

    def read(name: str) -> Snapshot:
        machine = CapturedMachine(tmp_path / name)
        stack = STACKS[name](machine)
        return read_snapshot(stack.target, roots_of(machine, stack), stack.probes())

    return read


def _serious(verdicts: list[Verdict]) -> list[str]:
    return [
        f"{verdict.severity} {verdict.code} {verdict.where.split(' ')[0]}"
        for verdict in verdicts
        if verdict.severity in {"bad", "warn"}
    ]


@pytest.mark.parametrize("name", STACKS)
def test_each_stack_has_its_verdicts_the_worst_first(looked: Looked, name: str) -> None:
    assert _serious(judge(looked(name))) == SERIOUS[name]


@pytest.mark.parametrize("name", STACKS)
def test_each_stack_is_told_as_its_snapshot_says(looked: Looked, name: str) -> None:
    text = _text(looked(name))
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


@pytest.mark.parametrize("name", STACKS)
def test_every_serious_verdict_has_evidence_a_cost_and_something_to_do(
    looked: Looked, name: str
) -> None:
    for verdict in judge(looked(name)):
        assert verdict.says.endswith((".", "%"))
        assert verdict.evidence
        if verdict.severity in {"bad", "warn"}:
            assert verdict.costs, verdict.code
            assert verdict.remedy, verdict.code


def test_findings_of_one_code_are_told_apart_by_their_place(looked: Looked) -> None:
    found = findings(judge(looked("btrfs")))
    assert (found["worn:nvme0n1"].value, found["worn:nvme1n1"].value) == (4.0, 104.0)
    assert found["failing"].value == "the spare blocks are below their threshold"


def test_one_sentence_says_the_worst_and_how_much_more_there_is(looked: Looked) -> None:
    assert summary(judge(looked("hba"))) == (
        "The drive could not read back what was stored in it. (2 bad, 1 to look at in all)"
    )
    assert summary(judge(looked("laptop_open"))).startswith("Nothing is wrong")


def test_an_ordinary_user_is_told_what_takes_root_and_gets_the_same_verdict_on_trim(
    looked: Looked,
) -> None:
    stack = looked("laptop_as_user")
    assert [unread.what for unread in stack.unread] == [
        "health of nvme0n1",
        "device-mapper tables of vg-root, cryptroot",
    ]
    assert all(unread.why == "it takes root" for unread in stack.unread)
    assert "trim-passes" in {verdict.code for verdict in judge(stack)}


def test_a_drive_is_judged_by_all_that_stands_on_it(looked: Looked) -> None:
    stack = looked("misaligned")
    assert [mount.mount_point for mount in stack.mounts] == ["/", "/home"]

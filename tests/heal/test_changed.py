"""A file that is changed during a heal, as by log rotation: it is refused, and no data is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_file import MakeFileSystem, MakeSample, SampleFile

from ssdlab.heal.file import heal_file
from ssdlab.heal.options import HealOptions
from ssdlab.heal.outcome import FileOutcome

M = 1 << 20


def _truncate(path: Path) -> None:
    os.truncate(path, 3 * M + 5)


def _remove(path: Path) -> None:
    path.unlink()


def _rotate(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_bytes(b"a new log")


def _heal_while(sample: SampleFile, label: str, change: Callable[[Path], None]) -> FileOutcome:
    """Heals all of a file, and changes it once during the phase `label`."""
    pending = [change]

    def progress(phase: str, done: int, _total: int) -> None:
        if phase == label and done and pending:
            pending.pop()(sample.path)

    outcome = heal_file(sample.path, HealOptions(everything=True), progress)
    assert not pending, f"there was no phase {label!r}"
    return outcome


@pytest.mark.parametrize("label", ["reading", "rewriting", "reading what was rewritten"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_truncate, f"it was truncated from {80 * M} to {3 * M + 5} bytes"),
        (_remove, "it was removed or renamed"),
        (_rotate, "it was replaced by another file"),
    ],
)
def test_a_file_that_is_rotated_away_is_refused_and_no_data_is_lost(
    label: str,
    change: Callable[[Path], None],
    reason: str,
    make_filesystem: MakeFileSystem,
    make_sample: MakeSample,
) -> None:
    sample = make_sample(make_filesystem("ext4", 500, direct_io=True), 80 * M)
    fd = os.open(sample.path, os.O_RDONLY)
    outcome = _heal_while(sample, label, change)
    assert outcome.refused is not None
    assert outcome.refused.code == "changed"
    assert outcome.refused.sentence == f"{reason} during the heal; no data is lost: run heal again"
    size = os.fstat(fd).st_size
    assert os.pread(fd, size, 0) == sample.content[:size]
    os.close(fd)


def test_a_file_that_grows_is_healed_up_to_its_old_size(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem("ext4", 500, direct_io=True), 80 * M)

    def grow(path: Path) -> None:
        with path.open("ab") as file:
            file.write(b"more" * M)

    outcome = _heal_while(sample, "rewriting", grow)
    assert (outcome.refused, outcome.moved_bytes) == (None, 80 * M)
    sample.check(sample.content + b"more" * M)

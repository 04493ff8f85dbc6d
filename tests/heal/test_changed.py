"""A file that changes under a heal, as logs do: it is left alone, and no drive is blamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from patients import Healing, Make, Patient

from ssdlab.heal.file import heal_file
from ssdlab.heal.options import Wish
from ssdlab.heal.outcome import FileOutcome

M = 1 << 20


def _truncate(path: Path) -> None:
    os.truncate(path, 3 * M + 5)


def _remove(path: Path) -> None:
    path.unlink()


def _rotate(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_bytes(b"a new log")


def _heal_while(healing: Healing, label: str, change: Callable[[Path], None]) -> FileOutcome:
    """Heals all of it, and changes it once in the phase that is called `label`."""
    left = [change]

    def watch(phase: str, done: int, _total: int) -> None:
        if phase == label and done and left:
            left.pop()(healing.path)

    found = heal_file(healing.path, Wish(everything=True), watch)
    assert not left, f"there was no {label}"
    return found


@pytest.mark.parametrize("label", ["reading", "rewriting", "reading what was rewritten"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_truncate, f"it was truncated from {80 * M} to {3 * M + 5} bytes while it was healed"),
        (_remove, "it was removed or renamed while it was healed"),
        (_rotate, "another file took its name while it was healed"),
    ],
)
def test_a_file_that_is_rotated_away_is_skipped_and_nothing_is_lost(
    label: str,
    change: Callable[[Path], None],
    told: str,
    make_filesystem: Make,
    patient: Patient,
) -> None:
    healing = patient(make_filesystem("ext4", 500), 80 * M)
    held = os.open(healing.path, os.O_RDONLY)
    found = _heal_while(healing, label, change)
    assert found.refused is not None
    assert found.refused.code == "changed"
    assert found.refused.sentence == f"{told}; nothing is lost: run heal again"
    size = os.fstat(held).st_size
    assert os.pread(held, size, 0) == healing.content[:size]
    os.close(held)


def test_a_file_that_grows_is_healed_as_far_as_it_was_there(
    make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem("ext4", 500), 80 * M)

    def grow(path: Path) -> None:
        with path.open("ab") as file:
            file.write(b"more" * M)

    found = _heal_while(healing, "rewriting", grow)
    assert (found.refused, found.moved_bytes) == (None, 80 * M)
    healing.check(healing.content + b"more" * M)

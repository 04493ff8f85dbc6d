"""The cost of a run in words: what it writes, and how long it takes, on drives that can do that."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ssdlab.runner.budget import budget

GIB = 1 << 30


@dataclass
class _Plan:
    """A plan that writes up to `write_bytes`; `amounts` is its work by kind."""

    write_bytes: int
    amounts: dict[str, float]

    def work(self) -> dict[str, float]:
        """The work by kind."""
        return self.amounts


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (_Plan(GIB, {"fill": 1.0 * GIB}), "writes up to 1 GiB, about 3 s on a SATA drive"),
        (
            _Plan(10 * GIB, {"fill": 0.0, "timed": 10.0}),
            "writes up to 10 GiB on a fast drive; about 10 s on a SATA drive",
        ),
    ],
)
def test_no_sata_drive_is_said_to_write_what_only_a_fast_one_can(
    plan: _Plan, sentence: str
) -> None:
    assert budget(plan, []).sentence == sentence  # type: ignore[arg-type]

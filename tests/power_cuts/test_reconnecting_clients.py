"""Power cuts under eight clients of both protocols that reconnect at once.

`python bench/cuts.py` runs the same for thousands of cuts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from director import CutOptions
from history import Twin
from served_run import Run, run_served


@pytest.mark.parametrize(
    ("twin", "pace", "in_file", "cuts"),
    [
        (Twin.VOLATILE, "none", False, 40),
        (Twin.VOLATILE, "real", True, 10),
        (Twin.PROTECTED, "none", True, 15),
        (Twin.PROTECTED, "real", False, 10),
        (Twin.LYING, "none", False, 15),
    ],
)
def test_cuts_under_clients_that_reconnect_at_once(
    twin: Twin, pace: str, in_file: bool, cuts: int, tmp_path: Path
) -> None:
    outcome = run_served(tmp_path, Run(CutOptions(cuts), twin, pace, in_file))
    tally = outcome.tally
    assert not tally["rules_broken"], "\n".join([str(tally), *outcome.broken_rules[:20]])
    assert not tally["server_failed"], outcome.messages
    assert tally["cuts_counted"] == cuts
    assert tally["pauses"] == cuts // 5
    # Otherwise the run has tested nothing.
    assert tally["connections"] > cuts
    assert tally["units_flushed"] > 10 * cuts
    assert (tally["units_reverted"] > 0) == (twin is not Twin.PROTECTED)
    assert (tally["lost_after_flush"] > 0) == (twin is Twin.LYING)

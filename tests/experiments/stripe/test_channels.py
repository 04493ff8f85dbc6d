"""Whether a unit is one die, by made-up times of single reads."""

from __future__ import annotations

import pytest

from ssdlab.experiments.stripe.channels import Channel, is_one_die
from ssdlab.experiments.stripe.probes import (
    GRAIN,
    KIB,
    MIB,
    Probe,
    ProbeLog,
    ProbeResult,
    run_procedure,
)

CHANNEL = Channel(64 * KIB, 4, 20_000.0, (0, 256 * MIB))


@pytest.mark.parametrize(
    ("single_us", "back_us", "expected"),
    [
        (52.6, 30.0, True),  # 2.6 us more than command and tR: a transfer while the die senses
        (50.0, 30.0, True),  # nothing more: the die does not sense while it transfers
        (58.0, 30.0, False),  # 8 us more: tR of one of several dies
        (50.0, 49.0, False),  # flash served the block just written
    ],
)
def test_a_single_read_that_takes_little_more_than_one_of_many_shows_one_die(
    single_us: float, back_us: float, expected: bool
) -> None:
    def measure(probe: Probe) -> ProbeResult:
        if probe.writes is None:
            return ProbeResult(GRAIN / MIB / (1e-6 * single_us), 0.0)
        assert probe.writes.reads_back
        return ProbeResult(1.0, 0.0, read_ns=1e3 * back_us)

    assert run_procedure(is_one_die(ProbeLog(), CHANNEL), measure) is expected

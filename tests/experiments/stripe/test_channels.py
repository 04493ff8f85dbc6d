"""Whether a unit is one die, by made-up times of single reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssdlab.experiments.stripe.channels import Channel, dies_of_channel, is_one_die
from ssdlab.experiments.stripe.probes import (
    GRAIN,
    KIB,
    MIB,
    Probe,
    ProbeLog,
    ProbeResult,
    run_procedure,
)

CHANNEL = Channel(64 * KIB, 4, 20_000.0, 16 * KIB, (0, 256 * MIB))
MEDIUM = replace(CHANNEL, unit_bytes=4 * KIB)
SLOW = replace(CHANNEL, unit_ns=150_000.0)  # at most 104 MiB/s


@pytest.mark.parametrize(
    ("channel", "single_us", "back_us", "expected"),
    [
        (CHANNEL, 52.6, 30.0, True),  # 2.6 us more than command and tR: a transfer while it senses
        (CHANNEL, 50.0, 30.0, True),  # nothing more: the die does not sense while it transfers
        (CHANNEL, 53.0, 30.0, False),  # 3 us more: tR of one of several dies
        (MEDIUM, 55.0, 30.0, True),  # 5 us more, and too fast a tR for 195 MiB/s
        (MEDIUM, 57.0, 30.0, False),  # 7 us more
        (CHANNEL, 50.0, 49.0, False),  # flash served the block just written
        (SLOW, 188.0, 30.0, True),  # 8 us more, and too fast a tR for channels so slow
        (SLOW, 205.0, 30.0, False),  # 25 us more
    ],
)
def test_a_single_read_that_takes_little_more_than_one_of_many_shows_one_die(
    channel: Channel, single_us: float, back_us: float, expected: bool
) -> None:
    def measure(probe: Probe) -> ProbeResult:
        if probe.writes is None:
            return ProbeResult(GRAIN / MIB / (1e-6 * single_us), 0.0)
        assert probe.writes.reads_back
        return ProbeResult(1.0, 0.0, read_ns=1e3 * back_us)

    assert run_procedure(is_one_die(ProbeLog(), channel), measure) is expected


@pytest.mark.parametrize(("wait_us", "expected"), [(1000.0, 1), (280.0, 1), (230.0, None)])
def test_equal_waits_of_few_reads_that_a_transfer_may_explain_do_not_show_one_die(
    wait_us: float, expected: int | None
) -> None:
    """With 1.5 waits for each page of three mapping units, each may be one for a transfer."""
    channel = replace(CHANNEL, unit_ns=80_000.0)  # 2 mapping units to a wait take 160 us

    def measure(probe: Probe) -> ProbeResult:
        assert probe.writes is not None
        share = 1 / (2 * probe.writes.reads * channel.units)
        wait_ns = 1e3 * wait_us
        return ProbeResult(1.0, 0.0, share, share * wait_ns, share, wait_ns, read_ns=120_000.0)

    assert run_procedure(dies_of_channel(ProbeLog(), channel), measure) == expected

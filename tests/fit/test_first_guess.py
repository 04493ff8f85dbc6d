"""Where the search starts for the time of a read and of a flush."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.fit.first_guess import guess
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.parameters import search_space
from ssdlab.profiles.toml_edit import get_value
from ssdlab.records import Finding
from ssdlab.units import parse_duration

START = "samsung-970-evo-plus-500"


@pytest.mark.parametrize(("stripe_kib", "read_us"), [(None, 80), (64.0, 60)])
def test_the_slowest_reads_of_stripe_wait_for_one_die(
    stripe_kib: float | None, read_us: float
) -> None:
    rates = {4.0: 800.0, 64.0: 4096 / 60e-6 / 2**20, 512.0: 4096 / 80e-6 / 2**20}
    cells = tuple(Cell((at,), "read_mib_per_s", rate) for at, rate in rates.items())
    findings = {"stripe_kib": Finding(stripe_kib, "KiB", None, None, "")}
    results = [Measurement("stripe", "", "box", cells, findings)]
    space = search_space(profiles.load(START), ("stripe",))
    times = get_value(guess(profiles.load(START), results, space, "test"), "flash.read")
    mean = sum(parse_duration(each) for each in times) / len(times)
    assert mean == pytest.approx(read_us * 1e-6, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "flush_us", "seconds"),
    [("volatile", 1500.0, 0.0), ("protected or ignores flush", 120.0, 100e-6)],
)
def test_a_flush_that_waits_for_flash_has_no_time_of_its_own_at_first(
    kind: str, flush_us: float, seconds: float
) -> None:
    assert parse_duration(get_value(profiles.load(START), "buffer.flush_overhead")) == 760e-6
    findings = {
        "class": Finding(kind, "", None, None, ""),
        "flush_us": Finding(flush_us, "us", None, None, ""),
    }
    writes = Cell(("random 4k", "write"), "mean", 4096 / 20e-6 / 2**20, unit="MiB/s")
    results = [
        Measurement("fsync", "", "box", findings=findings),
        Measurement("suite", "", "box", (writes,)),
    ]
    space = search_space(profiles.load(START), ("fsync", "suite"))
    text = guess(profiles.load(START), results, space, "test")
    assert parse_duration(get_value(text, "buffer.flush_overhead")) == pytest.approx(seconds)


@pytest.mark.parametrize("name", ["buffered_mib_per_s", "cached_mib_per_s"])
def test_the_link_is_at_least_as_fast_as_a_buffer_is_filled(name: str) -> None:
    reads = (Cell((4.0,), "read_mib_per_s", 700.0),)
    findings = {name: Finding(3000.0, "MiB/s", None, None, "")}
    results = [
        Measurement("stripe", "", "box", reads),
        Measurement("cache", "", "box", findings=findings),
    ]
    space = search_space(profiles.load(START), ("stripe", "split", "cache"))
    link = get_value(guess(profiles.load(START), results, space, "test"), "link.bandwidth")
    assert float(link.split()[0]) * 1e6 == pytest.approx(3000 * 2**20, rel=0.01)

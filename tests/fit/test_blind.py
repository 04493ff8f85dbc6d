"""A twin is found again from its own results alone, by a fit from another profile."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.fit.fitted import HELD_OUT, NOT_FITTED, Fitted, Sheet, fit
from ssdlab.fit.measured import Measured
from ssdlab.fit.objective import CAPACITY, MIB, course_of, evidence_of
from ssdlab.profiles.toml_edit import number, with_number
from ssdlab.records import Finding

CHANGES = {
    "flash.read": ["56 us", "70 us", "84 us"],
    "flash.channels": 4,
    "flash.dies_per_channel": 3,
    "flash.program": "1100 us",
    "ftl.chunk": "64 KiB",
    "ftl.spare": 0.15,
}


def _truth() -> str:
    text = profiles.load("toshiba-xg5")
    for key, value in CHANGES.items():
        text = with_number(text, key, value)
    return text


def _stripe(text: str) -> Measured:
    plan, course = stripe.Plan(128 * MIB, 2, 4096, 5), course_of(text)
    stripe.measure(course, plan)
    done = stripe_analysis.conclude(evidence_of(course, plan))
    rows = tuple(cells_of("stripe", done.measures))
    return Measured("stripe", "box", "box", rows, done.findings, plan.parameters())


def _steady(text: str) -> Measured:
    plan = steady.Plan(CAPACITY, CAPACITY, drive_writes=2.0, settle_s=3.0, seed=5)
    course = course_of(text)
    steady.measure(course, plan)
    done = steady_analysis.conclude(evidence_of(course, plan))
    return Measured("steady", "box", "box", (), done.findings, plan.parameters())


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    truth = _truth()
    sheet = Sheet(None, (_stripe(truth), _steady(truth)), ("stripe:4",))
    return fit(profiles.load("toshiba-xg5"), sheet, "test", lambda _done, _all: None)


def test_chunk_dies_spare_and_read_time_are_found_within_a_tenth(fitted: Fitted) -> None:
    truth, found = (describe_twin("box", text, CAPACITY) for text in (_truth(), fitted.profile))
    assert found["chunk_bytes"] == truth["chunk_bytes"]
    assert found["dies"] == truth["dies"] == 12
    assert found["spare"] == pytest.approx(truth["spare"], rel=0.1)
    read = [float(each.split()[0]) for each in number(fitted.profile, "flash.read")]
    assert sum(read) / 3 == pytest.approx(70, rel=0.1)
    program = float(number(fitted.profile, "flash.program").split()[0])
    assert program == pytest.approx(1100, rel=0.1)


def test_a_chunk_and_units_alone_are_taken_and_nothing_else_is_told() -> None:
    findings = {
        name: Finding(value, "", None, None, "")
        for name, value in {"chunk_kib": 64.0, "units": 6}.items()
    }
    sheet = Sheet(None, (Measured("stripe", "", "table", findings=findings),))
    found = fit(profiles.load("toshiba-xg5"), sheet, "test", lambda _done, _all: None)
    told = {each.key: each.told for each in found.parameters}
    assert number(found.profile, "ftl.chunk") == "64 KiB"
    assert number(found.profile, "flash.channels") == 6
    assert not told["flash.read"]
    assert found.checks == ()


def test_what_is_inferred_is_marked_as_fitted_and_the_rest_keeps_its_source(
    fitted: Fitted,
) -> None:
    lines = fitted.profile.splitlines()
    [chunk] = [line for line in lines if line.startswith("chunk =")]
    assert 'value = "64 KiB", source = "test", kind = "fitted"' in chunk
    [page] = [line for line in lines if line.startswith("page =")]
    assert page in profiles.load("toshiba-xg5").splitlines()


def test_bounds_contain_the_truth_and_checks_say_what_was_not_fitted(fitted: Fitted) -> None:
    spare = next(each for each in fitted.parameters if each.key == "ftl.spare")
    assert spare.low < 0.15 < spare.high
    notes = {(each.cell.name, each.cell.label): each.note for each in fitted.checks}
    assert notes["iops", ""] == NOT_FITTED
    assert notes["read_mib_per_s", "4"] == HELD_OUT
    assert {each.experiment for each in fitted.checks} == {"stripe", "steady"}

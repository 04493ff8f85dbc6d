"""A fit that starts from another profile recovers a twin from its results alone."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.fit.checks import HELD_OUT, NOT_FITTED
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, MIB, candidate_session, evidence_of
from ssdlab.fit.results import FitInput
from ssdlab.profiles.toml_edit import get_value, set_value
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
        text = set_value(text, key, value)
    return text


def _stripe(text: str) -> Measurement:
    plan, session = stripe.Plan(128 * MIB, 2, 4096, 5), candidate_session(text)
    stripe.measure(session, plan)
    conclusion = stripe_analysis.conclude(evidence_of(session, plan))
    rows = tuple(cells_of("stripe", conclusion.measures))
    return Measurement("stripe", "box", "box", rows, conclusion.findings, plan.parameters())


def _steady(text: str) -> Measurement:
    plan = steady.Plan(CAPACITY, CAPACITY, drive_writes=2.0, settle_s=3.0, seed=5)
    session = candidate_session(text)
    steady.measure(session, plan)
    conclusion = steady_analysis.conclude(evidence_of(session, plan))
    return Measurement("steady", "box", "box", (), conclusion.findings, plan.parameters())


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    truth = _truth()
    fit_input = FitInput((_stripe(truth), _steady(truth)), held_out=("stripe:4",))
    return fit(profiles.load("toshiba-xg5"), fit_input, "test")


def test_chunk_and_dies_are_exact_and_spare_tr_tprog_within_ten_percent(
    fitted: Fitted,
) -> None:
    truth, twin = (describe_twin("box", text, CAPACITY) for text in (_truth(), fitted.profile))
    assert twin["chunk_bytes"] == truth["chunk_bytes"]
    assert twin["dies"] == truth["dies"] == 12
    assert twin["spare"] == pytest.approx(truth["spare"], rel=0.1)
    read = [float(text.split()[0]) for text in get_value(fitted.profile, "flash.read")]
    assert sum(read) / 3 == pytest.approx(70, rel=0.1)
    program = float(get_value(fitted.profile, "flash.program").split()[0])
    assert program == pytest.approx(1100, rel=0.1)


def test_a_table_with_chunk_and_units_determines_nothing_else() -> None:
    findings = {
        name: Finding(value, "", None, None, "")
        for name, value in {"chunk_kib": 64.0, "units": 6}.items()
    }
    fit_input = FitInput((Measurement("stripe", "", "table", findings=findings),))
    fitted = fit(profiles.load("toshiba-xg5"), fit_input, "test")
    determined = {each.key: each.determined for each in fitted.parameters}
    assert get_value(fitted.profile, "ftl.chunk") == "64 KiB"
    assert get_value(fitted.profile, "flash.channels") == 6
    assert not determined["flash.read"]
    assert fitted.checks == ()


def test_changed_numbers_are_marked_as_fitted_and_the_others_keep_their_source(
    fitted: Fitted,
) -> None:
    lines = fitted.profile.splitlines()
    [chunk] = [line for line in lines if line.startswith("chunk =")]
    assert 'value = "64 KiB", source = "test", kind = "fitted"' in chunk
    [page] = [line for line in lines if line.startswith("page =")]
    assert page in profiles.load("toshiba-xg5").splitlines()


def test_intervals_contain_the_truth_and_checks_name_what_was_not_fitted(fitted: Fitted) -> None:
    spare = next(each for each in fitted.parameters if each.key == "ftl.spare")
    assert spare.low < 0.15 < spare.high
    notes = {(each.cell.name, each.cell.label): each.note for each in fitted.checks}
    assert notes["iops", ""] == NOT_FITTED
    assert notes["read_mib_per_s", "4"] == HELD_OUT
    assert {each.experiment for each in fitted.checks} == {"stripe", "steady"}

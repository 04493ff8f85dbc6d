"""The report: bounds, verdicts, and what must not count."""

from __future__ import annotations

import pytest

from ssdlab.witness.summary import Control, Look, looks_of, summarize


def look(
    kinds: dict[str, int] | None = None,
    *,
    counts: bool = True,
    control: Control = "none",
    software: tuple[str, ...] = (),
) -> Look:
    return Look("r", 1, control, counts, software, kinds or {}, 10, 4, 100)


def test_clean_cuts_bound_the_rate_by_cut_and_by_request() -> None:
    found = summarize([look()] * 59)
    rate = found["findings"]["loss_rate_per_cut"]
    assert rate["high"] == pytest.approx(1 - 0.05 ** (1 / 59))
    assert found["findings"]["loss_rate_per_request"]["high"] == pytest.approx(
        1 - 0.05 ** (1 / 590)
    )
    assert not found["bad"]
    assert found["verdict"].startswith("No loss in 59 cuts: at most 0.05 of cuts lose data (95 %).")


def test_a_few_clean_cuts_ask_for_more() -> None:
    verdict = summarize([look()] * 5)["verdict"]
    assert "at most 0.45" in verdict
    assert "59 clean cuts would say 5%" in verdict


def test_one_loss_is_a_bad_finding() -> None:
    found = summarize([look(), look({"stale": 3, "torn": 1})])
    assert found["bad"]
    assert found["findings"]["kinds"]["value"] == {"stale": 3, "torn": 1}
    assert "does not keep" in found["verdict"]


def test_software_that_sends_no_flush_is_blamed_before_the_drive() -> None:
    found = summarize([look({"stale": 3}, software=("no barriers",))])
    assert found["bad"]
    assert "software" in found["verdict"]
    assert "no barriers" in found["warnings"]


def test_a_look_without_proof_of_lost_power_does_not_count() -> None:
    found = summarize([look(counts=False)] * 3)
    assert found["findings"]["cuts"]["value"] == 0
    assert found["findings"]["loss_rate_per_cut"]["high"] == 1
    assert found["verdict"].startswith("No verdict: nothing is missing, which shows nothing")
    assert "3 looks had no proof" in found["warnings"][0]


def test_a_loss_without_proof_of_lost_power_is_told_and_no_drive_condemned() -> None:
    found = summarize([look({"stale": 2}, counts=False), look(counts=False)])
    assert "is missing in 1 of 2 looks" in found["verdict"]
    assert found["verdict"].startswith("No verdict on the drive")
    assert not found["bad"]


def test_a_loss_in_the_negative_control_condemns_no_drive() -> None:
    found = summarize([look({"lost": 1}, control="negative"), look({"lost": 1})])
    assert found["bad"]
    assert "no drive can be judged" in found["verdict"]


def test_a_positive_control_that_loses_is_no_bad_finding_and_one_that_does_not_is_told() -> None:
    lost = summarize([look(), look({"stale": 9}, control="positive")])
    kept = summarize([look(), look(control="positive")])
    assert not lost["bad"]
    assert not any("positive control lost nothing" in each for each in lost["warnings"])
    assert any("positive control lost nothing" in each for each in kept["warnings"])


def test_of_several_looks_at_one_round_the_first_counts() -> None:
    events = [
        {
            "event": "verified",
            "round": 1,
            "control": "none",
            "proof": {"level": "attested"},
            "software": [],
            "judgement": {
                "kinds": kinds,
                "durable": 5,
                "in_flight": {"requests": 2, "near_misses": 1},
            },
        }
        for kinds in ({"lost": 1}, {})
    ]
    assert [each.kinds for each in looks_of("r", list(events))] == [{"lost": 1}]

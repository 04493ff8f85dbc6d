"""Summary of many cuts: bounds, verdicts, and verifications that must not count."""

from __future__ import annotations

import pytest

from ssdlab.witness.summary import Control, Verification, summarize, verifications_of


def verification(
    kinds: dict[str, int] | None = None,
    *,
    counts: bool = True,
    control: Control = "none",
    software: tuple[str, ...] = (),
) -> Verification:
    return Verification("r", 1, control, counts, software, kinds or {}, 10, 4, 100)


def test_clean_cuts_bound_the_rate_by_cut_and_by_request() -> None:
    summary = summarize([verification()] * 59)
    rate = summary["findings"]["loss_rate_per_cut"]
    assert rate["high"] == pytest.approx(1 - 0.05 ** (1 / 59))
    assert summary["findings"]["loss_rate_per_request"]["high"] == pytest.approx(
        1 - 0.05 ** (1 / 590)
    )
    assert not summary["bad"]
    assert summary["verdict"].startswith(
        "No loss in 59 cuts: at most 0.05 of cuts lose data (95 %)."
    )


def test_after_few_clean_cuts_the_verdict_says_how_many_are_needed() -> None:
    verdict = summarize([verification()] * 5)["verdict"]
    assert "at most 0.45" in verdict
    assert "59 clean cuts would bound it at 5%" in verdict


def test_one_loss_is_a_bad_finding() -> None:
    summary = summarize([verification(), verification({"stale": 3, "torn": 1})])
    assert summary["bad"]
    assert summary["findings"]["kinds"]["value"] == {"stale": 3, "torn": 1}
    assert "does not keep" in summary["verdict"]


def test_software_that_sends_no_flush_is_blamed_before_the_drive() -> None:
    summary = summarize([verification({"stale": 3}, software=("no barriers",))])
    assert summary["bad"]
    assert "software" in summary["verdict"]
    assert "no barriers" in summary["warnings"]


def test_a_verification_without_proof_of_power_loss_does_not_count() -> None:
    summary = summarize([verification(counts=False)] * 3)
    assert summary["findings"]["cuts"]["value"] == 0
    assert summary["findings"]["loss_rate_per_cut"]["high"] == 1
    assert summary["verdict"].startswith("No verdict: nothing is missing, but nothing shows")
    assert "3 verifications have no proof" in summary["warnings"][0]


def test_a_loss_without_proof_of_power_loss_is_reported_but_not_blamed_on_the_drive() -> None:
    summary = summarize([verification({"stale": 2}, counts=False), verification(counts=False)])
    assert "is missing in 1 of 2 verifications" in summary["verdict"]
    assert summary["verdict"].startswith("No verdict on the drive")
    assert not summary["bad"]


def test_a_loss_in_the_negative_control_is_not_blamed_on_the_drive() -> None:
    summary = summarize([verification({"lost": 1}, control="negative"), verification({"lost": 1})])
    assert summary["bad"]
    assert "the drive cannot be judged" in summary["verdict"]


def test_a_positive_control_must_lose_data_or_there_is_a_warning() -> None:
    lost = summarize([verification(), verification({"stale": 9}, control="positive")])
    kept = summarize([verification(), verification(control="positive")])
    assert not lost["bad"]
    assert not any("positive control lost nothing" in each for each in lost["warnings"])
    assert any("positive control lost nothing" in each for each in kept["warnings"])


def test_only_the_first_verification_of_a_round_counts() -> None:
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
    assert [each.kinds for each in verifications_of("r", list(events))] == [{"lost": 1}]

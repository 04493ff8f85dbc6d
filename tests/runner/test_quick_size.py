"""`--quick` without a size uses what a small target has room for, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab import target
from ssdlab.errors import TargetError
from ssdlab.experiments import Aging, Fragments, Placement, Steady
from ssdlab.experiments.registry import experiment_of
from ssdlab.runner import quick_size
from ssdlab.runner.parameters import MIB
from ssdlab.runner.run import RunRequest, make_request
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.target import NO_CONSENT, Directory, Target, Twin


def _request(parameters: Any, wanted: Target) -> RunRequest:
    return make_request(experiment_of(parameters), parameters, wanted, NO_CONSENT, 0)


def test_a_twin_without_room_for_the_usual_size_is_used_as_a_whole() -> None:
    request = _request(Fragments(quick=True), Twin("toshiba-xg5", 1 << 30))
    assert 512 * MIB <= request.plan.size <= 1024 * MIB
    assert request.note == "--quick: twin:toshiba-xg5 has room for 520 MiB instead of 2.008 GiB"
    assert request.command_options == {"--size": "1GiB", "--quick": True}


def test_a_full_file_system_gives_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_size, "room_for", lambda _path, wanted: min(wanted, 100 * MIB + 5))
    request = _request(Aging(quick=True), Directory(str(tmp_path)))
    assert request.plan.size == 100 * MIB
    assert "has room for 100 MiB instead of 512 MiB" in request.note


@pytest.mark.parametrize(
    "parameters",
    [Aging(quick=True), Steady(quick=True), Fragments(quick=True), Fragments(size="2056MiB")],
)
def test_with_room_nothing_changes(parameters: Any) -> None:
    request = _request(parameters, Twin("toshiba-xg5", 4 << 30))
    assert request.note == ""
    assert "--size" not in (request.command_options or {}) or parameters.size


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [
        *((Fragments(), "give --quick, a smaller --size"), (Aging(), "give --quick, a smaller")),
        *(
            (Aging(size="2GiB"), "give a smaller --size"),
            (Aging(size="2GiB", quick=True), "give a"),
        ),
    ],
)
def test_a_refusal_names_quick_if_it_needs_less(parameters: Any, hint: str) -> None:
    with pytest.raises(TargetError, match=hint):
        _request(parameters, Twin("toshiba-xg5", 1 << 30))


@pytest.mark.parametrize(
    "parameters", [Fragments(), Fragments(size="2056MiB", quick=True), Aging(size="2GiB")]
)
def test_a_size_that_was_given_or_a_full_run_is_not_reduced(parameters: Any) -> None:
    with pytest.raises(TargetError, match=r"holds 1 GiB, less than"):
        _request(parameters, Twin("toshiba-xg5", 1 << 30))


def test_with_less_than_the_least_the_usual_size_stays_and_is_refused_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_size, "room_for", lambda _path, _wanted: 15 * MIB)
    request = _request(Aging(quick=True), Directory(str(tmp_path)))
    assert request.plan.size == 512 * MIB
    assert request.note == ""


def test_a_small_block_device_is_used_as_a_whole_and_not_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = BlockDevice("sdx", 8, 0, "sdx", "sata", size=100 * MIB)
    monkeypatch.setattr(quick_size, "device_at", lambda _path: disk)
    smaller = quick_size.smaller(Aging(quick=True), target.BlockDevice("/dev/absent"), 512 * MIB)
    assert isinstance(smaller, Aging)
    assert smaller.size == 100 * MIB


def test_an_experiment_without_a_size_is_left_alone() -> None:
    assert quick_size.smaller(Placement(quick=True), Twin("placement-study"), 1 << 60) is None

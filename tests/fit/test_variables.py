"""Choices keep what the results show, such as all dies; a ratio follows another number."""

from __future__ import annotations

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.fit.first_guess import guess
from ssdlab.fit.parameters import (
    BUFFER,
    DIES_MAX,
    PAGE,
    PROTECTED,
    TYPES,
    SearchSpace,
    search_space,
    within_overheads,
)
from ssdlab.fit.solving import Solution, candidate_profile
from ssdlab.fit.variables import Choice, Dies, Protection, Scale, Suspension, Time
from ssdlab.profiles.toml_edit import get_value, set_value, set_values
from ssdlab.units import parse_size

START = "toshiba-xg5"
KNOWN = ("flash.dies_per_channel",)


def _choice(key: str, experiments: tuple[str, ...], known: tuple[str, ...] = ()) -> Choice:
    space = search_space(profiles.load(START), experiments, known)
    [choice] = [choice for choice in space.choices if choice.key == key]
    return choice


@pytest.mark.parametrize("size", ["4 KiB", "8 KiB", "64 KiB", "128 KiB"])
def test_a_multi_plane_page_has_the_chosen_size_whatever_the_planes(size: str) -> None:
    choice = _choice(PAGE, ("split",))
    text = choice.apply(profiles.load(START), size)
    twin = describe_twin("box", text)
    assert twin["planes"] * twin["page_bytes"] == int(size.removesuffix(" KiB")) << 10
    assert choice.value_in(text) == size


def test_the_start_profiles_own_page_is_among_the_choices_and_costs_nothing() -> None:
    choice = _choice(PAGE, ("suite",))
    own = choice.value_in(profiles.load(START))
    assert dict(zip(choice.values, choice.penalties, strict=True))[own] == 0
    assert len(choice.values) >= 6


def test_another_number_of_channels_keeps_the_dies() -> None:
    choice = _choice("flash.channels", ("split",), KNOWN)
    dies = describe_twin("box", profiles.load(START))["dies"]
    for value in choice.values:
        text = choice.apply(profiles.load(START), value)
        assert get_value(text, "flash.channels") == value
        assert describe_twin("box", text)["dies"] == dies


def test_dies_that_no_stripe_shows_are_searched_far_from_the_start_profile() -> None:
    choice = _choice("flash.dies_per_channel", ("suite",))
    channels = get_value(profiles.load(START), "flash.channels")
    assert min(choice.values) == 1
    assert max(choice.values) * channels == DIES_MAX


def test_channels_are_searched_with_the_dies_of_each_if_no_stripe_shows_them() -> None:
    channels = _choice("flash.channels", ("split", "suite"))
    text = channels.apply(profiles.load(START), 2)
    assert get_value(text, "flash.channels") == 2
    each = get_value(profiles.load(START), "flash.dies_per_channel")
    assert get_value(text, "flash.dies_per_channel") == each
    space = search_space(profiles.load(START), ("split", "suite"))
    fixed = {choice.key: choice.value_in(profiles.load(START)) for choice in space.choices}
    at = [list(fixed).index(key) for key in ("flash.channels", "flash.dies_per_channel")]
    pairs = [
        (one[at[0]], one[at[1]])
        for one in space.combinations(("flash.channels", "flash.dies_per_channel"), fixed)
    ]
    assert {(1, 1), (2, 4), (32, 4), (8, 16)} <= set(pairs)
    assert max(channels * dies for channels, dies in pairs) == DIES_MAX


def test_the_kind_of_cache_is_searched_only_if_there_is_one() -> None:
    cached = search_space(profiles.load("samsung-970-evo-plus-500"), ("suite",))
    assert "slc.mode" in {choice.key for choice in cached.choices}
    without = search_space(profiles.load(START), ("suite",))
    assert "slc.mode" not in {choice.key for choice in without.choices}


@pytest.mark.parametrize(
    ("fitting", "bounds"),
    [((4,), (2.8, 5.7)), ((4, 8), (2.8, 11.3)), ((1,), (0.7, 1.4)), ((16,), (11.3, 22.6))],
)
def test_dies_that_are_searched_are_known_as_far_as_the_next_number_that_was_tried(
    fitting: tuple[int, ...], bounds: tuple[float, float]
) -> None:
    assert Dies("flash.dies_per_channel", (1, 2, 4, 8, 16), (0.0,) * 5).bounds(fitting) == bounds


@pytest.mark.parametrize(("unit", "size"), [("8 KiB", 50), ("16 KiB", 25), ("4 KiB", 100)])
def test_another_mapping_unit_keeps_the_share_of_the_map_that_is_in_memory(
    unit: str, size: int
) -> None:
    start = set_values(
        profiles.load(START), {"ftl.mapping_unit": "4 KiB", "ftl.map_cache": "100 MiB"}
    )
    [choice] = [c for c in search_space(start, ("suite",)).choices if c.key == "ftl.mapping_unit"]
    text = choice.apply(start, unit)
    assert get_value(text, "ftl.mapping_unit") == unit
    assert get_value(text, "ftl.map_cache") == f"{size << 20} B"
    whole = set_value(start, "ftl.map_cache", None)
    assert get_value(choice.apply(whole, unit), "ftl.map_cache") is None


def test_a_page_of_a_choice_holds_the_largest_mapping_unit() -> None:
    start = set_value(profiles.load(START), "ftl.mapping_unit", "16 KiB")
    for size in ("16 KiB", "32 KiB", "128 KiB"):
        describe_twin("box", _choice(PAGE, ("split",)).apply(start, size))


def test_a_command_occupies_the_processor_no_longer_than_its_overhead() -> None:
    start = set_values(
        profiles.load(START), {"link.read_overhead": "10 us", "link.read_command": "3 us"}
    )
    assert within_overheads(start, {"link.read_overhead": "4 us"}) == {"link.read_overhead": "4 us"}
    assert within_overheads(start, {"link.read_overhead": "2 us"}) == {
        "link.read_overhead": "2 us",
        "link.read_command": "2 us",
    }
    assert within_overheads(start, {"link.read_command": "30 us"}) == {"link.read_command": "10 us"}
    assert within_overheads(profiles.load(START), {}) == {}


def test_sizes_are_in_order_and_that_of_the_start_profile_costs_nothing() -> None:
    start = set_value(profiles.load(START), "link.max_transfer", "384 KiB")
    [choice] = [c for c in search_space(start, ("suite",)).choices if c.key == "link.max_transfer"]
    assert choice.values == ("128 KiB", "256 KiB", "384 KiB", "512 KiB", "1 MiB")
    assert choice.penalties == (0.5, 0.5, 0.0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("flash.cache_register", None, True),
        ("flash.cache_register", True, True),
        ("flash.cache_register", False, False),
        ("flash.keeps_page", None, False),
        ("flash.keeps_page", True, True),
        ("flash.keeps_page", False, False),
    ],
)
def test_dies_have_cache_registers_and_keep_no_page_if_a_profile_says_nothing(
    key: str, value: bool | None, expected: bool
) -> None:
    start = set_value(profiles.load(START), key, value)
    [choice] = [c for c in search_space(start, ("split",)).choices if c.key == key]
    assert choice.value_in(start) is expected
    assert choice.values == (expected, not expected)


def test_dies_keep_their_page_with_packed_placement() -> None:
    start = set_value(profiles.load(START), "ftl.placement", "packed")
    assert "flash.keeps_page" not in {c.key for c in search_space(start, ("split",)).choices}


def test_other_page_types_keep_the_mean_time_of_a_read() -> None:
    start = set_value(profiles.load(START), "flash.read", ["40 us", "60 us"])
    choice = _choice(TYPES, ("split",))
    assert choice.changes(start, "1 : 1.5") == {}, "its own"
    for ratios in choice.values:
        text = choice.apply(start, ratios)
        value = get_value(text, "flash.read")
        times = [float(each.split()[0]) for each in value]
        assert sum(times) / len(times) == pytest.approx(50, rel=1e-4)
        assert choice.value_in(text) == ratios
    assert choice.value_in(set_value(start, "flash.read", "50 us")) == "1"


def test_a_buffer_that_no_experiment_shows_is_searched_within_its_bounds() -> None:
    start = set_value(profiles.load(START), BUFFER, "3 MiB")
    known = search_space(start, ("suite",), (BUFFER,))
    assert BUFFER not in {scale.key for scale in known.scales}
    space = search_space(start, ("suite",), buffer_sizes=("2 MiB", "4 MiB"))
    [scale] = [scale for scale in space.scales if scale.key == BUFFER]
    assert [scale.low, scale.high] == pytest.approx([2 / 3, 4 / 3])
    assert scale.changes(start, 1.2345) == {BUFFER: "3792 KiB"}, "a whole number of bytes"
    for size, most in (("3 MiB", 64 / 3), ("128 MiB", 1.0)):
        [scale] = [
            scale
            for scale in search_space(set_value(start, BUFFER, size), ("suite",)).scales
            if scale.key == BUFFER
        ]
        assert scale.high == pytest.approx(most), "without bounds"


def test_a_combination_costs_the_penalties_of_all_its_choices() -> None:
    choices = Choice("a", (None, 1), (0.0, 0.5)), Choice("b", (True, False), (0.25, 2.0))
    space = SearchSpace((), choices)
    assert space.penalty((None, True)) == 0.25
    assert space.penalty((1, False)) == 2.5
    assert set(space.combinations(["a"], {"a": None, "b": True})) == {(None, True), (1, True)}


@pytest.mark.parametrize(
    ("fitting", "low", "high"),
    [
        (("1 ms",), "707 us", "1414 us"),
        (("500 us", "1 ms"), "250 us", "1414 us"),
        (("4 ms",), "2828 us", "8000 us"),
        ((None, "4 ms"), "2828 us", None),
        ((None,), None, None),
    ],
)
def test_a_limit_lies_between_those_that_do_not_fit(
    fitting: tuple[str | None, ...], low: str | None, high: str | None
) -> None:
    limit = Time("flash.delay_limit", (None, "500 us", "1 ms", "2 ms", "4 ms"), (0.0,) * 5)
    assert limit.bounds(fitting) == (low, high)


def test_how_long_a_suspension_takes_is_tried_only_where_programs_are_suspended() -> None:
    start = set_value(profiles.load("toshiba-xg5"), "flash.suspend", "30 us")
    for text, values in ((profiles.load("toshiba-xg5"), 4), (start, 5)):
        space = search_space(text, ["fsync"])
        [suspend] = [one for one in space.choices if one.key == "flash.suspend"]
        assert isinstance(suspend, Suspension)
        assert len(suspend.values) == values
        assert suspend.near(None) == (None, "20 us")
        assert suspend.near("20 us") == suspend.values
        assert suspend.bounds(("20 us",))[0] == "10 us"
        assert suspend.bounds(("10 us", "20 us"))[0] == "2 us"
        assert suspend.bounds((None, "40 us"))[1] is None


def test_timing_does_not_tell_a_protected_cache_from_one_that_ignores_flushes() -> None:
    protected = Protection("buffer.power_loss_protection", (False, True), (0.0, 0.5))
    for fitting in ((True,), (False, True), (True, False)):
        assert protected.bounds(fitting) == (False, True)
    assert protected.bounds((False,)) == (False, False)


def test_the_protection_is_searched_only_if_it_is_not_known() -> None:
    start = profiles.load("toshiba-xg5")
    for experiment, known, searched in (
        ("fsync", (), True),
        ("fsync", (PROTECTED,), False),
        ("split", (), False),
    ):
        space = search_space(start, [experiment], known)
        assert (PROTECTED in {choice.key for choice in space.choices}) == searched


@pytest.mark.parametrize(
    ("experiments", "known", "searched"),
    [
        (("stripe", "split"), (), True),
        (("stripe", "split"), ("ftl.chunk",), False),
        (("split", "suite"), (), False),
        (("stripe",), (), False),
    ],
)
def test_a_chunk_that_stripe_did_not_show_is_searched_for(
    experiments: tuple[str, ...], known: tuple[str, ...], searched: bool
) -> None:
    space = search_space(profiles.load(START), experiments, known)
    chunks = [choice for choice in space.choices if choice.key == "ftl.chunk"]
    assert bool(chunks) is searched
    if searched:
        own = get_value(profiles.load(START), "ftl.chunk")
        assert chunks[0].penalties[chunks[0].values.index(own)] == 0.0
        assert list(chunks[0].values) == sorted(chunks[0].values, key=parse_size)


def _ratio(experiments: tuple[str, ...]) -> list[Scale]:
    space = search_space(profiles.load(START), experiments)
    return [scale for scale in space.scales if scale.of]


def test_a_link_writes_at_a_ratio_of_the_rate_at_which_it_reads() -> None:
    assert not _ratio(("cache", "fsync"))
    assert not _ratio(("suite", "split"))
    [ratio] = _ratio(("cache", "suite"))
    space = SearchSpace((Scale("link.bandwidth", 0.1, 10.0, 1.0), ratio), ())
    start = set_values(profiles.load(START), {"link.bandwidth": "1000 MB/s"})
    solution = Solution((), np.log([2.0, 0.6]), np.ones(2), 0.0)
    text = candidate_profile(start, space, solution, "a fit")
    assert get_value(text, "link.bandwidth") == "2000 MB/s"
    assert get_value(text, "link.write_bandwidth") == "1200 MB/s"
    assert get_value(ratio.apply(start, 0.6), "link.write_bandwidth") == "600 MB/s"
    assert ratio.mean(start) == 1.0  # the factors of different starts compare directly


def test_the_search_starts_with_a_link_that_is_as_fast_in_both_directions() -> None:
    start = set_value(profiles.load(START), "link.write_bandwidth", "300 MB/s")
    for experiments, own in ((("cache", "suite"), None), (("split",), "300 MB/s")):
        text = guess(start, [], search_space(start, experiments), "test")
        assert get_value(text, "link.write_bandwidth") == own

"""A drive whose `stripe` cannot tell dies from channels, fitted from one with other channels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from candidate_results import measured, measured_stripe

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import MIB
from ssdlab.fit.parameters import DIES
from ssdlab.fit.results import FitInput
from ssdlab.profiles.toml_edit import get_value, set_values
from ssdlab.records import Finding

START = "toshiba-xg5"
SLOW_CHANNELS = {
    "flash.channels": 2,
    "flash.dies_per_channel": 4,
    "flash.channel_bandwidth": "400 MB/s",
    "flash.cache_register": False,
}
FEWER_CHOICES = {
    "ssdlab.fit.variables._RATIOS": (),
    "ssdlab.fit.parameters.MAPPING_UNITS": ("4 KiB",),
    "ssdlab.fit.parameters.MULTI_PLANE_PAGES": (16, 32, 64),
    "ssdlab.fit.parameters.READ_AHEAD_SIZES": (None,),
    "ssdlab.fit.parameters.TRANSFERS": ("1 MiB",),
}
"""Values of the choices that do not matter here: the search is faster with fewer."""


def _stripe_without_units(text: str) -> Measurement:
    """The rates at all alignments, as on a drive where a unit may be a channel."""
    found = measured_stripe(text)
    assert found.number("units") == 8
    unknown = Finding(None, "", None, None, "data transfer may limit a unit")
    return replace(found, findings={**found.findings, "units": unknown, "stripe_kib": unknown})


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    text = set_values(profiles.load(START), SLOW_CHANNELS)
    results = (
        _stripe_without_units(text),
        measured(text, "split", (split, split_analysis), split.Plan(64 * MIB, 3, seed=5)),
        measured(text, "suite", (suite, suite_analysis), suite.Plan(128 * MIB, 1.0, 2, 5)),
    )
    with pytest.MonkeyPatch.context() as patched:
        for name, values in FEWER_CHOICES.items():
            patched.setattr(name, values)
        return fit(profiles.load(START), FitInput(results), "test")


def test_dies_and_channels_are_found_far_from_those_of_the_start_profile(fitted: Fitted) -> None:
    before = describe_twin("box", profiles.load(START))
    assert (before["channels"], before["dies"]) == (8, 16)
    assert get_value(fitted.profile, "flash.channels") == 2
    assert get_value(fitted.profile, "flash.dies_per_channel") == 4
    rate = float(get_value(fitted.profile, "flash.channel_bandwidth").split()[0])
    assert rate == pytest.approx(400, rel=0.05)


def test_the_dies_of_all_channels_are_an_estimate_of_their_own(fitted: Fitted) -> None:
    [dies] = [each for each in fitted.parameters if each.key == DIES]
    assert (dies.value, dies.start) == (8, 16)
    assert 8 / 1.5 < dies.low < 8 < dies.high < 8 * 1.5
    assert not dies.determined, "the next numbers that were tried are as near"

"""The profile of a fit as a file: the drive's name, and what is only inherited from the start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.fit.fitted import Fitted
from ssdlab.fit.parameters import DIES, PAGE
from ssdlab.profiles.toml_edit import (
    get_value,
    mark_inherited,
    replace_heading,
    set_value,
    set_values,
)

_KEYS_OF: Final = {
    DIES: ("flash.dies_per_channel",),
    PAGE: ("flash.planes", "flash.page"),
}
"""The profile's keys of estimates that are products of several keys."""


def finished_profile(fitted: Fitted, drive: str, source: str, start: str, start_name: str) -> str:
    """The fitted profile under the drive's own name; `start` is the text of its start profile.

    A value that the fit determined is "fitted", even if it is that of the start profile; all
    others that are those of the start profile are "inherited".
    """
    profile = set_values(fitted.profile, dict(_confirmed(fitted)), source)
    profile = mark_inherited(profile, start, start_name)
    heading = (
        f"{drive}: {source}, from the profile {start_name}.\n"
        'kind: "fitted" values are results of this fit. "inherited" values are those of that '
        "profile:\nno result determined them, and they may be wrong for this drive."
    )
    return replace_heading(set_value(profile, "drive.model", drive), heading)


def _confirmed(fitted: Fitted) -> Iterator[tuple[str, object]]:
    """Keys and values that the results determine."""
    for estimate in fitted.parameters:
        if estimate.determined:
            for key in _KEYS_OF.get(estimate.key, (estimate.key,)):
                if (value := get_value(fitted.profile, key)) is not None:
                    yield key, value

"""The profile of a fit as a file: the drive's name, and what is only inherited from the start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.fit.fitted import Fitted
from ssdlab.fit.parameters import DIES, PAGE
from ssdlab.profiles.toml_edit import (
    list_values,
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
    profile = set_values(fitted.profile, dict(_confirmed(fitted, start)), source)
    profile = mark_inherited(profile, start, start_name)
    heading = (
        f"{drive}: {source}, from the profile {start_name}.\n"
        'kind: "fitted" values are results of this fit. "inherited" values are those of that '
        "profile:\nno result determined them, and they may be wrong for this drive."
    )
    return replace_heading(set_value(profile, "drive.model", drive), heading)


def _confirmed(fitted: Fitted, start: str) -> Iterator[tuple[str, object]]:
    """Keys and values of the start profile that the results determine."""
    entries = {entry["key"]: entry for entry in list_values(fitted.profile)}
    before = {entry["key"]: entry for entry in list_values(start)}
    for estimate in fitted.parameters:
        for key in _KEYS_OF.get(estimate.key, (estimate.key,)):
            if estimate.determined and key in entries and entries[key] == before.get(key):
                yield key, entries[key]["value"]

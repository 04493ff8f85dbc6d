"""The group of `ssdlab twin`'s commands."""

from __future__ import annotations

from ssdlab.cli.lazy import Member, lazy_group

_PROFILES = "ssdlab.cli.twin.profiles"

app = lazy_group(
    "List, show, check, make and fit the profiles of twins.",
    "ssdlab twin show toshiba-xg5",
    {
        "list": Member(
            _PROFILES,
            "List the shipped twins and their errors in published tables, then your own twins.",
        ),
        "show": Member(_PROFILES, "Show a twin's numbers, and the source of each."),
        "check": Member(
            _PROFILES,
            "Check a profile: report the first invalid key and the values allowed (status 2).",
        ),
        "new": Member(
            "ssdlab.cli.twin.new",
            "Make a generic twin from data-sheet figures: interface, capacity, flash, rates.",
        ),
        "for": Member(
            "ssdlab.cli.twin.relatives",
            "Find the shipped twin of a drive's model, or the most similar twins.",
        ),
        "diff": Member(
            "ssdlab.cli.twin.relatives",
            "Show the keys in which two twins differ, with both values, most important first.",
        ),
        "fit": Member(
            "ssdlab.cli.twin.fit",
            "Fit a twin to a drive's results; warn of numbers that the results do not determine.",
        ),
        "what-if": Member(
            "ssdlab.cli.twin.what_if",
            "Predict the effect of a change to a twin: two runs and a comparison.",
        ),
        "submit": Member(
            "ssdlab.cli.twin.share",
            "Write an anonymous bundle: a fitted twin, its measurements and its errors.",
        ),
        "add": Member(
            "ssdlab.cli.twin.share",
            "Check a bundle and add its twin to your own twins, as twin:NAME.",
        ),
        "validate": Member(
            "ssdlab.cli.twin.validate",
            "Compare published figures of real drives with those of their twins.",
        ),
    },
)

"""The group of `ssdlab twin`'s commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from ssdlab.cli.lazy import LazyGroup, Member

_PROFILES = "ssdlab.cli.twin.profiles"


class _Group(LazyGroup):
    """The commands by name, in the order of the help."""

    members: ClassVar[Mapping[str, Member]] = {
        "list": Member(
            _PROFILES, "List the drives that ssdlab brings along, and how well each is held up."
        ),
        "show": Member(_PROFILES, "Show what a twin is made of, and where each number comes from."),
        "check": Member(
            _PROFILES,
            "Check a profile: names the first key that is wrong and what it may be (status 2).",
        ),
        "fit": Member(
            "ssdlab.cli.twin.fit",
            "Find the numbers of a twin that does as a drive did; says which the results cannot "
            "tell.",
        ),
        "what-if": Member(
            "ssdlab.cli.twin.what_if",
            "Ask a twin what a change would do: two runs and a comparison.",
        ),
    }


app = typer.Typer(
    cls=_Group,
    help="List, show and check the profiles that twins are made of.",
    epilog="Example: ssdlab twin show toshiba-xg5",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _twin() -> None:
    """List, show and check the profiles that twins are made of."""

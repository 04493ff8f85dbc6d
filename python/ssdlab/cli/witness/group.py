"""The group of `ssdlab witness`'s commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from ssdlab.cli.lazy import LazyGroup, Member


class _Group(LazyGroup):
    """The commands by name, in the order of the help."""

    members: ClassVar[Mapping[str, Member]] = {
        "report": Member(
            "ssdlab.cli.witness.report",
            "Count the cuts, bound the rate of loss, give a verdict (status 1 if something was "
            "lost).",
        ),
        "serve": Member(
            "ssdlab.cli.witness.serve",
            "Remember, on a machine that keeps its power, what drives elsewhere acknowledge.",
        ),
        "verify": Member(
            "ssdlab.cli.witness.verify",
            "Read the whole region back and say what is missing, and of what kind (status 1).",
        ),
        "write": Member(
            "ssdlab.cli.witness.write", "Write stamped requests at random until the power goes."
        ),
    }


app = typer.Typer(
    cls=_Group,
    help="Does a drive keep what it said it kept? A second machine remembers, you cut the power.",
    epilog="Example: ssdlab witness serve --listen 0.0.0.0:5400",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _witness() -> None:
    """Does a drive keep what it said it kept? A second machine remembers, you cut the power."""

"""The group of `ssdlab witness`'s commands: each registers itself in it."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Does a drive keep what it said it kept? A second machine remembers, you cut the power.",
    epilog="Example: ssdlab witness serve --listen 0.0.0.0:5400",
    no_args_is_help=True,
)


@app.callback()
def _witness() -> None:
    """Does a drive keep what it said it kept? A second machine remembers, you cut the power."""

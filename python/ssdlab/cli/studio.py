"""`ssdlab studio`: writes the page in which twins run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from ssdlab.cli.options import Capacity, Quiet, Seed, complete_twin, size_of
from ssdlab.cli.output import require_file
from ssdlab.errors import UsageError
from ssdlab.target import Twin, parse_target

app = typer.Typer(add_completion=False)
DEFAULT_TWIN: Final = "twin:toshiba-xg5"
PAGE: Final = Path("studio.html")


def complete_scene(incomplete: str) -> list[str]:
    """The names of scenes that begin so."""
    from ssdlab.studio import SCENES

    return [name for name in SCENES if name.startswith(incomplete)]


@app.command(name="studio", epilog="Example: ssdlab studio twin:samsung-840-pro --out studio.html")
def studio(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="The twin of the free play: twin:NAME or twin:FILE.toml. Without it, the page "
            "opens with the first scene.",
            show_default=False,
            autocompletion=complete_twin,
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="The page to write.")] = PAGE,
    scene: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Open with this scene: ageing, spare, trim, power, conflicts or cache.",
            autocompletion=complete_scene,
        ),
    ] = None,
    capacity: Capacity = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page that runs twins and shows what happens inside a drive.

    It shows dies, superblocks, garbage collection and curves; time can be stopped, slowed and
    turned back. Six scenes repeat experiments of `ssdlab run` and end with the same numbers. The
    page needs no network and no server.
    """
    from ssdlab.report.html import put
    from ssdlab.studio import SCENES, PageOptions, make_page
    from ssdlab.studio.page import CAPACITY

    if scene is not None and scene not in SCENES:
        raise UsageError(f"--scene is {scene!r}; it must be one of {', '.join(SCENES)}")
    require_file("--out", out)
    allowed = "twin:NAME or twin:FILE.toml"
    twin = parse_target(
        DEFAULT_TWIN if target is None else target, size_of(capacity), allowed=allowed
    )
    if not isinstance(twin, Twin):
        raise UsageError(f"{twin} is not a twin, and the page shows the inside; give {allowed}")
    if twin.scaled_to_bytes is None:
        twin = Twin(twin.profile, min(CAPACITY, twin.capacity_bytes))
    first = scene or (None if target else SCENES[0])
    console = Console(stderr=True)

    def report(name: str) -> None:
        if not quiet:
            console.print(f"recording the scene {name}", markup=False, highlight=False)

    put(out, make_page(PageOptions(twin, first, seed), report))
    typer.echo(out)

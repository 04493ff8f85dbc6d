"""The command that shows the inside of a run's twin: the studio, with the experiment's scene."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from ssdlab.records import Run
from ssdlab.target import is_twin
from ssdlab.units import exact_size
from ssdlab.view import target_options

SCENE_OF: Final = {
    "aging": "ageing",
    "cache": "cache",
    "fsync": "power",
    "placement": "conflicts",
    "steady": "spare",
    "trim": "trim",
}
"""The scene of the studio that repeats an experiment."""
CAPACITY_MOST: Final = 4 << 30
"""The largest twin of the studio's list; larger ones are scaled as the studio does by default."""


@dataclass(frozen=True)
class InsideCommand:
    """A command that writes a page, and whether that has a scene about the run's experiment."""

    command: str
    has_scene: bool


def inside_command(run: Run) -> InsideCommand | None:
    """The command for a run on a twin; None for other runs."""
    manifest = run.manifest
    target, capacity = target_options(manifest)
    if not (manifest.virtual and is_twin(target)):
        return None
    words = ["ssdlab", "studio", target]
    if capacity is not None and capacity <= CAPACITY_MOST:
        words += ["--capacity", exact_size(capacity)]
    words += ["--seed", str(manifest.seed)]
    scene = SCENE_OF.get(manifest.experiment)
    if scene is not None:
        words += ["--scene", scene]
    return InsideCommand(shlex.join(words), scene is not None)

"""Makes the pages: of the studio (module, profiles, scenes), and of a served twin."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import jinja2

from ssdlab import profiles
from ssdlab.charts import PALETTE
from ssdlab.errors import UsageError
from ssdlab.report.html import environment
from ssdlab.studio.recorded_scene import scene_data
from ssdlab.studio.recorder import Recorder
from ssdlab.studio.scenes import SCENES, load_scene
from ssdlab.target import Twin

MODULE: Final = Path(__file__).parent / "studio.wasm"
SCRIPTS: Final = (
    "format",
    "twin",
    "cells",
    "lanes",
    "curves",
    "units",
    "picture",
    "drive",
    "timeline",
    "player",
    "workloads",
    "free",
    "story",
    "link",
    "studio",
    "self_test",
)
"""The page's scripts in `page/`, in this order: they are one module."""
WATCH_SCRIPTS: Final = (
    "format",
    "timeline",
    "cells",
    "lanes",
    "curves",
    "picture",
    "watch",
    "watch_test",
)
"""Those of the page of a served twin."""
CAPACITY: Final = 512 << 20
"""Capacity of the free play's twin: all shipped profiles can be scaled to it, and each superblock
can be seen."""


@dataclass(frozen=True)
class PageOptions:
    """What the page shows first.

    `twin` is the drive of the free play, scaled to its `scaled_to_bytes`. `scene` is the name of a
    scene, or None for the free play.
    """

    twin: Twin
    scene: str | None
    seed: int = 0


def make_page(
    options: PageOptions, on_scene: Callable[[str], object] = lambda _: None, module: Path = MODULE
) -> str:
    """The text of the page. `on_scene` is called before each scene is recorded.

    Raises:
        UsageError: there is no module.
        TargetError: the twin cannot have this capacity.
        Interrupted: Ctrl-C.
    """
    packed = _read_module(module)
    scenes = []
    for name in SCENES:
        on_scene(name)
        scenes.append(scene_data(name, load_scene(name), options.seed))
    names = dict.fromkeys([options.twin.profile, *profiles.names()])
    data = {
        "version": version("ssdlab"),
        "scene": options.scene,
        "seed": options.seed,
        "scenes": scenes,
        "profiles": {name: profiles.load(name) for name in names},
        "twin": options.twin.profile,
        "capacity_bytes": options.twin.capacity_bytes,
    }
    return _render("studio.html.j2", SCRIPTS, data, module=packed)


def make_watch_page(recorder: Recorder, socket: str, every_s: float) -> str:
    """The text of the page that shows a served twin; it asks its own server for `rows` and `frame`.

    `socket` is the twin's name on the page, and `every_s` the time between two samples.
    """
    data = {
        "version": version("ssdlab"),
        "description": {**recorder.drive, "counters": recorder.counters},
        "socket": socket,
        "every_ms": 1000 * every_s,
        "record": recorder.record,
    }
    return _render("watch.html.j2", WATCH_SCRIPTS, data, socket=socket)


def _read_module(path: Path) -> str:
    """The module as base64."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            "the page needs the twin as a WebAssembly module, which this installation lacks; "
            "build it in a checkout of ssdlab with: make studio"
        ) from error
    return base64.b64encode(content).decode()


def _render(template: str, scripts: Sequence[str], data: dict[str, Any], **more: str) -> str:
    templates = environment().overlay(loader=jinja2.PackageLoader("ssdlab.studio", "page"))
    folder = Path(__file__).parent / "page"
    script = "".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in scripts)
    # No text of the data may end the element that it is in.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return templates.get_template(template).render(
        palette=PALETTE, data=text, script=script, **more
    )

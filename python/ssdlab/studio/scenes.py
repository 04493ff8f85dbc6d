"""The scenes of the studio: an experiment, its twin, and the texts that explain its steps."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

_FOLDER: Final = Path(__file__).parent / "scenes"
SCENES: Final = ("ageing", "spare", "trim", "power", "conflicts", "cache")
"""The names of the scenes, in the order of the page."""


class SceneDrive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A drive to show: the one with a step that has these columns, or else the one opened Nth."""

    name: str = ""
    step: dict[str, Any] = {}
    number: int = 0


class Chapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a scene: its text, and the first step of the drive to which it belongs.

    `at` has columns of that step (`records.STEPS`); `job` is its number instead, from 0, if the
    experiment does not record the steps of this drive; `extra` is that of a step after the
    experiment. `seconds`: how long it is shown. `colour`: the meaning of the cells' colours.
    """

    title: str
    text: str
    seconds: float
    at: dict[str, Any] = {}
    job: int | None = None
    extra: int | None = None
    colour: str = ""


class Scene(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scene. `tab` is its short title, and `own` the command for a real drive.

    `options` are those of the experiment. `file_mib` is the size of the file whose units are drawn
    by their place; 0 for none. `extra` are steps that follow the experiment in the page only, as
    the module takes them.
    """

    title: str
    tab: str
    question: str
    experiment: str
    options: dict[str, Any]
    twin: str
    capacity: str
    own: str
    chapters: list[Chapter]
    drives: tuple[SceneDrive, ...] = (SceneDrive(),)
    file_mib: float = 0.0
    extra: list[dict[str, Any]] = []


def load_scene(name: str) -> Scene:
    """The scene with this name, one of `SCENES`."""
    text = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Scene)

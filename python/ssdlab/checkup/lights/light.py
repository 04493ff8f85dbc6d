"""A traffic light: a colour, one plain sentence, the evidence, and the next command to run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from ssdlab.checkup.record import Checkup
from ssdlab.records import Run

Colour = Literal["red", "yellow", "green", "grey"]
COLOURS: Final[tuple[Colour, ...]] = ("red", "yellow", "green", "grey")
"""The worst first; grey means that it was not measured."""


class Light(msgspec.Struct, frozen=True):
    """One light. `code` is for programs and never changes.

    `next` is a command, "" if nothing needs to be done. `experiment` names the run that the light
    rests on; it is "doctor" for the doctor's report.
    """

    code: str
    title: str
    colour: Colour
    says: str
    evidence: str = ""
    next: str = ""
    experiment: str = ""


def worst(colours: Iterable[Colour]) -> Colour:
    """The worst of some colours; grey for an empty list."""
    return min(colours, key=COLOURS.index, default="grey")


def not_measured(code: str, title: str, why: str, experiment: str, do: str = "") -> Light:
    """A grey light."""
    says = f"Not measured: {why.strip().rstrip('.')}."
    return Light(code, title, "grey", says, next=do, experiment=experiment)


def place(checkup: Checkup) -> str:
    """The target for commands: an absolute path, quoted for a shell."""
    return shlex.quote(checkup.record.place)


def subject(run: Run) -> str:
    """The subject of a sentence about a run."""
    if run.manifest.virtual:
        return "The twin"
    return "The drive" if is_one_drive(run) else "The storage"


def is_one_drive(run: Run) -> bool:
    """Whether the layers below are those of one local drive, or a twin."""
    codes = {warning.code for warning in run.result.warnings}
    return not codes & {"virtual", "network", "composed"}


def was_busy(run: Run) -> bool:
    """Whether other programs, or other virtual machines, used the processors during the run."""
    return any(one.code in {"busy-host", "stolen-time"} for one in run.result.warnings)


_NOT_THE_DRIVE: Final = ("page-cache-below", "page-cache", "link-speed")
"""Warnings that a cache of the host answered, so that the numbers are not the drive's."""


MEMORY_ANSWERED: Final = "the host's memory answered, not the drive"


def why_not_the_drive(run: Run) -> str:
    """The warning that the numbers of a run are not the drive's; "" if they are."""
    for code in _NOT_THE_DRIVE:
        for warning in run.result.warnings:
            if warning.code == code:
                return f"{MEMORY_ANSWERED} ({warning.sentence.rstrip('.')})"
    return ""

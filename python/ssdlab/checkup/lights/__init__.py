"""The traffic lights of a checkup.

light       `Light`, and what all of them share
stack       from the doctor's verdicts: health, setup, files
measured    from the experiments: speed, durable writes, long writes, ageing, TRIM
"""

from __future__ import annotations

from ssdlab.checkup.lights.light import (
    COLOURS,
    MEMORY_ANSWERED,
    Colour,
    Light,
    was_busy,
    why_not_the_drive,
)
from ssdlab.checkup.lights.measured import measured_lights
from ssdlab.checkup.lights.stack import stack_lights
from ssdlab.checkup.record import Checkup

__all__ = [
    "COLOURS",
    "MEMORY_ANSWERED",
    "Colour",
    "Light",
    "lights",
    "verdict",
    "was_busy",
    "why_not_the_drive",
]


def lights(checkup: Checkup) -> list[Light]:
    """All lights, the worst first, otherwise in a fixed order; grey ones last."""
    of_stack = stack_lights(checkup)
    made = [*of_stack[:1], *measured_lights(checkup), *of_stack[1:]]  # health first
    return sorted(made, key=lambda light: COLOURS.index(light.colour))


def verdict(found: list[Light], *, is_complete: bool = True) -> str:
    """The answer in few words: all right or not, the number of lights, and the worst one."""
    interrupted = "" if is_complete else "Interrupted. "
    return f"{interrupted}{_answer(found)}"


def _answer(found: list[Light]) -> str:
    counts = {colour: sum(light.colour == colour for light in found) for colour in COLOURS}
    grey = ", ".join(light.title for light in found if light.colour == "grey")
    unmeasured = f" Not measured: {grey}." if grey else ""
    if counts["red"] or counts["yellow"]:
        answer = "Not all right"
        if not counts["red"]:
            things = "one thing" if counts["yellow"] == 1 else f"{counts['yellow']} things"
            answer = f"No fault found, but {things} to note"
        shown = ", ".join(f"{counts[each]} {each}" for each in COLOURS[:3] if counts[each])
        return f"{answer} ({shown}). {found[0].title}: {found[0].says}{unmeasured}"
    if not counts["green"]:
        return f"Nothing could be decided.{unmeasured}"
    if unmeasured:
        return f"No problem found.{unmeasured}"
    return "All right: nothing needs to be done."

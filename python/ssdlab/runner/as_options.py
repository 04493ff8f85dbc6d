"""The parameters of an experiment as options of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, cast


def _as_size(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value}B"


def _as_time(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value!r}s"


def _as_percentages(value: tuple[float, ...]) -> str:
    return ",".join(f"{round(100 * share, 9):g}%" for share in value)


def _as_gaps(value: tuple[str, ...]) -> str:
    return value[0] if len(value) == 1 else "both"


_SPELLED: Final[Mapping[str, Callable[[Any], str]]] = {
    "size": _as_size, "region": _as_size, "distance": _as_size, "block_size": _as_size,
    "rest": _as_time, "spare": _as_percentages, "gaps": _as_gaps, "placements": ",".join,
}  # fmt: skip
"""How the command line spells a parameter that is not a plain text or number."""
_NEGATED: Final = {"host": "--no-host", "plots": "--no-plots", "fills": "--as-it-is"}
"""The option that turns off what is on by default."""


class AsOptions:
    """The parameters of a dataclass as options of the command line."""

    def options(self) -> dict[str, str | bool]:
        """The parameters that differ from their defaults; `TRACE` is an argument."""
        found: dict[str, str | bool] = {}
        for field in fields(cast("Any", self)):
            value = getattr(self, field.name)
            if value == field.default or field.name == "found":
                continue
            if value is True:
                found[f"--{field.name.replace('_', '-')}"] = True
            elif value is False:
                found[_NEGATED[field.name]] = True
            elif field.name == "trace":
                found["TRACE"] = str(value)
            else:
                spelled = _SPELLED.get(field.name, str)
                found[f"--{field.name.replace('_', '-')}"] = spelled(value)
        return found

"""The twins that are compared: one profile, its placement and its spare changed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Drive, open_twin
from ssdlab.experiments.placement.plan import Plan, State
from ssdlab.runner.open_target import OpenTarget
from ssdlab.units import format_size

TOLD: Final = frozenset({"hinted", "packed"})
"""Placements whose host says what its writes are; of the others it says nothing."""
ERASE: Final = "3.5 ms"
"""tBERS of the drives that collect, whatever their profile has: some have 0."""

Changes = Mapping[str, Mapping[str, Any]]
"""By table and key: the new value, or None for a key that is to go."""


@dataclass(frozen=True)
class Subject:
    """A drive under test, and what it stands for."""

    drive: Drive
    placement: str
    state: State

    @property
    def told(self) -> bool:
        """Whether the host lets it know what a write is."""
        return self.placement in TOLD

    @property
    def size(self) -> int:
        """Bytes that the host sees."""
        return int(self.drive.capacity_bytes)


def open_subject(opened: OpenTarget, plan: Plan, placement: str, state: State) -> Subject:
    """A new twin of the site's profile with this placement; with this spare, where it collects.

    Raises:
        TargetError: the profile has no room for that.
    """
    assert opened.profile is not None, "only a twin can be asked"
    changes: dict[str, dict[str, Any]] = {"ftl": {"placement": placement, "streams": None}}
    capacity: int | None = min(plan.size, int(opened.drive.capacity_bytes))
    if state.protected:
        changes["buffer"] = {"power_loss_protection": True}
    if state.spare is not None:
        changes["ftl"]["spare"] = state.spare
        changes["flash"] = {"blocks_per_plane": None, "erase": ERASE}
        changes["drive"] = {"capacity": format_size(plan.steady_size)}
        capacity = None
    text = changed(opened.profile, changes)
    drive = open_twin(opened.identity["name"], text, capacity, seed=plan.seed)
    return Subject(drive, placement, state)


def changed(profile: str, changes: Changes) -> str:
    """A profile's text with other values; sources of its numbers are left out."""
    tables = tomllib.loads(profile)
    lines: list[str] = []
    for name in dict.fromkeys([*tables, *changes]):
        keys = {key: _plain(value) for key, value in tables.get(name, {}).items()}
        keys |= changes.get(name, {})
        lines.append(f"[{name}]")
        # Of the values that a profile may have, JSON writes each as TOML does.
        lines += [
            f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None
        ]
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) else value

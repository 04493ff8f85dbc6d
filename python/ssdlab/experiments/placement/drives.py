"""The twins that are compared: one profile with different placement policies and spare areas."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from ssdlab.device import Drive, open_twin
from ssdlab.experiments.placement.plan import Plan, State
from ssdlab.runner.open_target import OpenTarget
from ssdlab.units import format_size

ERASE: Final = "3.5 ms"
"""Erase time of the drives that collect garbage, because some profiles have 0."""

Changes = Mapping[str, Mapping[str, Any]]
"""New values by table and key; None removes a key."""


def open_drive(opened: OpenTarget, plan: Plan, placement: str, state: State) -> Drive:
    """A new twin of the target's profile with this placement and state.

    Raises:
        TargetError: the profile does not allow the spare area or capacity.
    """
    assert opened.profile is not None, "the target is a twin"
    changes: dict[str, dict[str, Any]] = {"ftl": {"placement": placement, "streams": None}}
    capacity: int | None = min(plan.size, int(opened.drive.capacity_bytes))
    if state.protected:
        changes["buffer"] = {"power_loss_protection": True}
    if state.spare is not None:
        changes["ftl"]["spare"] = state.spare
        changes["flash"] = {"blocks_per_plane": None, "erase": ERASE}
        changes["drive"] = {"capacity": format_size(plan.steady_size)}
        capacity = None
    text = edit_profile(opened.profile, changes)
    return open_twin(opened.identity["name"], text, capacity, seed=plan.seed)


def edit_profile(profile: str, changes: Changes) -> str:
    """The text of a profile with changed values, without the sources of its numbers."""
    tables = tomllib.loads(profile)
    lines: list[str] = []
    for name in dict.fromkeys([*tables, *changes]):
        keys = {
            key: value["value"] if isinstance(value, dict) else value
            for key, value in tables.get(name, {}).items()
        }
        keys |= changes.get(name, {})
        lines.append(f"[{name}]")
        # JSON and TOML have the same syntax for all values that a profile can have.
        lines += [
            f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None
        ]
    return "\n".join(lines) + "\n"

"""`--quick` without a size uses less of a target that has no room for the usual size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ssdlab.runner.parameters import MIB, Parameters
from ssdlab.storage_stack.blockdev import device_at
from ssdlab.storage_stack.space import room_for
from ssdlab.target import Directory, Target, Twin


def smaller(parameters: Parameters, target: Target, size_bytes: int) -> Parameters | None:
    """The parameters with the size that the target has room for; None if they need no change.

    Only `quick` parameters without a size of their own are changed. `size_bytes` is the usual size.

    Raises:
        TargetError: the target cannot be reached.
    """
    field = parameters.described_fields().get(parameters.sized_by)
    is_quick = getattr(parameters, "quick", False)
    if not is_quick or field is None or getattr(parameters, parameters.sized_by) is not None:
        return None
    room = _room(target, size_bytes)
    step = max(MIB, field.parameter.step)
    if room >= size_bytes or room < step:
        return None
    changes: dict[str, Any] = {parameters.sized_by: room // step * step}
    return replace(parameters, **changes)


def quick_needs_less(parameters: Parameters) -> bool:
    """Whether --quick, which was not given, sizes itself to the room that a target has."""
    fields = parameters.described_fields()
    can_be_quick = "quick" in fields and parameters.sized_by in fields
    return (
        can_be_quick
        and getattr(parameters, "quick", False) is False
        and getattr(parameters, parameters.sized_by) is None
    )


def _room(target: Target, size_bytes: int) -> int:
    """Bytes of the target that a run may use: at most `size_bytes`."""
    if isinstance(target, Twin):
        return min(size_bytes, target.capacity_bytes)
    if isinstance(target, Directory):
        return room_for(target.path, size_bytes)
    # Without opening it, which may need root: a device in use is refused as that, later.
    size = device_at(target.path).size
    return size_bytes if size is None else min(size_bytes, size)

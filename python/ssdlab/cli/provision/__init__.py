"""`ssdlab provision`: a drive's spare, the gain from more spare, and how to set it aside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ssdlab.analysis.spare import SECTOR
from ssdlab.cli.options import complete_twin, size_of
from ssdlab.errors import TargetError, UsageError
from ssdlab.storage_stack.blockdev import device_at, is_block_device
from ssdlab.target import full_name, is_twin, parse_profile

if TYPE_CHECKING:
    from ssdlab.provision import DriveInfo


app = typer.Typer(add_completion=False)
_DEFAULT_SPARE: Final = 0.27
"""Fraction of all flash: the middle of the recommended range."""


@app.command(name="provision", epilog="Example: ssdlab provision twin:samsung-840-pro")
def provision(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE|twin:NAME",
            help="A whole drive, or a twin by its name.",
            autocompletion=complete_twin,
        ),
    ] = None,
    *,
    visible: Annotated[
        str | None, typer.Option(help="Without a target: the visible capacity, such as 128GB.")
    ] = None,
    flash: Annotated[
        str | None, typer.Option(help="All flash in the drive, such as 129GiB.")
    ] = None,
    twin: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Simulate on this twin; none: do not simulate."),
    ] = None,
    spare: Annotated[
        float, typer.Option(help="The spare to plan for, in percent of all flash.")
    ] = 100 * _DEFAULT_SPARE,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Show a drive's spare, what more spare costs and gains, and how to set it aside.

    The spare is given by both common definitions, and the gain is simulated on a twin. Nothing is
    changed: the command prints a plan with its steps and their risks.
    """
    info = _drive_info(target, size_of(visible), size_of(flash), twin)
    share = _share(spare, info)
    from ssdlab.cli.provision import output
    from ssdlab.provision import RECOMMENDED_SPARE, DriveSize, gains, methods

    progress = output.progress(quiet=quiet or json)
    measured = [] if twin == "none" else list(gains(info, RECOMMENDED_SPARE, progress))
    visible_bytes, usable = info.area.visible, info.area.usable_for(share)
    # A command with the name of a drive in use would destroy data if it were only copied.
    in_use, node = bool(info.uses), "/dev/NAME" if info.uses else info.node
    size = DriveSize(node, info.transport, info.sector, visible_bytes, usable, in_use)
    plan = methods(size)
    output.print_result(output.Result(info, measured, plan, share), json=json)


def _drive_info(
    target: str | None, visible: int | None, flash: int | None, twin: str | None
) -> DriveInfo:
    simulated = None if twin == "none" else twin
    if target is None:
        if visible is None or flash is None:
            raise UsageError(
                "give a drive, twin:NAME, or both --visible and --flash, such as 128GB"
            )
        return _info_of_sizes(flash, visible, simulated)
    if visible is not None:
        raise UsageError("--visible is only for use without a target: a drive reports its capacity")
    target = full_name(target)
    if is_twin(target):
        from ssdlab.provision import info_of_twin

        return info_of_twin(parse_profile(target), flash)
    path = Path(target)
    if not is_block_device(path):
        raise TargetError(
            f"{target} is not a block device: give a drive, such as /dev/nvme0n1, or twin:NAME"
        )
    from ssdlab.provision import info_of_device

    return info_of_device(device_at(path), flash, simulated)


def _info_of_sizes(flash: int, visible: int, twin: str | None) -> DriveInfo:
    from ssdlab.provision import DriveInfo, area_of

    area = area_of(flash, visible)
    return DriveInfo(
        "given", "unknown model", "unknown", "/dev/NAME", SECTOR, area, "as given", twin
    )


def _share(percent: float, info: DriveInfo) -> float:
    least = 100 * info.area.spare
    if not least <= percent <= 90:
        raise UsageError(
            f"--spare is {percent:g} percent; it must be from {least:.4g}, which the drive already "
            "hides, to 90"
        )
    return percent / 100

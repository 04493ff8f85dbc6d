"""Write, free, discard, look: the trial of a discard on a real file system or block device.

The pitfalls it is built around: a buffered read of the device gives what its page cache holds; a
file that is open keeps its blocks; without a sync neither addresses nor frees are on the device;
ends of extents and small holes are passed over; ext4 leaves out what it trimmed before in this
mount, and no file system's byte count is evidence; a drive may need time; blocks may have been
given to others. Only blocks of the file are discarded, and only while they are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ssdlab.device import DirectReader, Job, discard, sync_file_system, trim_free
from ssdlab.experiments.trim.blocks import Places, device_below, middle, places_of
from ssdlab.experiments.trim.content import BLOCK, Span, Tally, digests, tally
from ssdlab.experiments.trim.declared import Meters, bottom_of, devices_of, tell
from ssdlab.experiments.trim.plan import MIB, Plan
from ssdlab.runner.session import RunSession, Step
from ssdlab.storage_stack.blockdev import BlockDevice, device_at
from ssdlab.storage_stack.extents import merged, read_extents
from ssdlab.storage_stack.mounts import Mount, mount_of
from ssdlab.storage_stack.trim import (
    Roots,
    TrimLayer,
    discards_online,
    read_tables,
    trim_layers_of_device,
    trim_layers_of_mount,
)
from ssdlab.units import format_size

FIRST_WAIT_S: Final = 0.5


@dataclass
class _Look:
    """The device's blocks under the marked bytes, and what was written there; or why there is none.

    `source` is None where nothing can be looked at.
    """

    source: DirectReader | None = None
    spans: tuple[Span, ...] = ()
    known: Sequence[bytes] = ()

    def tally(self) -> Tally | None:
        """What the blocks hold now."""
        return None if self.source is None else tally(self.source, self.spans, self.known)


def in_directory(session: RunSession, plan: Plan) -> None:
    """The trial with the blocks of a file.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    opened, file = session.target, session.target.test_file
    assert file is not None
    directory, mount = file.path.parent, mount_of(file.path)
    file.path.unlink()  # it lives on while it is open: whatever ends us, no file is left behind
    rows = trim_layers_of_mount(mount, Roots(tables=read_tables()))
    meters = _begin(session, rows)
    _fill(session, plan)
    with ExitStack() as stack:
        device = device_below(mount)
        places = _places(mount, device, file.fd, _unit(meters.devices))
        look = _look(session, stack, device, places)
        _control(session, look, meters)
        opened.release()
        sync_file_system(directory)
        online = discards_online(mount)
        wait_s = plan.wait_s if online else 0.0
        if not _look_until_gone(session, look, meters, Plan(plan.size, wait_s), "deleted"):
            asked = _trim_extents(session, directory, places.extents)
            wait_s = plan.wait_s if asked else 0.0
            _look_until_gone(session, look, meters, Plan(plan.size, wait_s), "trimmed")
        _end(session, meters)


def on_device(session: RunSession, plan: Plan) -> None:
    """The trial with the first bytes of a block device, whose content may be lost.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    path = Path(session.target.identity["path"])
    meters = _begin(session, trim_layers_of_device(device_at(path), Roots(tables=read_tables())))
    _fill(session, plan)
    with DirectReader(path) as source:
        spans = (middle(0, plan.size, _unit(meters.devices)),)
        look = _Look(source, spans, digests(source, spans))
        _control(session, look, meters)
        wait_s = plan.wait_s if _discard(session, path, plan.size) else 0.0
        _look_until_gone(session, look, meters, Plan(plan.size, wait_s), "trimmed")
        _end(session, meters)


def _begin(session: RunSession, rows: Sequence[TrimLayer]) -> Meters:
    """Observes what is declared, and starts to count."""
    tell(session, rows)
    for row in rows:
        if row.layer == "loop" and not row.below_file:
            session.target.warn(
                "loop-below",
                f"{row.device} is a loop device: that a discard reaches it frees blocks of its "
                "backing file; whether it goes on from there is up to that file's file system.",
            )
    meters = Meters(devices_of(rows), bottom_of(rows))
    meters.tell_used(session, "before")
    return meters


def _fill(session: RunSession, plan: Plan) -> None:
    job = Job(
        op="write",
        length_bytes=plan.size,
        block_bytes=MIB,
        amount_bytes=plan.size,
        queue_depth=4,
    )
    session.run(Step("fill", f"writing {format_size(plan.size)} of marked bytes", "fill"), job)
    session.flush()


def _unit(devices: Sequence[BlockDevice]) -> int:
    return max((device.discard_granularity or 0 for device in devices), default=0)


def _places(mount: Mount, device: BlockDevice | None, fd: int, unit: int) -> Places:
    if device is None:
        return Places(why_not=f"{mount.fs_type} here tells no addresses of one device")
    return places_of(merged(read_extents(fd) or ()), unit)


def _look(
    session: RunSession, stack: ExitStack, device: BlockDevice | None, places: Places
) -> _Look:
    """Opens the device under a mount, and learns the file's content; or says why not."""
    file = session.target.test_file
    assert file is not None
    if device is None or places.why_not:
        return _blind(session, "not-read", places.why_not)
    try:
        source = stack.enter_context(DirectReader(device.node))
    except OSError as error:
        why = f"{device.node} cannot be opened for reading ({error.strerror}), which takes root"
        return _blind(session, "needs-root", why)
    with DirectReader(Path(f"/proc/self/fd/{file.fd}")) as content:
        return _Look(source, places.on_device, digests(content, places.in_file))


def _blind(session: RunSession, code: str, why: str) -> _Look:
    session.observe("not_read", detail=why)
    session.target.warn(code, f"The blocks were not read back: {why}.")
    return _Look()


def _control(session: RunSession, look: _Look, meters: Meters) -> None:
    """The blocks are read while they are the file's: they must hold what was written."""
    _note(session, look.tally(), "written")
    meters.tell_used(session, "written")


def _discard(session: RunSession, path: Path, size: int) -> bool:
    """Discards the start of a block device; False where that was refused."""
    try:
        discard(path, 0, size)
    except OSError as error:
        session.observe("discard_mib", detail=f"refused ({error.strerror})")
        return False
    session.observe("discard_mib", size / MIB)
    return True


def _trim_extents(session: RunSession, directory: Path, extents: Sequence[Span]) -> bool:
    """Asks the file system to discard these extents; False where it was not, or refused."""
    if not extents:
        session.observe("fitrim_mib", detail="not asked: which range to discard is not known")
        return False
    try:
        trimmed = sum(trim_free(directory, start, length) for start, length in extents)
    except OSError as error:
        session.observe("fitrim_mib", detail=f"refused ({error.strerror})")
        if isinstance(error, PermissionError):
            session.target.warn(
                "needs-root", "To ask a file system to discard (FITRIM) takes root."
            )
        return False
    session.observe("fitrim_mib", trimmed / MIB)
    return True


def _look_until_gone(
    session: RunSession, look: _Look, meters: Meters, plan: Plan, when: str
) -> bool:
    """Looks at ever longer intervals until the marked bytes are gone, or the time is over.

    Where nothing can be read, until the drives were sent as much as was written.
    """
    waited, pause = 0.0, FIRST_WAIT_S
    while True:
        seen = look.tally()
        gone = meters.drives_got(plan.size) if seen is None else seen.is_gone
        if gone or waited >= plan.wait_s:
            break
        pause = min(pause, plan.wait_s - waited)
        session.rest(pause)
        waited, pause = waited + pause, 2 * pause
    _note(session, seen, when)
    session.observe(f"waited_{when}_s", waited)
    return gone


def _note(session: RunSession, seen: Tally | None, when: str) -> None:
    if seen is not None:
        for name, count in asdict(seen).items():
            session.observe(f"{name}_{when}_mib", count * BLOCK / MIB)


def _end(session: RunSession, meters: Meters) -> None:
    meters.tell(session)
    meters.tell_used(session, "after")

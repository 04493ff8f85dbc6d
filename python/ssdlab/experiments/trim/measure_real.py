"""Writes, frees, discards and reads back blocks of a real file system or block device.

Pitfalls that it avoids: buffered reads of the device return its page cache; an open file keeps its
blocks; without a sync blocks have no address yet and are not freed; file systems and drives skip
the ends of extents and small ranges; ext4 skips ranges that it has trimmed before in this mount,
so its byte count proves nothing; a drive may need time; freed blocks may be allocated to other
files. Only blocks of the test file are discarded, and only after they are freed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ssdlab.device import DirectReader, Job, discard, sync_file_system, trim_free
from ssdlab.experiments.trim.blocks import FileBlocks, blocks_of, device_below, middle
from ssdlab.experiments.trim.content import BLOCK, Span, Tally, digests, tally
from ssdlab.experiments.trim.counters import (
    DiscardCounters,
    devices_of,
    drives_of,
    record_declared,
)
from ssdlab.experiments.trim.plan import MIB, Plan
from ssdlab.runner.session import RunSession, Step
from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.blockdev import BlockDevice, device_at
from ssdlab.storage_stack.extents import merged, read_extents
from ssdlab.storage_stack.live import live_roots
from ssdlab.storage_stack.mounts import Mount, mount_of
from ssdlab.storage_stack.trim.stack import (
    discards_online,
    trim_layers_of_device,
    trim_layers_of_mount,
)
from ssdlab.units import format_size

FIRST_WAIT_S: Final = 0.5


@dataclass
class _ReadBack:
    """The marked blocks on the device, with digests of their content.

    `source` is None if they cannot be read.
    """

    source: DirectReader | None = None
    spans: tuple[Span, ...] = ()
    known: Sequence[bytes] = ()

    def tally(self) -> Tally | None:
        """Reads the blocks and compares them with what was written; None without `source`."""
        return None if self.source is None else tally(self.source, self.spans, self.known)


def in_directory(session: RunSession, plan: Plan) -> None:
    """Writes a file, deletes it, discards its blocks and reads them back.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    target, file = session.target, session.target.test_file
    assert file is not None
    directory, mount = file.path.parent, mount_of(file.path)
    file.path.unlink()  # usable while it is open; nothing is left behind if this process dies
    counters = _begin(session, trim_layers_of_mount(mount, live_roots()))
    _fill(session, plan)
    with ExitStack() as stack:
        device = device_below(mount)
        blocks = _file_blocks(mount, device, file.fd, _discard_unit(counters.devices))
        read_back = _open_read_back(session, stack, device, blocks)
        _record_written(session, read_back, counters)
        target.release()
        sync_file_system(directory)
        wait_s = plan.wait_s if discards_online(mount) else 0.0
        if not _wait_until_gone(session, read_back, counters, Plan(plan.size, wait_s), "deleted"):
            trimmed = _trim_extents(session, directory, blocks.extents)
            wait_s = plan.wait_s if trimmed else 0.0
            _wait_until_gone(session, read_back, counters, Plan(plan.size, wait_s), "trimmed")
        _end(session, counters)


def on_device(session: RunSession, plan: Plan) -> None:
    """Writes, discards and reads the first bytes of a block device, whose content may be lost.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    path = Path(session.target.identity["path"])
    counters = _begin(session, trim_layers_of_device(device_at(path), live_roots()))
    _fill(session, plan)
    with DirectReader(path) as source:
        spans = (middle(0, plan.size, _discard_unit(counters.devices)),)
        read_back = _ReadBack(source, spans, digests(source, spans))
        _record_written(session, read_back, counters)
        wait_s = plan.wait_s if _discard(session, path, plan.size) else 0.0
        _wait_until_gone(session, read_back, counters, Plan(plan.size, wait_s), "trimmed")
        _end(session, counters)


def _begin(session: RunSession, layers: Sequence[TrimLayer]) -> DiscardCounters:
    """Records what the layers declare and the space in use, and starts to count discards."""
    record_declared(session, layers)
    for layer in layers:
        if layer.layer == "loop" and not layer.below_file:
            session.target.warn(
                "loop-below",
                f"{layer.device} is a loop device, so a discard that reaches it only frees blocks "
                "of its backing file: run trim on the directory of that file, too.",
            )
    counters = DiscardCounters(devices_of(layers), drives_of(layers))
    counters.record_used(session, "before")
    return counters


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


def _discard_unit(devices: Sequence[BlockDevice]) -> int:
    return max((device.discard_granularity or 0 for device in devices), default=0)


def _file_blocks(mount: Mount, device: BlockDevice | None, fd: int, unit: int) -> FileBlocks:
    if device is None:
        return FileBlocks(
            why_not=f"{mount.fs_type} here does not report addresses on a single device; use a "
            "directory on ext4 or XFS"
        )
    return blocks_of(merged(read_extents(fd) or ()), unit)


def _open_read_back(
    session: RunSession, stack: ExitStack, device: BlockDevice | None, blocks: FileBlocks
) -> _ReadBack:
    """Opens the device below a mount and computes digests of the file; warns if it cannot."""
    file = session.target.test_file
    assert file is not None
    if device is None or blocks.why_not:
        return _not_readable(session, "not-read", blocks.why_not)
    try:
        source = stack.enter_context(DirectReader(device.node))
    except OSError as error:
        code, reason = _why_denied(error)
        why = f"{device.node} cannot be opened for reading ({error.strerror}); {reason}"
        return _not_readable(session, code, why)
    with DirectReader(Path(f"/proc/self/fd/{file.fd}")) as content:
        return _ReadBack(source, blocks.on_device, digests(content, blocks.in_file))


def _why_denied(error: OSError) -> tuple[str, str]:
    """The warning's code and what to do, if the kernel refused to open a device or to discard."""
    if not isinstance(error, PermissionError):
        return "not-read", "see the kernel's log"
    if os.geteuid() != 0:
        return "needs-root", "run this as root, with sudo"
    return "not-read", (
        "this machine forbids it, also to root (a container or a virtual machine may): run this "
        "outside of it"
    )


def _not_readable(session: RunSession, code: str, why: str) -> _ReadBack:
    session.observe("not_read", detail=why)
    session.target.warn(code, f"The blocks were not read back: {why}.")
    return _ReadBack()


def _record_written(session: RunSession, read_back: _ReadBack, counters: DiscardCounters) -> None:
    """Reads the blocks before deletion: they must read as written, or the addresses are wrong."""
    _record_tally(session, read_back.tally(), "written")
    counters.record_used(session, "written")


def _discard(session: RunSession, path: Path, size: int) -> bool:
    """Discards the start of a block device; False if refused."""
    try:
        discard(path, 0, size)
    except OSError as error:
        session.observe("discard_mib", detail=f"refused ({error.strerror})")
        return False
    session.observe("discard_mib", size / MIB)
    return True


def _trim_extents(session: RunSession, directory: Path, extents: Sequence[Span]) -> bool:
    """Discards these extents with FITRIM; False if refused or if there are none."""
    if not extents:
        session.observe("fitrim_mib", detail="not sent: the range to discard is not known")
        return False
    try:
        trimmed = sum(trim_free(directory, start, length) for start, length in extents)
    except OSError as error:
        session.observe("fitrim_mib", detail=f"refused ({error.strerror})")
        if isinstance(error, PermissionError):
            code, reason = _why_denied(error)
            session.target.warn(
                code, f"The file system was not asked to discard (FITRIM): {reason}."
            )
        return False
    session.observe("fitrim_mib", trimmed / MIB)
    return True


def _wait_until_gone(
    session: RunSession, read_back: _ReadBack, counters: DiscardCounters, plan: Plan, when: str
) -> bool:
    """Reads the blocks at growing intervals until they are gone or `plan.wait_s` has passed.

    If they cannot be read, waits until the drives got discards of `plan.size` bytes.
    """
    waited, pause = 0.0, FIRST_WAIT_S
    while True:
        counts = read_back.tally()
        gone = counters.drives_received(plan.size) if counts is None else counts.is_gone
        if gone or waited >= plan.wait_s:
            break
        pause = min(pause, plan.wait_s - waited)
        session.rest(pause)
        waited, pause = waited + pause, 2 * pause
    _record_tally(session, counts, when)
    session.observe(f"waited_{when}_s", waited)
    return gone


def _record_tally(session: RunSession, counts: Tally | None, when: str) -> None:
    if counts is not None:
        for name, count in asdict(counts).items():
            session.observe(f"{name}_{when}_mib", count * BLOCK / MIB)


def _end(session: RunSession, counters: DiscardCounters) -> None:
    counters.record_sent(session)
    counters.record_used(session, "after")

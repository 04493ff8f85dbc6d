"""Kills a heal on a served twin, or cuts the twin's power, and then checks the files.

`Rig` has a twin's file system with a file to heal and others. A kill is SIGKILL to the healing
program; with a mounted device, every second time also to its watchdog and the watchdog's helper
process. A cut takes the twin's power in the middle of one of its next writes. Rewriting in place
writes the same bytes, so a cut alone changes nothing: after a cut of a device's heal, some sectors
of the window being rewritten are overwritten with garbage, as a shorn write would leave them.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from heal_rig import CHECK, MKFS, Healing, Rig, Tally, attached, healing, mounted
from rig import make_file_system, run, wait_for

from ssdlab.errors import SsdlabError, UsageError
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.journal import Journal
from ssdlab.heal.device.whole import heal_device, recover_device
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.storage_stack.in_use import in_use

BLOCK = 4096
MOMENT_S = 0.01


def wait_until_begun(rig: Rig, process: Healing, before: float) -> None:
    """Waits until the healing program writes or ends."""
    while process.is_running and not _has_begun(rig, before):
        time.sleep(0.001)


def _has_begun(rig: Rig, before: float) -> bool:
    if rig.way == "file":
        return rig.host_writes() > before
    if not rig.journal.exists() or not rig.writes:
        return rig.journal.exists()
    # The other program writes too: the cut must come while a window is being rewritten.
    try:
        journal = Journal(rig.journal, shared=True)
    except SsdlabError:
        return False
    records = journal.records()
    journal.close()
    return bool(records)


def make(rig: Rig) -> tuple[int, int]:
    """Creates the file system and its files; returns units and writes of an undisturbed heal.

    The twin counts units of 4 KiB, but a cut is planned by requests, of up to 1 MiB each: the
    estimate adds half for small requests.
    """
    with attached(rig) as device:
        make_file_system(*MKFS[rig.kind], device)
        with mounted(rig, device, always=True):
            for name, content in rig.content.items():
                (rig.point / name).write_bytes(content)
            os.sync()
        with mounted(rig, device):
            before = rig.host_writes()
            with healing(rig, device) as process:
                assert process.wait() == 0, (rig.folder / "output").read_text()
            units = int(rig.host_writes() - before)
            return units, units * 3 // 512


def kill_once(rig: Rig, after_units: float, tally: Tally) -> None:
    """Heals, and kills the heal shortly after the twin has counted `after_units`.

    Not after a time, because the duration of a heal depends on the load of the machine.
    """
    rig.round += 1
    with attached(rig) as device, mounted(rig, device):
        before = rig.host_writes()
        with healing(rig, device) as process:
            wait_until_begun(rig, process, before)
            while process.is_running and rig.host_writes() - before < after_units:
                time.sleep(0.001)
            time.sleep(rig.rng.uniform(0, MOMENT_S))
            tally.interrupted["kill"] += process.is_running
            if rig.way == "frozen" and rig.rng.random() < 0.5:
                tally.with_watchdog += process.kill_with_watchdog(rig.point)
            process.kill()
        if rig.way == "frozen":
            run("sync", "-f", str(rig.point))
            (rig.point / "patient").touch()  # hangs if the file system is still frozen
    tally.done["kill"] += 1


def cut_once(rig: Rig, after_writes: int, tally: Tally, *, surely: bool = False) -> None:
    """Heals, cuts the power at one of the next writes, and overwrites sectors with garbage.

    The writes are counted from the moment the heal is seen to write, or with `surely` from before
    it starts: on a busy machine a heal may have ended before it is seen to write.
    """
    rig.round += 1
    with rig.control as control:
        cuts = control.power().cuts
        with attached(rig) as device, mounted(rig, device):
            before = rig.host_writes()
            if surely:
                control.plan_cut(after_writes=after_writes)
            with healing(rig, device) as process:
                if not surely:
                    wait_until_begun(rig, process, before)
                    control.plan_cut(after_writes=after_writes)
                while process.is_running and control.power().cuts == cuts:
                    time.sleep(0.002)
                was_running = process.is_running
                if missed := control.power().cuts == cuts:
                    # The planned cut may come now; then the power is already off.
                    with suppress(UsageError):
                        control.power_cut()
                # A heal that the cut ended may be gone before it is checked.
                failed = process.wait() != 0
                tally.interrupted["cut"] += not missed and (was_running or failed)
        control.power_on()
    tally.done["cut"] += 1
    if rig.way != "file":
        with attached(rig) as device:
            _shear(rig, device)


def _shear(rig: Rig, device: str) -> None:
    """Overwrites some sectors of the window that was being rewritten at the cut."""
    if not rig.journal.exists():
        return
    journal = Journal(rig.journal)
    records = journal.records()
    journal.close()
    if not records or records[0][0].state != "armed":
        return
    record = records[0][0]
    exclusive = DirectDevice(Path(device), exclusive=True)
    try:
        if exclusive.generation(record.identity.kind) != record.generation:
            return  # the window was complete, and the file system thawed
        buffer = mmap.mmap(-1, BLOCK)
        for each in rig.rng.choices(record.window.ranges, k=3):
            buffer[:] = rig.rng.randbytes(BLOCK)
            at = each.offset + rig.rng.randrange(each.length // BLOCK) * BLOCK
            os.pwritev(exclusive.fd, [memoryview(buffer)], at)
        exclusive.flush()
    finally:
        exclusive.close()


def examine(rig: Rig, tally: Tally) -> None:
    """Recovers, compares all files, checks the file system, and counts losses."""
    with attached(rig) as device:
        if rig.journal.exists():
            _recover(rig, device, tally)
        with mounted(rig, device, always=True):
            _compare(rig, device, tally)
        done = run(*CHECK[rig.kind], device, check=False)
        if done.returncode:
            tally.checks_failed += 1
            tally.errors.append(done.stdout + done.stderr)


def _recover(rig: Rig, device: str, tally: Tally) -> None:
    """Recovers with `recover_device`, or sometimes by the next heal."""
    node = Path(device)
    for left in reversed(range(5)):
        # Another program's search for a free loop device opens each of them for a moment.
        wait_for(lambda: not in_use(node), f"{device} is in use")
        try:
            tally.restored += _recovered_bytes(rig, node) > 0
        except SsdlabError as error:
            if left and "is open for writing" in str(error):
                continue
            tally.not_recovered += 1
            tally.errors.append(str(error))
            rig.journal.unlink(missing_ok=True)
        return


def _recovered_bytes(rig: Rig, node: Path) -> int:
    # A file system cut while mounted must be mounted once before its device can be healed.
    if rig.way == "frozen" or rig.rng.random() < 0.8:
        return recover_device(node, rig.journal).restored_bytes
    wish = HealOptions(everything=True, piece_bytes=1 << 30)
    return heal_device(node, DeviceOptions(wish, rig.journal), lambda *_: None).restored_bytes


def _compare(rig: Rig, device: str, tally: Tally) -> None:
    names = {entry.name for entry in rig.point.iterdir()} - {"lost+found"}
    copies = {name for name in names if name.startswith(".ssdlab-heal-")}
    tally.strangers += len(names - set(rig.content) - copies)
    if copies:
        with healing(rig, device) as process:
            process.wait()
        tally.strangers += len({entry.name for entry in rig.point.iterdir()} & copies)
    for name, expected in rig.content.items():
        path = rig.point / name
        if not path.exists():
            tally.files_missing += 1
            continue
        found = path.read_bytes()
        tally.bytes_differ += abs(len(found) - len(expected))
        if found != expected and not (rig.writes and name == "patient"):
            tally.bytes_differ += sum(a != b for a, b in zip(found, expected, strict=False))
        if rig.writes and name == "patient":
            tally.bytes_differ += _lost_blocks(rig, found, expected) * BLOCK
            rig.content[name] = found


def _lost_blocks(rig: Rig, found: bytes, expected: bytes) -> int:
    """Blocks that hold neither the old content nor a write of the program, or one too old."""
    kept: dict[int, int] = {}
    if rig.log.exists():
        for line in rig.log.read_text().split("\n")[:-1]:
            block, count = map(int, line.split())
            kept[block] = count
    lost = 0
    for at in range(0, len(expected) // BLOCK * BLOCK, BLOCK):
        here, block = found[at : at + BLOCK], at // BLOCK
        if here == expected[at : at + BLOCK] and block not in kept:
            continue
        number, count = (int.from_bytes(here[i : i + 8], sys.byteorder) for i in (0, 8))
        is_stamp = here == here[:16] * (BLOCK // 16) and number == block
        lost += not (is_stamp and count >= kept.get(block, rig.round << 32))
    return lost

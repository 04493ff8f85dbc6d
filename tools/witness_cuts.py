"""Power cuts by the thousand: served twins, honest and lying, under the witness, all as processes.

    python tools/witness_cuts.py --cuts 1000

A twin is `ssdlab serve` in a process of its own, the witness `ssdlab witness serve` in another, and
each round's writer a third, forked anew. A cut is planned at the twin's control socket: while some
write is half way. Half of the writers die with the drive, and their last messages with them.

Honest twins must give no alarm, lying ones the kind of their fault in every cut. `flush` is the
twin's own lie (buffer.honours_flush = false); the other faults are done to an honest twin's content
while its power is off: torn, misplaced and corrupt as public fault injectors do them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ssdlab import profiles
from ssdlab.device import Control
from ssdlab.witness.client import MessageSender, Witness
from ssdlab.witness.journal import ledger_of
from ssdlab.witness.judge import Judgement
from ssdlab.witness.ledger import Ledger
from ssdlab.witness.limits import SECTOR, Sync
from ssdlab.witness.nbd import NbdTarget
from ssdlab.witness.protocol import read_secret
from ssdlab.witness.stamps import Request, State, encode
from ssdlab.witness.verify import read_windows, verify
from ssdlab.witness.writer import WriteOptions, Writer

REGION: Final = 4 << 20
PATIENCE_S: Final = 600
SYNCS: Final[tuple[Sync, ...]] = ("fdatasync", "fua")
DIED: Final = 9
FILL_MASK: Final = 0xFFF
"""The worker's bits of a stream: 0 is the fill."""
FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["ssdlab.witness.writer", "ssdlab.witness.nbd", "ssdlab.device"])
CAPACITY: Final = "8GiB"
ROUNDS: Final = 20
"""Cuts of an honest twin in one run of the witness."""
HONEST: Final = ("protected", "volatile")
FAULTS: Final = ("flush", "torn", "misplaced", "corrupt", "unserialisable", "lost", "stale")
ALLOWED: Final = {"flush": {"lost", "stale", "torn", "unserialisable"}}
"""What a fault is to be called; of the others their own name."""


class NothingToHarm(Exception):  # noqa: N818 -- no error: the cut came too early for this fault
    """No acknowledged request is left that this fault could be done to."""


PROTECTED: Final = "power_loss_protection = { value = true"
LYING: Final = "honours_flush = { value = false"


@dataclass(frozen=True)
class Bench:
    """A served twin and a witness."""

    uri: str
    control: Path
    witness: Witness
    block: int = SECTOR


def profile_of(kind: str) -> str:
    """The twin's profile: flash so slow that something is in the buffer at a cut.

    Idle time of the server is the twin's: it must outlast how long a busy machine lets nobody run.
    """
    text = profiles.load("toshiba-xg5").replace('value = "700 us"', 'value = "1000 s"')
    if kind == "protected":
        text = text.replace("power_loss_protection = { value = false", PROTECTED)
        assert PROTECTED in text
    if kind == "flush":
        text = text.replace("honours_flush = { value = true", LYING)
        assert LYING in text
    return text


@contextlib.contextmanager
def started(kind: str, folder: Path) -> Iterator[Bench]:
    """The processes of a twin and its witness."""
    folder.mkdir()
    profile, drive, journals = folder / "twin.toml", folder / "drive", folder / "journals"
    profile.write_text(profile_of(kind))
    program = [sys.executable, "-c", "from ssdlab.cli import main; main()"]
    twin = subprocess.Popen(
        [*program, "serve", str(profile), "--unix", str(drive), "--capacity", CAPACITY, "--quiet"]
    )
    lines = [*program, "witness", "serve", "--listen", "127.0.0.1:0", "--out", str(journals)]
    said = folder / "witness.log"
    with said.open("w") as log:
        witness = subprocess.Popen(lines, stderr=log)
    try:
        while not (first := said.read_text()).startswith("witness on ") or "\n" not in first:
            assert witness.poll() is None, f"the witness did not start: {first}"
            time.sleep(0.02)
        port = int(first.partition(",")[0].rpartition(":")[2])
        secret = read_secret(journals / "secret")
        control = Path(f"{drive}.control")
        while not control.exists():
            assert twin.poll() is None, "the twin did not start"
            time.sleep(0.02)
        block = 4096 if kind == "flush" else SECTOR
        yield Bench(
            f"nbd+unix:///?socket={drive}", control, Witness(("127.0.0.1", port), secret), block
        )
    finally:
        for process in (twin, witness):
            process.send_signal(signal.SIGTERM)
            process.wait()


def opened(bench: Bench, sync: Sync) -> NbdTarget:
    """The twin's region."""
    target = NbdTarget(bench.uri, sync)
    target.size_bytes, target.block_bytes = REGION, bench.block
    return target


def write_round(bench: Bench, plan: WriteOptions, begin: dict[str, Any], after: int) -> None:
    """A round in a process of its own; it ends when the drive goes away.

    `after` writes until the cut; 0 leaves it to chance, and then the process dies with the drive.
    """
    target = opened(bench, plan.sync)
    sender = MessageSender(bench.witness, begin)
    writer = Writer(target, plan, sender)
    if sender.round == 1:
        writer.fill(lambda _share: None)
    with Control(bench.control) as control:
        if after:
            control.plan_cut(after_writes=after, on=True)
        else:
            control.plan_cut(random=(plan.seed + sender.round, 60), on=True)
    writer.run(lambda _written: None)
    if not after:
        os._exit(DIED)
    sender.drain(PATIENCE_S)
    sender.close()


def cut_once(bench: Bench, plan: WriteOptions, session: str, after: int) -> None:
    """Forks a writer and waits for its end."""
    begin = {"run": plan.run.hex(), "session": session, "target": bench.uri}
    process = FORKS.Process(target=write_round, args=(bench, plan, begin, after))
    process.start()
    process.join(PATIENCE_S)
    expected = 0 if after else DIED
    assert process.exitcode == expected, f"the writer ended with {process.exitcode}"


def look(bench: Bench, run: bytes, fault: str, chance: random.Random) -> Judgement:
    """Verifies the region after a cut, once the fault is done to it."""
    _, records = bench.witness.fetch(run.hex(), None)
    ledger = ledger_of(records)
    rounds = [each["round"] for each in records if isinstance(each, dict)]
    with contextlib.closing(opened(bench, "fdatasync")) as target:
        if fault not in {"", "flush"}:
            harm(target, run, ledger, fault, chance)
        return verify(target, run, ledger, max(rounds))


def harm(target: NbdTarget, run: bytes, ledger: Ledger, fault: str, chance: random.Random) -> None:
    """Does a fault to one acknowledged request that nothing has overwritten."""
    rows = harmable(target, run, ledger, fault)
    if not rows:
        raise NothingToHarm
    request = ledger.requests[chance.choice(rows)]
    first, sectors = int(request["first"]), int(request["sectors"])
    new = bytes(target.read(first * SECTOR, sectors * SECTOR))
    old = filled(run, ledger, first, sectors)
    if fault == "torn":
        kept = max(1, sectors * 7 // 8) * SECTOR
        result = new[:kept] + old[kept:]
    elif fault == "corrupt":
        at = chance.randrange(len(new))
        result = new[:at] + bytes([new[at] ^ 0x5A]) + new[at + 1 :]
    else:
        result = bytes(len(new)) if fault == "lost" else old
    target.write(first * SECTOR, memoryview(result))
    if fault == "misplaced":
        astray = (first * SECTOR + 8192) % (REGION - len(new) + SECTOR)
        target.write(astray, memoryview(new))
    target.flush()


def harmable(target: NbdTarget, run: bytes, ledger: Ledger, fault: str) -> list[int]:
    """Rows of acknowledged requests that the fault can be done to, each sector still theirs."""
    lower, upper = ledger.bounds(0, REGION // SECTOR)
    proven: Counter[int] = Counter()
    for _, found in read_windows(target, run):
        for stamp in found.stamps[found.states == State.OURS]:
            stream = int(stamp["stream"])
            proven[stream] = max(proven[stream], int(stamp["covered"]))
    rows = []
    for row, request in enumerate(ledger.requests):
        first, end = int(request["first"]), int(request["first"] + request["sectors"])
        is_whole = (lower[first:end] == row).all() and (upper[first:end] == row).all()
        if not is_whole or request["stream"] & FILL_MASK == 0:
            continue
        is_followed = proven[int(request["stream"])] >= request["sequence"]
        if fault in {"lost", "stale", "unserialisable"}:
            if is_followed == (fault == "unserialisable"):
                rows.append(row)
        elif fault != "torn" or request["sectors"] > 1:
            rows.append(row)
    return rows


def filled(run: bytes, ledger: Ledger, first: int, sectors: int) -> bytes:
    """What the fill wrote to sectors."""
    result = bytearray()
    for fill in ledger.requests[ledger.requests["stream"] & FILL_MASK == 0]:
        begin, count = int(fill["first"]), int(fill["sectors"])
        low, high = max(begin, first), min(begin + count, first + sectors)
        if low < high:
            generation, stream, sequence = (
                int(fill[name]) for name in ("generation", "stream", "sequence")
            )
            request = Request(generation, stream, sequence, begin, count)
            data = encode(run, request)
            result += data[(low - begin) * SECTOR : (high - begin) * SECTOR]
    assert len(result) == sectors * SECTOR, "the fill has written everything"
    return bytes(result)


def honest(kind: str, cuts: int, folder: Path, seed: int) -> dict[str, Any]:
    """Cuts of an honest twin, some of them to a run of the witness."""
    seen: Counter[str] = Counter()
    run = b""
    with started(kind, folder) as bench:
        for cut in range(cuts):
            if cut % ROUNDS == 0:
                run = os.urandom(16)
            plan = WriteOptions(run, SYNCS[cut // ROUNDS % len(SYNCS)], seed=seed + cut)
            chance = random.Random(f"{seed}/{cut}")
            cut_once(bench, plan, f"{cut:x}", 0 if cut % 2 else chance.randint(10, 60))
            judgement = look(bench, run, "", chance)
            count(seen, judgement, ())
    return {"twin": kind, "cuts": cuts, **seen}


def lying(fault: str, cuts: int, folder: Path, seed: int) -> dict[str, Any]:
    """Cuts of a lying twin, each a run of its own: what was lost stays lost."""
    seen: Counter[str] = Counter()
    with started(fault, folder) as bench:
        done = tried = 0
        while done < cuts:
            tried += 1
            plan = WriteOptions(os.urandom(16), SYNCS[tried % len(SYNCS)], seed=seed + tried)
            if fault == "flush":
                plan = replace(plan, smallest=bench.block)
            chance = random.Random(f"{seed}/{tried}")
            cut_once(bench, plan, "0", chance.randint(20, 60))
            try:
                judgement = look(bench, plan.run, fault, chance)
            except NothingToHarm:
                seen["nothing_to_harm"] += 1
                continue
            done += 1
            count(seen, judgement, ALLOWED.get(fault, {fault}))
    return {"twin": fault, "cuts": cuts, **seen}


def count(seen: Counter[str], judgement: Judgement, allowed: Collection[str]) -> None:
    """Adds a judgement: whether there was an alarm, whether it has the right kind, and how much."""
    kinds = set(judgement.kinds)
    seen["alarms"] += bool(kinds)
    seen["right_kind"] += bool(kinds) and kinds <= set(allowed)
    seen["in_flight"] += judgement.in_flight.requests
    seen["near_misses"] += judgement.in_flight.near_misses
    for kind, number in judgement.kinds.items():
        seen[kind] += number


def main(words: list[str]) -> int:
    """Runs all twins; prints a row each as JSON; 1 if one was judged wrongly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cuts", type=int, default=1000, help="of honest and of lying twins")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*HONEST, *FAULTS], help="one twin alone")
    given = parser.parse_args(words)
    others = given.cuts // 20
    shares = dict.fromkeys(HONEST, given.cuts // len(HONEST))
    shares |= dict.fromkeys(FAULTS, others)
    shares["flush"] = given.cuts - others * (len(FAULTS) - 1)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, cuts in shares.items():
            if given.only in {None, kind}:
                begin = time.monotonic()
                conduct = honest if kind in HONEST else lying
                row = conduct(kind, cuts, Path(folder) / kind, given.seed)
                print(
                    json.dumps({**row, "seconds": round(time.monotonic() - begin, 1)}), flush=True
                )
                wrong += row["alarms"] if kind in HONEST else cuts - row["right_kind"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

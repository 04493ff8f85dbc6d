"""Thousands of power cuts of served twins, honest and lying, checked by the witness.

    python tools/witness_cuts.py --cuts 1000

The twin is an `ssdlab serve` process, the witness an `ssdlab witness serve` process, and each
round has a new writer process. A cut is planned over the twin's control socket, to happen while a
write is in progress. Half of the writers are killed with the drive, so that their last messages
are lost too.

Honest twins must give no alarm; lying ones must give an alarm of the right kind in every cut.
`flush` is a fault of the twin (buffer.honours_flush = false). The other faults are injected into
an honest twin's data while its power is off; torn, misplaced and corrupt work as in public fault
injectors.
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
from ssdlab.errors import TargetError
from ssdlab.witness.client import MessageSender, Witness
from ssdlab.witness.journal import ledger_of
from ssdlab.witness.judge import Judgement, read_windows, verify
from ssdlab.witness.ledger import Ledger
from ssdlab.witness.limits import SECTOR, Sync
from ssdlab.witness.nbd import NbdTarget
from ssdlab.witness.protocol import read_secret
from ssdlab.witness.stamps import Request, State, encode
from ssdlab.witness.writer import WriteOptions, Writer

REGION: Final = 4 << 20
TIMEOUT_S: Final = 120
SYNCS: Final[tuple[Sync, ...]] = ("fdatasync", "fua")
KILLED_STATUS: Final = 9
FILL_MASK: Final = 0xFFF
"""The bits of a stream number that hold the worker; worker 0 is the fill."""
FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["ssdlab.witness.writer", "ssdlab.witness.nbd", "ssdlab.device"])
CAPACITY: Final = "8GiB"
ROUNDS: Final = 20
"""Cuts of an honest twin in one run of the witness."""
HONEST: Final = ("protected", "volatile")
FAULTS: Final = ("flush", "torn", "misplaced", "corrupt", "unserialisable", "lost", "stale")
ALLOWED: Final = {"flush": {"lost", "stale", "torn", "unserialisable"}}
"""The alarms allowed for a fault, if not only its own name."""


class NoCandidate(Exception):  # noqa: N818 -- not an error: the cut came too early
    """No acknowledged request is suitable for this fault."""


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
    """The twin's profile, with programs so slow that the buffer has data at a cut.

    The twin also programs while the server is idle, so a program must take longer than a busy
    machine can delay the server.
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
    """Start the processes of a twin and its witness."""
    folder.mkdir()
    profile, drive, journals = folder / "twin.toml", folder / "drive", folder / "journals"
    profile.write_text(profile_of(kind))
    program = [sys.executable, "-c", "from ssdlab.cli import main; main()"]
    words = ("--unix", str(drive), "--capacity", CAPACITY, "--pace", "none", "--quiet")
    twin = subprocess.Popen([*program, "serve", str(profile), *words])
    lines = [*program, "witness", "serve", "--listen", "127.0.0.1:0", "--out", str(journals)]
    log_file = folder / "witness.log"
    with log_file.open("w") as log:
        witness = subprocess.Popen(lines, stderr=log)
    try:
        while not (first := log_file.read_text()).startswith("witness on ") or "\n" not in first:
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
    """The twin's region; the server refuses connections until a power cut is complete."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            target = NbdTarget(bench.uri, sync)
        except TargetError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            target.size_bytes, target.block_bytes = REGION, bench.block
            return target


def write_round(bench: Bench, plan: WriteOptions, begin: dict[str, Any], after: int) -> None:
    """Write until the cut; runs in a process of its own.

    The cut comes after `after` writes; 0 means after a random number, and then the process exits
    without sending its last messages.
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
        os._exit(KILLED_STATUS)
    sender.drain(TIMEOUT_S)
    sender.close()


def cut_once(bench: Bench, plan: WriteOptions, session: str, after: int) -> None:
    """Start a writer and wait until it ends."""
    begin = {"run": plan.run.hex(), "session": session, "target": bench.uri}
    process = FORKS.Process(target=write_round, args=(bench, plan, begin, after))
    process.start()
    process.join(TIMEOUT_S)
    expected = 0 if after else KILLED_STATUS
    assert process.exitcode == expected, f"the writer exited with {process.exitcode}"


def inspect(bench: Bench, run: bytes, fault: str, chance: random.Random) -> Judgement:
    """Inject the fault, then verify the region."""
    _, records = bench.witness.fetch(run.hex(), None)
    ledger = ledger_of(records)
    rounds = [record["round"] for record in records if isinstance(record, dict)]
    with contextlib.closing(opened(bench, "fdatasync")) as target:
        if fault not in {"", "flush"}:
            inject(target, run, ledger, fault, chance)
        return verify(target, run, ledger, max(rounds))


def inject(
    target: NbdTarget, run: bytes, ledger: Ledger, fault: str, chance: random.Random
) -> None:
    """Inject a fault into one acknowledged request that was not overwritten."""
    rows = candidates(target, run, ledger, fault)
    if not rows:
        raise NoCandidate
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


def candidates(target: NbdTarget, run: bytes, ledger: Ledger, fault: str) -> list[int]:
    """Ledger rows of acknowledged requests that suit the fault and were not overwritten."""
    lower, upper = ledger.bounds(0, REGION // SECTOR)
    proven: Counter[int] = Counter()
    for _, sectors in read_windows(target, run):
        for stamp in sectors.stamps[sectors.states == State.OURS]:
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
    """The data that the fill wrote to these sectors."""
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
    """Cuts of an honest twin, `ROUNDS` of them in each run of the witness."""
    counts: Counter[str] = Counter()
    run = b""
    with started(kind, folder) as bench:
        for cut in range(cuts):
            if cut % ROUNDS == 0:
                run = os.urandom(16)
            plan = WriteOptions(run, SYNCS[cut // ROUNDS % len(SYNCS)], seed=seed + cut)
            chance = random.Random(f"{seed}/{cut}")
            cut_once(bench, plan, f"{cut:x}", 0 if cut % 2 else chance.randint(10, 60))
            judgement = inspect(bench, run, "", chance)
            count(counts, judgement, ())
    return {"twin": kind, "cuts": cuts, **counts}


def lying(fault: str, cuts: int, folder: Path, seed: int) -> dict[str, Any]:
    """Cuts of a lying twin, each in a run of its own because lost data stays lost."""
    counts: Counter[str] = Counter()
    with started(fault, folder) as bench:
        done = attempts = 0
        while done < cuts:
            attempts += 1
            plan = WriteOptions(os.urandom(16), SYNCS[attempts % len(SYNCS)], seed=seed + attempts)
            if fault == "flush":
                plan = replace(plan, smallest=bench.block)
            chance = random.Random(f"{seed}/{attempts}")
            cut_once(bench, plan, "0", chance.randint(20, 60))
            try:
                judgement = inspect(bench, plan.run, fault, chance)
            except NoCandidate:
                counts["nothing_to_harm"] += 1
                continue
            done += 1
            count(counts, judgement, ALLOWED.get(fault, {fault}))
    return {"twin": fault, "cuts": cuts, **counts}


def count(counts: Counter[str], judgement: Judgement, allowed: Collection[str]) -> None:
    """Add a judgement: alarm or not, of the right kind or not, and the numbers of each kind."""
    kinds = set(judgement.kinds)
    counts["alarms"] += bool(kinds)
    counts["right_kind"] += bool(kinds) and kinds <= set(allowed)
    counts["in_flight"] += judgement.in_flight.requests
    counts["near_misses"] += judgement.in_flight.near_misses
    for kind, number in judgement.kinds.items():
        counts[kind] += number


def main(words: list[str]) -> int:
    """Cut all twins; prints a JSON row for each; exit status 1 if one was judged wrongly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--cuts", type=int, default=1000, help="cuts of honest twins, and of lying ones"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*HONEST, *FAULTS], help="only this twin")
    options = parser.parse_args(words)
    others = options.cuts // 20
    shares = dict.fromkeys(HONEST, options.cuts // len(HONEST))
    shares |= dict.fromkeys(FAULTS, others)
    shares["flush"] = options.cuts - others * (len(FAULTS) - 1)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, cuts in shares.items():
            if options.only in {None, kind}:
                started_at = time.monotonic()
                cut_twin = honest if kind in HONEST else lying
                row = cut_twin(kind, cuts, Path(folder) / kind, options.seed)
                print(
                    json.dumps({**row, "seconds": round(time.monotonic() - started_at, 1)}),
                    flush=True,
                )
                wrong += row["alarms"] if kind in HONEST else cuts - row["right_kind"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

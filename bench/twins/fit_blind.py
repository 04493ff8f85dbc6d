"""Are twins found again? Random twins, measured as black boxes, fitted from another start.

    python bench/twins/fit_blind.py [--twins 20] [--seed 1]

Each box is drawn at random: dies, chunk, spare, tR, tPROG, link, overheads, buffer, read-ahead,
protection. It is measured at 1 GiB by `stripe`, `split`, `suite`, `fsync`, `cache`, `steady` and
`aging`; the fit knows nothing but those results and starts from one and the same profile. Printed
are the fitted numbers over the true ones; a star means "not determined". A twin counts as found if
dies, chunk, spare and tR are within 10 % or said to be undetermined.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

import numpy as np

from ssdlab import profiles
from ssdlab.analysis.cells import cells
from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.ageing import AgeingRow, twin_seconds
from ssdlab.fit.fitted import FitInput, Fitted, fit
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, MIB, candidate_session, evidence_of
from ssdlab.profiles.toml_edit import get_value, set_value

START: Final = "samsung-970-evo-plus-500"
NEAR: Final = 0.1
WRITTEN: Final = (50.0, 200.0, 800.0, 4000.0)


@dataclass(frozen=True)
class Box:
    """A twin that the fit does not see, and what was measured of it."""

    profile: str
    sheet: FitInput


def drawn(chance: random.Random) -> str:
    """A profile whose twin exists at the size of the bench."""
    while True:
        text = profiles.load("toshiba-xg5")
        for key, value in _numbers(chance).items():
            text = set_value(text, key, value)
        try:
            describe_twin("box", text, CAPACITY)
        except TargetError:
            continue
        return text


def _numbers(chance: random.Random) -> dict[str, Any]:
    read, protected = chance.uniform(30, 100), chance.random() < 0.3
    return {
        "flash.channels": chance.choice((2, 4, 8)),
        "flash.dies_per_channel": chance.choice((1, 2, 4)),
        "flash.read": [f"{read * share:.2f} us" for share in (0.8, 1.0, 1.2)],
        "flash.program": f"{chance.uniform(250, 1600):.0f} us",
        "flash.pages_per_block": chance.choice((256, 384, 512, 768, 1152)),
        "ftl.chunk": chance.choice(("16 KiB", "32 KiB", "64 KiB", "128 KiB")),
        "ftl.spare": round(chance.uniform(0.06, 0.3), 4),
        "ftl.read_ahead": chance.choice((None, "256 KiB")),
        "ftl.read_portion": None,
        "ftl.read_portions": None,
        "link.bandwidth": f"{chance.uniform(550, 3400):.0f} MB/s",
        "link.read_overhead": f"{chance.uniform(5, 60):.1f} us",
        "link.write_overhead": f"{chance.uniform(3, 30):.1f} us",
        "buffer.size": f"{chance.choice((4, 8, 16, 32))} MiB",
        "buffer.power_loss_protection": protected,
    }


def measured(text: str, seed: int) -> Box:
    """All experiments on the box, one after the other, each on a new twin."""
    tasks: list[tuple[str, Any, Any, Any]] = [
        ("stripe", stripe, stripe_analysis, stripe.Plan(256 * MIB, 2, 4096, seed)),
        ("split", split, split_analysis, split.Plan(64 * MIB, 3, seed=seed)),
        ("suite", suite, suite_analysis, suite.Plan(128 * MIB, 1.0, 2, seed)),
        ("fsync", fsync, fsync_analysis, fsync.Plan(64 * MIB, 0.5, 2, "unknown", seed)),
        ("cache", cache, cache_analysis, cache.plan(CAPACITY, None, quick=True, seed=seed)),
        ("steady", steady, steady_analysis, steady.Plan(CAPACITY, CAPACITY, settle_s=3.0)),
    ]
    found = []
    for name, experiment, analysis, plan in tasks:
        course = candidate_session(text)
        experiment.measure(course, plan)
        done = analysis.conclude(evidence_of(course, plan))
        rows = tuple(cells(name, done.measures))
        found.append(Measurement(name, "box", "box", rows, done.findings, plan.parameters()))
    row = AgeingRow("box", 4096.0, WRITTEN, (1.0,) * 5)
    row = AgeingRow("box", 4096.0, WRITTEN, tuple(twin_seconds(text, row, seed=seed)))
    return Box(text, FitInput((row, row), tuple(found)))


def ratios(box: Box, fitted: Fitted) -> dict[str, tuple[float, bool]]:
    """Fitted over true, and whether the fit says that it is determined."""
    told = {each.key: each.determined for each in fitted.parameters}
    here, there = (describe_twin("box", text, CAPACITY) for text in (fitted.profile, box.profile))
    read = [np.mean([_us(each) for each in _listed(t)]) for t in (fitted.profile, box.profile)]
    return {
        "dies": (here["dies"] / there["dies"], told.get("flash.dies_per_channel", False)),
        "chunk": (here["chunk_bytes"] / there["chunk_bytes"], told.get("ftl.chunk", False)),
        "spare": (here["spare"] / there["spare"], told.get("ftl.spare", False)),
        "tR": (float(read[0] / read[1]), told.get("flash.read", False)),
        "tPROG": (_over(box, fitted, "flash.program"), told.get("flash.program", False)),
        "link": (_over(box, fitted, "link.bandwidth"), told.get("link.bandwidth", False)),
        "buffer": (here["buffer_bytes"] / there["buffer_bytes"], told.get("buffer.size", False)),
    }


def _listed(text: str) -> list[str]:
    value = get_value(text, "flash.read")
    return value if isinstance(value, list) else [value]


def _us(text: str) -> float:
    return float(text.split(maxsplit=1)[0])


def _over(box: Box, fitted: Fitted, key: str) -> float:
    return _us(get_value(fitted.profile, key)) / _us(get_value(box.profile, key))


def main() -> None:
    """Prints a row a twin, and how many were found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twins", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    tasks = [(options.seed, n) for n in range(options.twins)]
    found = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(tried, task) for task in tasks]):
            good, line = done.result()
            print(line, flush=True)
            found += good
    print(f"{found} of {options.twins} found")


def tried(task: tuple[int, int]) -> tuple[bool, str]:
    """A box of that seed and number, measured and fitted: whether it was found, and its row."""
    begun, (seed, n) = time.process_time(), task
    box = measured(drawn(random.Random(1000 * seed + n)), n)
    fitted = fit(profiles.load(START), box.sheet, "bench", lambda _done, _all: None)
    rows = ratios(box, fitted)
    good = all(abs(rows[k][0] - 1) <= NEAR or not rows[k][1] for k in list(rows)[:4])
    words = "  ".join(f"{k} {v:5.3f}{' ' if told else '*'}" for k, (v, told) in rows.items())
    error, seconds = float(abs(fitted.errors).mean()), time.process_time() - begun
    tail = "" if good else "  NOT FOUND"
    return good, f"{n:2}  {words}  error {error:5.1%}  {seconds:4.0f} s of processor{tail}"


if __name__ == "__main__":
    main()

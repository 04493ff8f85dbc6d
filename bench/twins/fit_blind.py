"""Does a fit recover random twins from their measurements alone?

    python bench/twins/fit_blind.py [--twins 20] [--seed 1]

Each twin is drawn at random: dies, chunk, spare, tR, tPROG, link, overheads, buffer, read-ahead,
protection. It is measured at 1 GiB by `stripe`, `split`, `suite`, `fsync`, `cache`, `steady` and
`aging`. The fit gets these results only, and always starts from the same profile. The output is
fitted value / true value; a star means "not determined". A twin counts as recovered if dies, chunk,
spare and tR are within 10 %, or reported as not determined.
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

from ssdlab import Cache, profiles
from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.ageing import AgeingRow, twin_seconds
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, MIB, candidate_session, evidence_of
from ssdlab.fit.results import FitInput
from ssdlab.profiles.toml_edit import get_value, set_value

START: Final = "samsung-970-evo-plus-500"
TOLERANCE: Final = 0.1
WRITTEN: Final = (50.0, 200.0, 800.0, 4000.0)


@dataclass(frozen=True)
class MeasuredTwin:
    """A profile that the fit does not see, and the results measured on its twin."""

    profile: str
    results: FitInput


def draw_profile(rng: random.Random) -> str:
    """A random profile that makes a twin of the candidates' capacity."""
    while True:
        text = profiles.load("toshiba-xg5")
        for key, value in _random_values(rng).items():
            text = set_value(text, key, value)
        try:
            describe_twin("box", text, CAPACITY)
        except TargetError:
            continue
        return text


def _random_values(rng: random.Random) -> dict[str, Any]:
    read, protected = rng.uniform(30, 100), rng.random() < 0.3
    return {
        "flash.channels": rng.choice((2, 4, 8)),
        "flash.dies_per_channel": rng.choice((1, 2, 4)),
        "flash.read": [f"{read * share:.2f} us" for share in (0.8, 1.0, 1.2)],
        "flash.program": f"{rng.uniform(250, 1600):.0f} us",
        "flash.pages_per_block": rng.choice((256, 384, 512, 768, 1152)),
        "ftl.chunk": rng.choice(("16 KiB", "32 KiB", "64 KiB", "128 KiB")),
        "ftl.spare": round(rng.uniform(0.06, 0.3), 4),
        "ftl.read_ahead": rng.choice((None, "256 KiB")),
        "ftl.read_portion": None,
        "ftl.read_portions": None,
        "link.bandwidth": f"{rng.uniform(550, 3400):.0f} MB/s",
        "link.read_overhead": f"{rng.uniform(5, 60):.1f} us",
        "link.write_overhead": f"{rng.uniform(3, 30):.1f} us",
        "buffer.size": f"{rng.choice((4, 8, 16, 32))} MiB",
        "buffer.power_loss_protection": protected,
    }


def measure_twin(text: str, seed: int) -> MeasuredTwin:
    """Runs all experiments, each on a new twin."""
    tasks: list[tuple[str, Any, Any, Any]] = [
        ("stripe", stripe, stripe_analysis, stripe.Plan(256 * MIB, 2, 4096, seed)),
        ("split", split, split_analysis, split.Plan(64 * MIB, 3, seed=seed)),
        ("suite", suite, suite_analysis, suite.Plan(128 * MIB, 1.0, 2, seed)),
        ("fsync", fsync, fsync_analysis, fsync.Plan(64 * MIB, 0.5, 2, "unknown", seed)),
        ("cache", cache, cache_analysis, cache.plan_for(Cache(quick=True), CAPACITY, seed)),
        ("steady", steady, steady_analysis, steady.Plan(CAPACITY, CAPACITY, settle_s=3.0)),
    ]
    results = []
    for name, experiment, analysis, plan in tasks:
        session = candidate_session(text)
        experiment.measure(session, plan)
        conclusion = analysis.conclude(evidence_of(session, plan))
        rows = tuple(cells_of(name, conclusion.measures))
        findings, parameters = conclusion.findings, plan.parameters()
        results.append(Measurement(name, "box", "box", rows, findings, parameters))
    row = AgeingRow("box", 4096.0, WRITTEN, (1.0,) * 5)
    row = AgeingRow("box", 4096.0, WRITTEN, tuple(twin_seconds(text, row, seed=seed)))
    return MeasuredTwin(text, FitInput(tuple(results), row, row))


def ratios(twin: MeasuredTwin, fitted: Fitted) -> dict[str, tuple[float, bool]]:
    """Fitted value / true value, and whether the fit reports the number as determined."""
    determined = {each.key: each.determined for each in fitted.parameters}
    texts = (fitted.profile, twin.profile)
    got, true = (describe_twin("box", text, CAPACITY) for text in texts)
    values = {
        "dies": (got["dies"] / true["dies"], "flash.dies_per_channel"),
        "chunk": (got["chunk_bytes"] / true["chunk_bytes"], "ftl.chunk"),
        "spare": (got["spare"] / true["spare"], "ftl.spare"),
        "tR": (_ratio(*texts, "flash.read"), "flash.read"),
        "tPROG": (_ratio(*texts, "flash.program"), "flash.program"),
        "link": (_ratio(*texts, "link.bandwidth"), "link.bandwidth"),
        "buffer": (got["buffer_bytes"] / true["buffer_bytes"], "buffer.size"),
    }
    return {name: (ratio, determined.get(key, False)) for name, (ratio, key) in values.items()}


def _ratio(fitted: str, true: str, key: str) -> float:
    """Ratio of a key's (mean) values in two profiles' texts."""
    means = []
    for text in (fitted, true):
        value = get_value(text, key)
        quantities = value if isinstance(value, list) else [value]
        means.append(np.mean([float(each.split(maxsplit=1)[0]) for each in quantities]))
    return float(means[0] / means[1])


def main() -> None:
    """Prints one row for each twin, and how many were recovered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twins", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    tasks = [(options.seed, n) for n in range(options.twins)]
    recovered = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_twin, *task) for task in tasks]):
            is_recovered, line = future.result()
            print(line, flush=True)
            recovered += is_recovered
    print(f"{recovered} of {options.twins} recovered")


def run_twin(seed: int, n: int) -> tuple[bool, str]:
    """Measures and fits twin `n`: whether it was recovered, and its row."""
    start = time.process_time()
    twin = measure_twin(draw_profile(random.Random(1000 * seed + n)), n)
    fitted = fit(profiles.load(START), twin.results, "bench")
    rows = ratios(twin, fitted)
    is_recovered = all(abs(rows[k][0] - 1) <= TOLERANCE or not rows[k][1] for k in list(rows)[:4])
    cells = "  ".join(f"{k} {v:5.3f}{' ' if known else '*'}" for k, (v, known) in rows.items())
    error, seconds = float(abs(fitted.errors).mean()), time.process_time() - start
    tail = "" if is_recovered else "  NOT RECOVERED"
    return is_recovered, f"{n:2}  {cells}  error {error:5.1%}  {seconds:4.0f} s of CPU{tail}"


if __name__ == "__main__":
    main()

"""Error rates of `ssdlab compare`: equal sides called different, and a true 10 % missed.

Usage: python bench/compare.py [--trials 100] [--turns 20] [--turn 50ms] [--only WORD] [DIRECTORY]

equal, in turns: the same file against itself with `--interleave`; each trial is one comparison.
equal, runs: two groups of runs of that file, one group after the other, and single runs. These
  cannot see changes of the machine between the groups, which therefore determine the error rate.
10 %, twins: reads of a twin in turns. A twin has no noise: the recorded numbers of each turn get
  independent lognormal noise of 5 %, and those of the second side are worse by 10 %.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ssdlab.api.turns import SidePlan, measure_in_turns
from ssdlab.cli.compare import ShortJob
from ssdlab.comparison.method import Side, make_side
from ssdlab.comparison.verdict import compare
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.experiments.turns import measure as turns
from ssdlab.experiments.workload import measure as workload
from ssdlab.records import Run
from ssdlab.runner.run import RunObserver, RunRequest, SaveOptions, options_of, perform
from ssdlab.target import NO_CONSENT, parse_target

NOISE = 0.05
TRUE_RATIO = 1.10


def in_turns(targets: list[str], number: int, turn: str, seed: int) -> list[Run]:
    """A run of each target, measured in turns."""
    text = ShortJob("read", "random", "4KiB", 1, turn, "16MiB").to_fio()
    jobs = workload.plan_of(text, "", seed=seed)
    plans = [
        SidePlan(
            f"{place}",
            parse_target(target),
            NO_CONSENT,
            turns.Plan(jobs, number, f"{seed}", place, len(targets)),
        )
        for place, target in enumerate(targets)
    ]
    with tempfile.TemporaryDirectory() as folder:
        return measure_in_turns(plans, SaveOptions(Path(folder)), RunObserver())


def verdict(runs: list[Run]) -> str:
    """The verdict of a comparison of two runs."""
    both = [Side(str(number), (run,)) for number, run in enumerate(runs)]
    return compare(both, settings=True).others[0].verdict


def equal_in_turns(directory: Path, options: argparse.Namespace) -> Counter[str]:
    """Verdicts on the same file against itself."""
    verdicts: Counter[str] = Counter()
    for trial in range(options.trials):
        runs = in_turns([str(directory)] * 2, options.turns, options.turn, trial + 1)
        verdicts[verdict(runs)] += 1
        print(f"\r{trial + 1} trials, load {os.getloadavg()[0]:.1f}: {dict(verdicts)}", end="")
    print()
    return verdicts


def equal_runs(directory: Path, options: argparse.Namespace, each: int) -> Counter[str]:
    """Verdicts on two groups of `each` runs of the same file, one group after the other."""
    verdicts: Counter[str] = Counter()
    for trial in range(options.trials // 2):
        groups = []
        for group in range(2):
            singles = [single(directory, 100 * trial + 10 * group + at) for at in range(each)]
            groups.append((str(group), singles))
        verdicts[compare([make_side(name, runs) for name, runs in groups]).others[0].verdict] += 1
        print(f"\r{trial + 1} trials, load {os.getloadavg()[0]:.1f}: {dict(verdicts)}", end="")
    print()
    return verdicts


def single(directory: Path, seed: int) -> Run:
    """A single run of the workload, for three seconds."""
    text = ShortJob("read", "random", "4KiB", 1, "3s", "16MiB").to_fio()
    plan = workload.plan_of(text, "", seed=seed)
    task = RunRequest(
        EXPERIMENTS["workload"], plan, options_of(parse_target(str(directory)), plan, NO_CONSENT)
    )
    with tempfile.TemporaryDirectory() as folder:
        return perform(task, SaveOptions(Path(folder)), RunObserver())


def noisy(run: Run, factor: float, generator: np.random.Generator) -> Run:
    """The run with noise on each number of each turn, and slower by a factor."""
    rows = []
    for row in run.result.measures:
        rate, half, most = np.exp(generator.normal(0.0, NOISE, 3))
        rows.append(
            {
                **row,
                "iops": row["iops"] / factor * rate,
                "latency_us_p50": row["latency_us_p50"] * factor * half,
                "latency_us_p99": (row["latency_us_p99"] or 1.0) * factor * most,
            }
        )
    return replace(run, result=msgspec.structs.replace(run.result, measures=rows))


def slower_twins(number: int, options: argparse.Namespace, factor: float) -> Counter[str]:
    """Verdicts on twins in turns, the second slower by a factor, with 5 % noise per turn."""
    runs = in_turns(["twin:toshiba-xg5"] * 2, number, "20ms", 1)
    verdicts: Counter[str] = Counter()
    for trial in range(options.trials):
        generator = np.random.default_rng(trial)
        pair = [noisy(runs[0], 1.0, generator), noisy(runs[1], factor, generator)]
        verdicts[verdict(pair)] += 1
    return verdicts


def main() -> None:
    """Runs the cases and prints a line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", nargs="?", type=Path, default=Path())
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--turn", default="50ms")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cases: dict[str, Callable[[], Any]] = {
        "10 %, twins, 8 turns": lambda: slower_twins(8, options, TRUE_RATIO),
        "10 %, twins, 10 turns": lambda: slower_twins(10, options, TRUE_RATIO),
        "10 %, twins, 20 turns": lambda: slower_twins(20, options, TRUE_RATIO),
        "equal, twins, 20 turns": lambda: slower_twins(20, options, 1.0),
        "equal, in turns": lambda: equal_in_turns(options.directory, options),
        "equal, a run each": lambda: equal_runs(options.directory, options, 1),
        "equal, 3 runs each": lambda: equal_runs(options.directory, options, 3),
    }
    for name, case in cases.items():
        if options.only in name:
            print(f"{name}: {dict(case())}")


if __name__ == "__main__":
    main()

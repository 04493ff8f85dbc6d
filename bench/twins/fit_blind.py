"""Does a fit recover random drives from their measurements alone, from unlike start profiles?

    PYTHONPATH=tools python bench/twins/fit_blind.py [--drives 8] [--seed 1] [--start NAME]...

The drives are those of `tools/random_drives.py`, of 512 GB. Each is measured at 1 GiB by seven
experiments, and fitted from each start profile with these results only. A fit is
*recovered* if dies, chunk, spare and tR are within 10 %, or each that is not is reported as not
determined. An interval covers the truth or not. Fragments, a mix of reads and writes, and the rate
with more spare are predicted, not fitted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

import numpy as np
from blind_drives import draw_drive, measure_twin, predictions

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.fit.objective import CAPACITY
from ssdlab.fit.parameters import BITS_PER_CELL_DEFAULT, DIES, PAGE, Estimate
from ssdlab.fit.starts import attempts
from ssdlab.profiles.toml_edit import get_value
from ssdlab.units import parse_duration, parse_size

STARTS: Final = ("samsung-970-evo-plus-500", "intel-s3510-480", "wd-sn850")
TOLERANCE: Final = 0.1
GOALS: Final = ("dies", "chunk", "spare", "tR")
RECOVERED, UNDETERMINED, WRONG = "recovered", "undetermined", "wrong"
_TIMES: Final = ("flash.read", "flash.program", "slc.read", "slc.program")
_OVERHEADS: Final = ("link.read_overhead", "link.write_overhead", "buffer.flush_overhead")
DEFAULTS: Final = {
    "flash.cache_register": True,
    "flash.keeps_page": False,
    "flash.independent_plane_reads": False,
    "slc.bits_per_cell": BITS_PER_CELL_DEFAULT,
}
"""What a profile that does not have them means."""
_SAME_AS: Final = {"link.write_bandwidth": "link.bandwidth"}
_SHARES: Final = ("slc.size", "ftl.map_cache")
_RATES: Final = ("link.bandwidth", "link.write_bandwidth", "flash.channel_bandwidth")


@dataclass
class Score:
    """One fit: for each number, its ratio to the truth and whether it is called determined."""

    drive: int
    start: str
    ratios: dict[str, tuple[float, bool]]
    covered: dict[str, bool]
    errors: dict[str, list[float]]
    mean_error: float
    seconds: float

    def grade(self, name: str) -> str:
        """Whether a number is within the tolerance."""
        ratio, determined = self.ratios[name]
        if abs(ratio - 1) <= TOLERANCE:
            return RECOVERED
        return WRONG if determined else UNDETERMINED

    @property
    def grades(self) -> list[str]:
        """The grades of the numbers that decide whether the drive was recovered."""
        return [self.grade(name) for name in GOALS]

    def __str__(self) -> str:
        cells = [f"{name} {r:.2f}{'' if ok else '*'}" for name, (r, ok) in self.ratios.items()]
        missed = [key for key, covered in self.covered.items() if not covered]
        predicted = [f"{name} {np.mean(each):.0%}" for name, each in self.errors.items()]
        wrong = [name for name in GOALS if self.grade(name) == WRONG]
        return (
            f"{self.drive:2} {self.start:24} {'  '.join(cells)}  error {self.mean_error:.1%}  "
            f"{self.seconds:.0f} s of CPU\n      predictions off by {', '.join(predicted)}"
            + (f"\n      intervals without the truth: {', '.join(missed)}" if missed else "")
            + (f"\n      CONFIDENTLY WRONG: {', '.join(wrong)}" if wrong else "")
        )


def number(profile: str, key: str) -> float | None:
    """A number of a profile: seconds, bytes/s, bytes; a cache as a share of the capacity."""
    value = get_value(profile, key)
    return None if value is None else _number(profile, key, value)


def _number(profile: str, key: str, value: Any) -> float:
    if key in _SHARES:
        return _share(profile, value)
    if key in (*_TIMES, *_OVERHEADS):
        times = value if isinstance(value, list) else [value]
        return float(np.mean([parse_duration(each) for each in times]))
    if key in _RATES:
        return float(parse_size(str(value).removesuffix("/s")))
    if key in {"buffer.size", "ftl.chunk", "flash.page", PAGE}:
        return float(parse_size(str(value)))
    return float(value)


def _share(profile: str, size: Any) -> float:
    return parse_size(str(size)) / float(describe_twin("box", profile)["capacity_bytes"])


def ratios(truth: str, fitted: str, estimates: Sequence[Estimate]) -> dict[str, tuple[float, bool]]:
    """Fitted value / true value, and whether the fit calls the number determined."""
    determined = {each.key: each.determined for each in estimates}
    got, true = (_summary(text) for text in (fitted, truth))
    keys = {"dies": "flash.dies_per_channel", "chunk": "ftl.chunk", "spare": "ftl.spare",
            "tR": "flash.read", "page": PAGE, "tPROG": "flash.program", "link": "link.bandwidth",
            "buffer": "buffer.size", "SLC": "slc.size"}  # fmt: skip
    known = {name: determined.get(key, False) for name, key in keys.items()}
    known["dies"] = determined.get(DIES, known["dies"])
    known["page"] = determined.get("flash.page", known["page"])
    return {name: (_ratio(got[name], true[name]), known[name]) for name in keys}


def _ratio(got: float, true: float) -> float:
    if got == true:
        return 1.0
    return got / true if true else float("inf")


def _summary(text: str) -> dict[str, float]:
    twin = describe_twin("box", text, CAPACITY)
    keys = {"tR": "flash.read", "tPROG": "flash.program", "link": "link.bandwidth"}
    values = {name: number(text, key) or 0.0 for name, key in keys.items()}
    return {
        **values,
        "dies": twin["dies"],
        "chunk": twin["chunk_bytes"],
        "spare": twin["spare"],
        "page": twin["planes"] * twin["page_bytes"],
        "buffer": twin["buffer_bytes"],
        "SLC": twin["slc_bytes"],
    }


def coverage(truth: str, fitted: str, estimates: Sequence[Estimate]) -> dict[str, bool]:
    """For each estimate of a number that the drive has: whether its interval has the truth."""
    covered = {}
    for each in estimates:
        if each.key == "slc.size" and each.high is not None:  # without a bound below
            share = _true_number(truth, each.key) or 0.0
            low = 0.0 if each.low is None else _share(fitted, each.low)
            covered[each.key] = low * 0.9995 <= share <= _share(fitted, each.high) * 1.0005
            continue
        if each.key == "slc.bits_per_cell" and get_value(truth, "slc.size") is None:
            continue
        if each.key in DEFAULTS:
            values = (get_value(truth, each.key), each.low, each.high)
            true, *bounds = (DEFAULTS[each.key] if one is None else one for one in values)
            covered[each.key] = min(bounds) <= true <= max(bounds)
            continue
        if each.low is None or each.high is None:  # absent
            has = get_value(truth, each.key) is not None
            covered[each.key] = has in {end is not None for end in (each.low, each.high)}
            continue
        try:
            true = _true_number(truth, each.key)
            ends = [_number(fitted, each.key, end) for end in (each.low, each.high)]
        except (TypeError, ValueError):
            continue  # a word, or a number that one of the two does not have
        if true is not None:
            covered[each.key] = ends[0] * 0.9995 <= true <= ends[1] * 1.0005
    return covered


def _true_number(truth: str, key: str) -> float | None:
    twin = describe_twin("box", truth, CAPACITY)
    if key in {DIES, PAGE}:
        return float(twin["dies"] if key == DIES else twin["planes"] * twin["page_bytes"])
    if key == "ftl.spare":
        return float(twin["spare"])
    if key == "slc.size" and get_value(truth, key) is not None:  # in whole superblocks
        return float(twin["slc_bytes"]) / CAPACITY
    if key == "flash.dies_per_channel":
        return None  # with the channels, which the drive may have in another number
    if key == "buffer.flush_overhead" and not _flushes(truth):
        return 0.0
    return number(truth, key if get_value(truth, key) is not None else _SAME_AS.get(key, key))


def _flushes(truth: str) -> bool:
    """Whether a flush costs something: one that the drive ignores does not."""
    honours = get_value(truth, "buffer.honours_flush") is not False
    return honours and get_value(truth, "buffer.flush_overhead") is not None


def errors(truth: Mapping[str, Mapping[str, float]], fitted: Any) -> dict[str, list[float]]:
    """Relative errors of the predictions, in groups."""
    return {
        name: [abs(fitted[name][case] / value - 1) for case, value in cases.items() if value]
        for name, cases in truth.items()
    }


def run_drive(seed: int, n: int, start: str) -> Score:
    """Draws and measures drive `n`, and fits it from a start profile."""
    drive = draw_drive(1000 * seed + n)
    truth, measured = drive.profile, measure_twin(drive)
    predicted = predictions(truth, n)
    begin = time.process_time()
    fitted = attempts(start, measured.results, "bench")[0].fitted
    return Score(
        n,
        start,
        ratios(truth, fitted.profile, fitted.parameters),
        coverage(truth, fitted.profile, fitted.parameters),
        errors(predicted, predictions(fitted.profile, n)),
        float(abs(fitted.errors).mean()),
        time.process_time() - begin,
    )


def main() -> None:
    """Prints each fit, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drives", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first drive")
    parser.add_argument("--start", action="append", choices=profiles.names())
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    starts, scores = options.start or STARTS, list[Score]()
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        drives = range(options.first, options.first + options.drives)
        tasks = [(options.seed, n, start) for n in drives for start in starts]
        for future in as_completed([pool.submit(run_drive, *task) for task in tasks]):
            print(future.result(), flush=True)
            scores.append(future.result())
    summarise(scores)


def summarise(scores: Sequence[Score]) -> None:
    """Prints how many were recovered, how often intervals cover, and errors of predictions."""
    fits = len(scores)
    good = sum(WRONG not in score.grades for score in scores)
    within = sum(score.grades == [RECOVERED] * len(GOALS) for score in scores)
    print(f"{good} of {fits} recovered, {within} of them with all four numbers within 10 %")
    for name in scores[0].ratios:
        grades = [score.grade(name) for score in scores]
        counts = ", ".join(f"{grades.count(g)} {g}" for g in (RECOVERED, UNDETERMINED, WRONG))
        print(f"{name:8} {counts}")
    covered = [each for score in scores for each in score.covered.values()]
    print(f"{np.mean(covered):.1%} of {len(covered)} intervals cover the truth")
    groups = defaultdict(list)
    for score in scores:
        for name, each in score.errors.items():
            groups[name] += each
    for name, each in groups.items():
        print(f"{name}: mean error {np.mean(each):.1%}, median {np.median(each):.1%}, "
              f"worst {max(each):.0%}")  # fmt: skip


if __name__ == "__main__":
    main()

"""Counts that may only fall: words that are not plain English, tuple parameters, import cycles.

tools/tidy_baseline.json has the accepted numbers. A higher number is a finding. So is a lower one,
until `python tools/tidy.py --record` writes it to the file. Edit the file to add a phrase or to
raise a number.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import tidy_cycles
import tidy_python
from tidy_finding import Finding

BASELINE = Path("tools/tidy_baseline.json")
RECORD = "python tools/tidy.py --record"

# Where words are counted: in code, comments, messages, names and pages.
WORD_FOLDERS = {"crates", "docs", "python", "tools"}
# What separates words: blanks, `_` in a name, the end of a line within a comment.
BETWEEN_WORDS = re.compile(r"[\s_]+(?:(?:#|//[/!]?)\s+)?")


@dataclass(frozen=True)
class Baseline:
    """The accepted numbers.

    `words` are regular expressions with the number of their occurrences, upper or lower case;
    each of `cycles` lists the modules of one cycle.
    """

    words: dict[str, int]
    tuple_parameters: int
    cycles: list[list[str]]


@dataclass(frozen=True)
class Measured:
    """The present numbers."""

    words: dict[str, int]
    tuple_parameters: list[Finding]
    cycles: list[tidy_cycles.Cycle]


def load(root: Path) -> Baseline:
    """The file below `root`; if it is missing, no phrases are counted and nothing is accepted."""
    if not (root / BASELINE).exists():
        return Baseline({}, 0, [])
    return Baseline(**json.loads((root / BASELINE).read_text(encoding="utf-8")))


def record(root: Path, baseline: Baseline, measured: Measured) -> None:
    """Lower the accepted numbers to the measured ones; higher ones remain findings."""
    lowered = Baseline(
        {word: min(count, measured.words[word]) for word, count in baseline.words.items()},
        min(baseline.tuple_parameters, len(measured.tuple_parameters)),
        [sorted(cycle.modules) for cycle in measured.cycles if is_known(cycle, baseline)],
    )
    text = json.dumps(asdict(lowered), indent=2)
    (root / BASELINE).write_text(f"{text}\n", encoding="utf-8")


def measure(root: Path, texts: dict[Path, str], baseline: Baseline) -> Measured:
    """Count in `texts`, whose keys are relative to `root`."""
    code = {
        file: text
        for file, text in texts.items()
        if file.suffix == ".py" and file.parts[0] != "tests"
    }
    words = [
        BETWEEN_WORDS.sub(" ", text.lower())
        for file, text in texts.items()
        if file.parts[0] in WORD_FOLDERS and file != BASELINE
    ]
    return Measured(
        {phrase: occurrences(phrase, words) for phrase in baseline.words},
        [finding for file in code for finding in tidy_python.tuple_parameters(file, code[file])],
        tidy_cycles.cycles(root, list(texts)),
    )


def occurrences(phrase: str, texts: list[str]) -> int:
    """The number of occurrences as whole words, also within names such as `is_told`."""
    pattern = re.compile(rf"(?<![a-z])(?:{phrase})(?![a-z])")
    return sum(len(pattern.findall(text)) for text in texts)


def findings(baseline: Baseline, measured: Measured) -> Iterator[Finding]:
    """Numbers above the accepted ones, and numbers below, which should be recorded."""
    for phrase, count in measured.words.items():
        accepted = baseline.words[phrase]
        if count > accepted:
            what = f'"{phrase}" occurs {count} times, {accepted} at most: write the usual word'
            yield Finding(BASELINE, 1, "words", what)
        elif count < accepted:
            yield lower(f'"{phrase}" occurs {count} times, no longer {accepted}')
    tuples = measured.tuple_parameters
    if len(tuples) > baseline.tuple_parameters:
        yield from tuples
    elif len(tuples) < baseline.tuple_parameters:
        yield lower(f"{len(tuples)} tuple parameters, no longer {baseline.tuple_parameters}")
    yield from cycle_findings(baseline, measured)


def cycle_findings(baseline: Baseline, measured: Measured) -> Iterator[Finding]:
    """New cycles, and accepted cycles that are gone or have become smaller."""
    for cycle in measured.cycles:
        if not is_known(cycle, baseline):
            yield Finding(*cycle.place, "import-cycle", " -> ".join(cycle.shortest))
    present = [sorted(cycle.modules) for cycle in measured.cycles]
    for modules in baseline.cycles:
        if sorted(modules) not in present:
            yield lower(f"this import cycle is gone or smaller: {', '.join(modules)}")


def is_known(cycle: tidy_cycles.Cycle, baseline: Baseline) -> bool:
    """Whether it is one of the accepted cycles or a part of one."""
    return any(cycle.modules <= set(known) for known in baseline.cycles)


def lower(what: str) -> Finding:
    """The accepted number can be lowered."""
    return Finding(BASELINE, 1, "baseline", f"{what}: run `{RECORD}`")

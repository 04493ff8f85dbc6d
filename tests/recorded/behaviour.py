"""What ssdlab does today, recorded: help, JSON, run folders, exit statuses and error lines.

`test_recorded.py` compares what is observed here with three files beside it:

    structure.json  what scripts rest on: options, JSON keys, findings, columns, exit statuses
    numbers.json    the numbers of each experiment on a twin; the same seed gives the same numbers
    wording.json    what people read: help texts, verdicts, reasons, error lines

After a change that is meant, record again, and read the difference before you commit it:

    PYTHONPATH=tests/fixtures python tests/recorded/behaviour.py wording
    PYTHONPATH=tests/fixtures python tests/recorded/behaviour.py structure numbers

`old-runs.tar.gz` holds run folders of version 0.1.0. It is never recorded again: it proves that
later versions read them. Their Parquet files were recompressed and the host's names replaced.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import typer
from forked import run_ssdlab

HERE: Final = Path(__file__).parent
FILES: Final = ("structure", "numbers", "wording")
TWIN: Final = ("twin:toshiba-xg5", "--capacity", "2GiB")
STUDY: Final = ("twin:placement-study", "--capacity", "3GiB")
RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "aging": ("run", "aging", *TWIN, "--quick", "--size", "64MiB"),
    "cache": ("run", "cache", *TWIN, "--quick", "--size", "256MiB"),
    "fragments": ("run", "fragments", *TWIN, "--quick", "--size", "528MiB", "--distance", "2MiB"),
    "fsync": ("run", "fsync", *TWIN, "--quick", "--size", "64MiB"),
    "placement": (
        *("run", "placement", *STUDY, "--quick", "--placements", "striped,hinted"),
        *("--spare", "", "--no-plots"),
    ),
    "replay": ("replay", "trace.csv", *TWIN),
    "split": ("run", "split", *TWIN, "--quick", "--size", "64MiB"),
    "steady": ("run", "steady", *TWIN, "--quick", "--region", "256MiB", "--drive-writes", "1"),
    "stripe": ("run", "stripe", *TWIN, "--quick", "--size", "64MiB"),
    "suite": ("run", "suite", *TWIN, "--quick", "--size", "64MiB"),
    "trim": ("run", "trim", *TWIN, "--quick"),
    "workload": ("run", "--fio", "job.fio", *TWIN),
}
"""The command lines of the recorded runs."""
INPUTS: Final = {
    "trace.csv": (
        "128166372003061629,hm,0,Read,0,4096,100\n"
        "128166372016382155,hm,0,Write,8192,8192,50\n"
        "128166372026382245,hm,0,Read,8192,4096,70\n"
    ),
    "job.fio": (
        "[global]\nioengine=io_uring\ndirect=1\n"
        "[first]\nrw=randwrite\nbs=4k\nsize=8m\niodepth=8\n"
        "[second]\nstonewall\nrw=read\nbs=64k\nsize=8m\n"
    ),
    "bad.fio": "[a]\nioengine=io_uring\ndirect=1\nrw=randread\ncolour=red\n",
    "bad.toml": '[drive]\nmodel = "M 1"\ncapacity = "a lot"\n',
}
"""Files that the command lines name."""
MISTAKES: Final = (
    "doktor",
    "--colour",
    "run",
    "run ageing twin:toshiba-xg5",
    "run aging",
    "run aging twin:toshiba-xg6",
    "run aging twin:",
    "run aging twin:bad.toml",
    "run aging twin:none.toml",
    "run aging none",
    "run aging job.fio",
    "run aging . --capacity 1GiB",
    "run aging twin:toshiba-xg5 --size 12",
    "run aging twin:toshiba-xg5 --size 1TiB",
    "run aging twin:toshiba-xg5 --rest 10",
    "run aging twin:toshiba-xg5 --seed -1",
    "run aging twin:toshiba-xg5 --colour red",
    "run fragments twin:toshiba-xg5 --gaps small",
    "run fsync twin:toshiba-xg5 --data-sheet maybe",
    "run placement .",
    "run placement twin:placement-study --placements random",
    "run steady twin:toshiba-xg5 --spare 7",
    "run steady twin:toshiba-xg5 --pattern spiral",
    "run workload twin:toshiba-xg5",
    "run --fio bad.fio twin:toshiba-xg5",
    "run resume none",
    "replay none.csv",
    "replay trace.csv twin:toshiba-xg5 --capacity 2GiB --depth 0",
    "report none",
    "report .",
    "runs none",
    "compare one",
    "compare one two --depth 4",
    "twin show toshiba-xg6",
    "twin check bad.toml",
    "twin new mine.toml --from none",
    "provision",
    "provision .",
    "trim none",
    "heal none",
    "doctor none",
    "sweep none.toml",
    "serve toshiba-xg5",
    "serve toshiba-xg5 --tcp 0.0.0.0:1",
    "control none.sock counters",
    "witness verify none",
)
"""Command lines that are refused; all run in a folder that holds `INPUTS` alone."""
_VARYING: Final = {"ssdlab", "duration_s", "folder"}
_DIGITS: Final = 6


def program(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`ssdlab WORDS`, as a script runs it."""
    return run_ssdlab(words, cwd=cwd, env={**os.environ, "COLUMNS": "100", "TERM": "dumb"})


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder that holds the input files."""
    with tempfile.TemporaryDirectory() as name:
        for file, text in INPUTS.items():
            Path(name, file).write_text(text, encoding="utf-8")
        yield Path(name)


@cache
def observed() -> dict[str, Any]:
    """All that is recorded, by the file that holds it."""
    found: dict[str, dict[str, Any]] = {name: {} for name in FILES}
    found["structure"]["commands"] = {words: _parameters(each) for words, each in commands()}
    found["wording"]["help"] = _helps()
    with workplace() as place:
        _observe_mistakes(found, place)
        for name, words in RUNS.items():
            more = ("--seed", "7", "--json", "--quiet", "--out", name)
            _observe_run(found, name, program(*words, *more, cwd=place), place / name)
    return found


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and group with the words that lead to it."""
    from ssdlab.cli.app import app

    yield from _below("", typer.main.get_command(app))


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _below(f"{words} {name}".strip(), each)


def _parameters(command: Any) -> dict[str, Any]:
    """Options and arguments: how each is spelled, and what it takes."""
    return {each.name: _parameter(each) for each in command.params}


def _parameter(each: Any) -> dict[str, Any]:
    default = each.default
    return {
        "kind": each.param_type_name,
        "spelled": [*each.opts, *each.secondary_opts],
        "required": each.required,
        "flag": bool(getattr(each, "is_flag", False)),
        "repeatable": bool(getattr(each, "multiple", False)) or each.nargs != 1,
        "default": str(default) if default is not None and not callable(default) else None,
    }


@cache
def _helps() -> dict[str, list[str]]:
    """All help texts; from a process of its own, whose terminal is 100 columns wide."""
    surroundings = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    surroundings["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, __file__, "print-help"]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    helps: dict[str, list[str]] = json.loads(done.stdout)
    return helps


def _print_help() -> None:
    from ssdlab.cli.app import app

    found = {}
    for words, _ in commands():
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            app([*words.split(), "--help"], prog_name="ssdlab", standalone_mode=False)
        found[words] = [line.rstrip() for line in text.getvalue().splitlines()]
    sys.stdout.write(json.dumps(found))


def _observe_mistakes(found: dict[str, dict[str, Any]], place: Path) -> None:
    statuses = found["structure"]["mistakes"] = {}
    lines = found["wording"]["mistakes"] = {}
    for line in MISTAKES:
        done = program(*line.split(), cwd=place)
        lines[line] = done.stderr.replace(str(place), "PLACE").splitlines()
        statuses[line] = {
            "status": done.returncode,
            "lines on stderr": len(lines[line]),
            "on stdout": bool(done.stdout),
        }
    left = {path.name for path in place.iterdir()} - INPUTS.keys()
    found["structure"]["left by mistakes"] = sorted(left)


def _observe_run(found: dict[str, dict[str, Any]], name: str, done: Any, out: Path) -> None:
    assert done.returncode == 0, f"{name}: {done.stderr}"
    printed = json.loads(done.stdout)
    (folder,) = out.iterdir()
    found["structure"].setdefault("runs", {})[name] = {
        "status": done.returncode,
        "json": shape(printed),
        "units": {key: each["unit"] for key, each in printed["findings"].items()},
        "warnings": sorted(each["code"] for each in printed["warnings"]),
        "folder": folder_structure(folder),
    }
    found["numbers"][name] = {
        "findings": {
            key: [_rounded(each[part]) for part in ("value", "low", "high")]
            for key, each in printed["findings"].items()
        },
        "measures": _columns(printed["measures"]),
        "parameters": _rounded(printed["parameters"]),
        "same": {key: printed[key] for key in ("experiment", "target", "virtual", "seed")},
    }
    found["wording"].setdefault("runs", {})[name] = {
        "verdict": printed["verdict"],
        "why": {key: each["why"] for key, each in printed["findings"].items()},
        "warnings": [each["sentence"] for each in printed["warnings"]],
    }


def folder_structure(folder: Path) -> dict[str, Any]:
    """What a run folder is made of: files, keys of the manifest, columns of each table."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tables = sorted(folder.glob("*.parquet"))
    return {
        "files": sorted(path.name for path in folder.iterdir()),
        "manifest": shape(manifest),
        "tables": {
            path.stem: {field.name: str(field.type) for field in pq.read_schema(path)}
            for path in tables
        },
    }


def shape(value: Any) -> Any:
    """Keys and kinds of a JSON value; the rows of a list are taken together."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        rows = [shape(each) for each in value]
        if rows and all(isinstance(row, dict) for row in rows):
            keys = dict.fromkeys(key for row in rows for key in row)
            return [{key: _kinds(row[key] for row in rows if key in row) for key in keys}]
        return [_kinds(rows)]
    kinds = {bool: "bool", str: "string", type(None): "null"}
    return kinds.get(type(value), "number")


def _kinds(found: Any) -> Any:
    different = {json.dumps(each): each for each in found}
    return next(iter(different.values())) if len(different) == 1 else sorted(different)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [_rounded(row.get(key)) for row in rows] for key in keys}


def _rounded(value: Any) -> Any:
    """The same with six digits: another processor may differ in the last ones."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def recorded(name: str) -> Any:
    """What one of the files holds."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def record(names: list[str]) -> None:
    """Writes the files anew that are named."""
    for name in names:
        text = json.dumps(observed()[name], indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["print-help"]:
        _print_help()
    elif sys.argv[1:] and set(sys.argv[1:]) <= set(FILES):
        record(sys.argv[1:])
    else:
        sys.exit(f"give what is to be recorded again: {', '.join(FILES)}")

"""`ssdlab twin what-if`: the same experiment on a twin as it is and with some of it changed."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from ssdlab import profiles
from ssdlab.analysis.contrast import Contrast, of_findings, of_measures
from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.cli.run.group import app as experiments
from ssdlab.cli.run_experiment import gathered
from ssdlab.cli.twin.profiles import AsJson, Capacity
from ssdlab.errors import UsageError
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.fit.change import Change, changed
from ssdlab.records import Run, encode_json, make_folder, run_name, utc_now
from ssdlab.report import WhatIf, render_group, write_html
from ssdlab.target import RESULTS, Twin, parse_profile

app = typer.Typer(add_completion=False)

OWN: Final = ("--json", "--out", "--capacity", "--seed", "--quick", "--quiet")
"""Options that stand behind `what-if` itself and not within --run."""


@app.command(
    name="what-if",
    epilog="Example: ssdlab twin what-if toshiba-xg5 --change ftl.spare=0.27 --run steady "
    "--capacity 4GiB",
)
def what_if(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="A name, or FILE.toml.")],
    *,
    change: Annotated[
        list[str],
        typer.Option(metavar="KEY=VALUE", help="A number to change, such as ftl.spare=0.27."),
    ],
    run: Annotated[
        str,
        typer.Option(metavar="EXPERIMENT", help="What to run: steady, or 'steady --depth 4'."),
    ],
    capacity: Capacity = None,
    quick: options.Quick = False,
    html: Annotated[Path | None, typer.Option(help="Write ONE HTML file about it.")] = None,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Ask a twin what a change would do: two runs and a comparison.

    Runs an experiment on the twin as it is and with all changes made, under the same seed, and
    shows findings and measures side by side, with ratios and 95 % intervals where both runs have
    some. Changes are checked as a profile is. The changed profile is kept beside the runs.
    """
    name = parse_profile(profile)
    text, changes = changed(name, profiles.load(name), change)
    words = _words(run)
    folder = make_folder(out, run_name("what-if", name.removesuffix(".toml"), utc_now()))
    file = folder / f"{Path(name).stem}-changed.toml"
    file.write_text(text, encoding="utf-8")
    own: list[str] = ["--out", str(folder), "--seed", str(seed)]
    own += [] if capacity is None else ["--capacity", capacity]
    own += [word for word, wanted in (("--quick", quick), ("--quiet", quiet)) if wanted]
    with _kept_if_used(file), gathered() as runs:
        status = experiments(
            [*words, *own, str(Twin(name)), str(Twin(str(file)))], standalone_mode=False
        )
    if len(runs) < 2:
        return int(status or 0)
    asked = _asked(changes, runs)
    if html is not None:
        write_html(list(asked.runs), html, asked)
    if json:
        write_out(encode_json(as_json(asked, changes, file)))
    else:
        _tell(asked, file, html)
    return int(status or 0)


@contextlib.contextmanager
def _kept_if_used(file: Path) -> Iterator[None]:
    """Takes the file and its folder away again where no run came to stand beside it."""
    try:
        yield
    finally:
        if len(list(file.parent.iterdir())) == 1:
            file.unlink()
            file.parent.rmdir()


def _words(run: str) -> list[str]:
    """The experiment and its own options.

    Raises:
        UsageError: no experiment, or an option that is not its own.
    """
    try:
        words = shlex.split(run)
    except ValueError as error:
        raise UsageError(f"--run is {run!r}: {error}; quote it as a shell would") from error
    if not words or words[0] not in EXPERIMENTS:
        raise UsageError(f"--run is {run!r}; it may be one of {', '.join(EXPERIMENTS)}")
    taken = next((word for word in words if word.partition("=")[0] in OWN), None)
    if taken is not None:
        raise UsageError(f"--run has {taken}; give it to what-if itself, outside of --run")
    return words


def _asked(changes: list[Change], runs: list[Run]) -> WhatIf:
    first, second = (run.result for run in runs[:2])
    contrasts = of_findings(first.findings, second.findings)
    contrasts += of_measures(first.experiment, first.measures, second.measures)
    return WhatIf([_said(each) for each in changes], (runs[0], runs[1]), contrasts)


def _said(change: Change) -> str:
    was, becomes = (_value(each) for each in (change.was, change.becomes))
    return f"{change.key} were {becomes} instead of {was}"


def _value(value: Any) -> str:
    if value is None:
        return "not given"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _tell(asked: WhatIf, file: Path, html: Path | None) -> None:
    console = Console()
    render_group(asked, console)
    console.print(f" {file}: the changed profile", markup=False, highlight=False, soft_wrap=True)
    if html is not None:
        console.print(f" {html.resolve()}", markup=False, highlight=False, soft_wrap=True)


def as_json(asked: WhatIf, changes: list[Change], file: Path) -> dict[str, Any]:
    """One object: the question, what differs, and both results."""
    first, second = (run.result for run in asked.runs)
    return {
        "ssdlab": first.ssdlab,
        "experiment": first.experiment,
        "changes": [asdict(change) for change in changes],
        "changed_profile": str(file),
        "contrasts": [_row(each) for each in asked.contrasts],
        "runs": [first, second],
    }


def _row(contrast: Contrast) -> dict[str, Any]:
    row = asdict(contrast)
    row["as_is"], row["changed"] = row.pop("first"), row.pop("second")
    return row

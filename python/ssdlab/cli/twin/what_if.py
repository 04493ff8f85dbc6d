"""`ssdlab twin what-if`: the same experiment on a twin with and without a change."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ssdlab import profiles
from ssdlab.cli import exports, options
from ssdlab.cli.lazy import LazyGroup
from ssdlab.cli.run import app as experiments
from ssdlab.errors import UsageError
from ssdlab.target import RESULTS, Twin, parse_profile

if TYPE_CHECKING:
    from ssdlab.fit.change import Change
    from ssdlab.records import Run
    from ssdlab.report import WhatIf

app = typer.Typer(add_completion=False)

OWN_OPTIONS: Final = ("--json", "--out", "--capacity", "--seed", "--quick", "--quiet")
"""Options of `what-if` itself, which --run must not contain."""


@app.command(
    name="what-if",
    epilog="Example: ssdlab twin what-if toshiba-xg5 --change ftl.spare=0.27 --run steady "
    "--capacity 4GiB",
)
def what_if(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="A name, or FILE.toml.",
            autocompletion=options.complete_twin,
        ),
    ],
    *,
    change: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="A number to change, such as ftl.spare=0.27.",
            autocompletion=options.complete_change,
        ),
    ],
    run: Annotated[
        str,
        typer.Option(metavar="EXPERIMENT", help="What to run: steady, or 'steady --depth 4'."),
    ],
    capacity: options.Capacity = None,
    quick: options.Quick = False,
    html: exports.Html = None,
    markdown: exports.Markdown = None,
    csv: exports.Csv = None,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Predict the effect of a change to a twin: two runs and a comparison.

    Runs an experiment on the unchanged twin and on the twin with all changes, with the same seed.
    Shows findings and measures side by side, with ratios, and 95 % intervals where both runs have
    them. The changed profile is stored with the runs.
    """
    files = exports.Exports(html, markdown, csv)
    files.check(json=json)
    name = parse_profile(profile)
    command = _parse_run(run)
    original = profiles.load(name)
    from ssdlab.cli.run_experiment import collect_runs
    from ssdlab.fit.change import apply_changes
    from ssdlab.records import make_folder, run_name, utc_now

    text, changes = apply_changes(name, original, change)
    folder = make_folder(out, run_name("what-if", name.removesuffix(".toml"), utc_now()))
    file = folder / f"{Path(name).stem}-changed.toml"
    file.write_text(text, encoding="utf-8")
    own: list[str] = ["--out", str(folder), "--seed", str(seed)]
    own += [] if capacity is None else ["--capacity", capacity]
    own += [option for option, is_set in (("--quick", quick), ("--quiet", quiet)) if is_set]
    with _removed_unless_run(file), collect_runs() as runs:
        status = experiments(
            [*command, *own, str(Twin(name)), str(Twin(str(file)))], standalone_mode=False
        )
    if len(runs) < 2:
        return int(status or 0)
    comparison = _compare(changes, runs)
    document = as_json(comparison, changes, file)
    rows, places = document["contrasts"], [f"{file}: the changed profile"]
    files.show(comparison, comparison.runs, rows, document if json else None, places)
    return int(status or 0)


@contextlib.contextmanager
def _removed_unless_run(file: Path) -> Iterator[None]:
    """Removes the changed profile and its folder if no run was stored in that folder."""
    try:
        yield
    finally:
        if len(list(file.parent.iterdir())) == 1:
            file.unlink()
            file.parent.rmdir()


def _parse_run(run: str) -> list[str]:
    """The experiment and its own options.

    Raises:
        UsageError: an unknown experiment, or an option of what-if.
    """
    try:
        words = shlex.split(run)
    except ValueError as error:
        raise UsageError(f"--run is {run!r}: {error}; quote it as a shell would") from error
    group = typer.main.get_command(experiments)
    assert isinstance(group, LazyGroup)
    known = [name for name in group.members if name != "resume"]
    if not words or words[0] not in known:
        raise UsageError(f"--run is {run!r}; it must start with one of {', '.join(known)}")
    own = next((word for word in words if word.partition("=")[0] in OWN_OPTIONS), None)
    if own is not None:
        raise UsageError(f"--run has {own}; give it to what-if itself, outside of --run")
    return words


def _compare(changes: list[Change], runs: list[Run]) -> WhatIf:
    from ssdlab.analysis.contrast import compare_findings, compare_measures
    from ssdlab.experiments.registry import EXPERIMENTS
    from ssdlab.report import WhatIf

    first, second = (run.result for run in runs[:2])
    contrasts = compare_findings(first.findings, second.findings)
    contrasts += compare_measures(
        EXPERIMENTS[first.experiment].columns, first.measures, second.measures
    )
    sentences = [
        f"{change.key} were {_format(change.becomes)} instead of {_format(change.was)}"
        for change in changes
    ]
    return WhatIf(sentences, (runs[0], runs[1]), contrasts)


def _format(value: Any) -> str:
    if value is None:
        return "not given"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def as_json(comparison: WhatIf, changes: list[Change], file: Path) -> dict[str, Any]:
    """The changes, the contrasts and both results as one JSON object."""
    first, second = (run.result for run in comparison.runs)
    contrasts = []
    for contrast in comparison.contrasts:
        row = asdict(contrast)
        row["as_is"], row["changed"] = row.pop("first"), row.pop("second")
        contrasts.append(row)
    return {
        "ssdlab": first.ssdlab,
        "experiment": first.experiment,
        "changes": [asdict(change) for change in changes],
        "changed_profile": str(file),
        "contrasts": contrasts,
        "runs": [first, second],
    }

"""A manifest stores the options of a run, and the command built from them repeats the run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab.cli.app import app
from ssdlab.experiments import (
    Aging,
    Cache,
    Fragments,
    Fsync,
    Placement,
    Replay,
    Split,
    Steady,
    Stripe,
    Suite,
    Trim,
    Workload,
)
from ssdlab.runner.parameters import Parameters
from ssdlab.view import repeat_command

TRACE = "128166372003061629,hm,1,Read,0,4096,100\n"
PARAMETERS: Sequence[Parameters] = (
    Aging(),
    Aging(size="64MiB", quick=True, rest="5min"),
    Aging(size=64 << 20, rest=90.5),
    Cache(size="256MiB", quick=True),
    Fragments(size="528MiB", distance=2 << 20, gaps=("worst",), order="file", host=False),
    Fragments(quick=True),
    Fsync(data_sheet="volatile", size="64MiB"),
    Placement(placements=("striped", "hinted"), spare=(0.07,), drive_writes=1.5, plots=False),
    Placement(spare=(), host_us=12.5),
    Replay(trace="a trace.csv", format="msr", volume=1, speed=2.5, depth=4, fills=False),
    Replay(trace="a trace.csv", together=True, any_order=True, size="1MiB"),
    Split(size="64MiB"),
    Steady(region="1GiB", drive_writes=2.0, spare=(0.07, 0.155), pattern="zipf:1.1", depth=4),
    Steady(block_size="8KiB", quick=True),
    Stripe(size="64MiB"),
    Suite(quick=True),
    Trim(size="8MiB"),
    Workload(fio="job file.fio"),
)


class _Manifest:
    target, seed = "twin:toshiba-xg5", 7

    def __init__(self, parameters: Parameters) -> None:
        self.experiment, self.options = parameters.experiment(), parameters.options()
        self.wish = {"capacity_bytes": 1 << 31}


class _Run:
    def __init__(self, parameters: Parameters) -> None:
        self.manifest: Any = _Manifest(parameters)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=repr)
def test_the_stored_options_give_the_same_parameters(
    parameters: Parameters, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        "ssdlab.cli.run_experiment.run_on_targets", lambda *arguments: calls.append(arguments)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a trace.csv").write_text(TRACE)
    words = shlex.split(repeat_command(_Run(parameters)))  # type: ignore[arg-type]
    app(words[1:], standalone_mode=False)
    [(parsed, [target], _consent, _output, seed)] = calls
    assert parsed.options() == parameters.options()
    assert type(parsed) is type(parameters)
    assert (str(target), target.capacity_bytes, seed) == ("twin:toshiba-xg5", 1 << 31, 7)


def test_the_command_of_a_run_without_stored_options_says_so(
    tmp_path: Path,
) -> None:
    twin = ssdlab.open_target("twin:toshiba-xg5", capacity="2GiB")
    run = twin.run(ssdlab.Split(size="64MiB", quick=True), out=tmp_path, seed=3).record
    assert run.manifest.options == {"--size": "64MiB", "--quick": True}
    assert repeat_command(run) == (
        "ssdlab run split twin:toshiba-xg5 --size 64MiB --quick --capacity 2GiB --seed 3"
    )
    path = run.folder / "manifest.json"
    path.write_text(path.read_text().replace('"options": {', '"no_options": {'))
    old = ssdlab.open_run(run.folder).record
    assert repeat_command(old).endswith("--seed 3  # other options were not recorded")

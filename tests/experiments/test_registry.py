"""A new experiment needs a package and a line in the registry, nothing else."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab.cli.app import app
from ssdlab.experiments.registry import EXPERIMENTS, register
from ssdlab.records import read_run
from ssdlab.runner.progress import Report
from ssdlab.view import repeat_command

PARAMETERS = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Toy(Parameters):
    """How fast is the first MiB of a drive?

    Writes a region and reads it.
    """

    example: ClassVar = "toy twin:toshiba-xg5"

    size: Annotated[
        Size | None,
        Parameter("Bytes to read.", least=MIB, step=MIB, label="Extent of the toy", key="size_mib"),
    ] = None
    rounds: Annotated[int, Parameter("Read it this many times.")] = 2
    quick: Quick = False
'''
MEASURE = """
from dataclasses import dataclass

from ssdlab.device import Job
from ssdlab.runner.parameters import MIB
from ssdlab.runner.session import Step


@dataclass(frozen=True)
class Plan:
    size: int
    rounds: int
    seed: int = 0
    request_bytes_max = MIB

    @property
    def write_bytes(self):
        return self.size

    def parameters(self):
        return {"size_mib": self.size / MIB, "rounds": self.rounds}

    def work(self):
        return {"fill": float(self.size), "read": float(self.rounds * self.size)}


def plan(parameters, target, seed):
    return Plan(parameters.size_bytes(4 * MIB), parameters.rounds, seed)


def measure(session, plan):
    session.fill(plan.size)
    for number in range(plan.rounds):
        job = Job("read", length_bytes=plan.size, block_bytes=MIB, amount_bytes=plan.size)
        session.run(Step("read", f"reading, round {number}", "read", repeat=number), job)
"""
ANALYSIS = """
from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import Conclusion, seconds_of
from ssdlab.records import Finding

COLUMNS = Columns(("round",), ("read_s",), {})


def conclude(evidence):
    rows = [{"round": row["repeat"], "read_s": seconds_of(row)} for row in evidence.steps("read")]
    if not rows:
        return Conclusion([])
    best = min(row["read_s"] for row in rows)
    return Conclusion(rows, {"best_s": Finding(best, "s", None, None, "toy")}, "A toy verdict.")
"""
REPORT = """
from dataclasses import replace

from ssdlab.experiments import generic_report

VIEW = replace(generic_report.VIEW, title="A toy title")
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Any]]:
    """Parameters of an experiment in a package outside `ssdlab`, registered for the test."""
    package = tmp_path / "elsewhere/toy_drive"
    package.mkdir(parents=True)
    modules = {"parameters": PARAMETERS, "measure": MEASURE, "analysis": ANALYSIS}
    for name, text in {"__init__": "", **modules, "report": REPORT}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.chdir(tmp_path)
    from toy_drive.parameters import Toy  # type: ignore[import-not-found]  # created above

    experiment = register(Toy)
    yield Toy
    del EXPERIMENTS[experiment.name]
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy_drive"]:
        del sys.modules[name]


def _call(*words: str) -> int:
    return int(app([*words], standalone_mode=False) or 0)


def test_a_registered_experiment_has_a_command_with_its_options(
    toy: type[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call("run", "--help") == 0
    assert (toy.__doc__ or "").partition("\n")[0] in " ".join(capsys.readouterr().out.split())
    assert _call("run", "toy", "--help") == 0
    shown = capsys.readouterr().out
    words = ("--size", "--rounds", "--seed", "--destroy-data", "Read it this many times.")
    assert [word for word in words if word not in shown] == []
    with pytest.raises(ssdlab.UsageError, match="--size is 12B; it must be a multiple of 1 MiB"):
        _call("run", "toy", "twin:toshiba-xg5", "--size", "12B")


@pytest.mark.usefixtures("toy")
def test_a_run_gives_json_a_folder_a_report_and_the_command_to_repeat_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--size", "2MiB", "--rounds", "3", "--seed", "7")
    assert _call("run", "toy", "twin:toshiba-xg5", *options, "--json", "--quiet") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["experiment"], result["verdict"]) == ("toy", "A toy verdict.")
    assert [row["round"] for row in result["measures"]] == [0, 1, 2]
    run = read_run(Path(result["folder"]))
    assert run.manifest.options == {"--size": "2MiB", "--rounds": "3"}
    assert shlex.split(repeat_command(run))[1:] == ["run", "toy", "twin:toshiba-xg5", *options]
    assert _call("report", result["folder"], "--html", "page.html") == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "A toy title" in page
    assert "Extent of the toy" in page
    capsys.readouterr()
    assert _call("run", "toy", "twin:toshiba-xg5", *options, "--json", "--quiet") == 0
    other = json.loads(capsys.readouterr().out)["folder"]
    assert _call("compare", result["folder"], other, "--json") == 0
    compared = json.loads(capsys.readouterr().out)
    assert "read_s" in json.dumps(compared)


def test_it_can_be_run_and_resumed_from_python(
    toy: type[Any], ctrl_c_at: Callable[[str], Callable[[Report], None]]
) -> None:
    twin = ssdlab.open_target("twin:toshiba-xg5")
    with pytest.raises(ssdlab.Interrupted):
        twin.run(toy(size="2MiB"), seed=3, listener=ctrl_c_at("reading, round 1"))
    [folder] = Path("ssdlab-runs").iterdir()
    resumed = ssdlab.resume(folder)
    assert (resumed.outcome, resumed.verdict) == ("complete", "A toy verdict.")
    assert resumed.findings == twin.run(toy(size="2MiB"), seed=3).findings

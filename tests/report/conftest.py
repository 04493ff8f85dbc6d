"""Small runs of ageing, written and read back as `ssdlab run` would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ssdlab.records import (
    Finding,
    Manifest,
    Recording,
    Result,
    Run,
    StepRow,
    read_run,
    write_run,
)
from ssdlab.report import write_html
from ssdlab.warning import MeasurementWarning

MakeRun = Callable[..., Run]

TWIN = {
    "kind": "twin",
    "name": "toshiba-xg5",
    "model": "Toshiba XG5 KXG50ZNV512G",
    "interface": "nvme",
    "capacity_bytes": 512_000_000_000,
    "flash_bytes": 550_024_249_344,
    "spare": 0.069,
    "dies": 16,
    "page_bytes": 16384,
    "power_loss_protection": False,
}
DIRECTORY = {
    "kind": "directory",
    "path": "/mnt/data",
    "fs_type": "ext4",
    "options": "rw,relatime",
    "drives": [
        {"name": "nvme0n1", "model": "Intel P4500", "transport": "nvme", "size_bytes": 10**12}
    ],
}
PARAMETERS: dict[str, Any] = {
    "size_mib": 4096.0,
    "amounts_mib": [50.0, 200.0],
    "rests_s": [10.0, 20.0, 30.0],
    "long_rest_s": 0.0,
    "read_block_kib": 1024,
    "write_block_kib": 4,
}
MEASURES: list[dict[str, Any]] = [
    {"written_mib": 0.0, "read_s": 1.9, "read_s_all": [1.9, 1.91, 1.9]},
    {"written_mib": 50.0, "read_s": 2.9, "read_s_all": [2.9, 3.05, 2.95]},
    {"written_mib": 250.0, "read_s": 6.8, "read_s_all": [6.8, 6.8, 6.85]},
]
FINDINGS = {
    "slowdown": Finding(3.58, "x", 3.4, 3.7, "best of 3 reads fresh 1.9 s, after 250 MiB 6.8 s"),
    "recovers": Finding(False, "", None, None, "6.8 s after the first rest, 6.85 s after the last"),
}
VERDICT = "Random writing makes reads 3.58 times slower; rest does not heal it."


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """`make_run(name, **changes)` -> a run of a twin whose manifest or result is changed so."""

    def make(name: str = "twin-run", **changes: Any) -> Run:
        manifest = Manifest(
            run=name,
            ssdlab="0.1.0",
            experiment="aging",
            target="twin:toshiba-xg5",
            virtual=True,
            seed=7,
            started="2026-11-21T10:15:00+00:00",
            parameters=PARAMETERS,
            versions={"python": "3.11.2", "kernel": "6.1.0-18"},
            host={"name": "lab", "cores": 2, "memory_bytes": 8 << 30},
            device=TWIN,
            profile=None,
        )
        result = Result(
            ssdlab="0.1.0",
            experiment="aging",
            target="twin:toshiba-xg5",
            virtual=True,
            seed=7,
            duration_s=363.2,
            parameters=PARAMETERS,
            measures=MEASURES,
            findings=FINDINGS,
            verdict=VERDICT,
            warnings=[],
            folder=name,
        )
        recording = changes.pop("recording", None) or steps_after_rests(usual_steps())
        folder = tmp_path_factory.mktemp("runs") / name
        folder.mkdir()
        write_run(folder, changed(manifest, changes), recording, changed(result, changes))
        return read_run(folder)

    return make


@pytest.fixture(scope="session")
def two_runs(make_run: MakeRun) -> list[Run]:
    """A twin, and a directory with warnings that was interrupted."""
    disk = make_run(
        "disk-run",
        target="/mnt/data",
        virtual=False,
        device=DIRECTORY,
        measures=[
            {"written_mib": 0.0, "read_s": 18.7, "read_s_all": [18.7, 27.6, 22.3]},
            {"written_mib": 50.0, "read_s": 18.9, "read_s_all": [19.4]},
        ],
        findings={},
        verdict="Interrupted before the file was aged: nothing to tell.",
        outcome="interrupted",
        warnings=[
            MeasurementWarning(
                "noisy", "The reads differ by 48 %: run it again while the drive is idle."
            ),
            MeasurementWarning("shared", "Another program wrote to the drive & slowed it."),
        ],
    )
    return [make_run(), disk]


@pytest.fixture(scope="session")
def page(two_runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page about the two runs: figures take time, so it is made once."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(two_runs, path)
    return path.read_text(encoding="utf-8")


def changed(record: Any, changes: dict[str, Any]) -> Any:
    """The record with those of the changes that it has a field for."""
    fields = {name: value for name, value in changes.items() if name in record.__struct_fields__}
    return msgspec.structs.replace(record, **fields)


Step = tuple[str, int, dict[int, int], list[int]]
"""Phase, stage, how often each latency in ns occurred, and MiB in each second."""


@pytest.fixture
def recorded() -> Callable[[list[Step]], Recording]:
    """`recorded(steps)` -> these steps, each after a rest of 10 s."""
    return steps_after_rests


def steps_after_rests(steps: list[Step]) -> Recording:
    """The recording of steps, each after a rest of 10 s."""
    recording, clock = Recording(), 0
    for step in steps:
        clock = add_step(recording, step, clock + 10_000_000_000)
    return recording


def usual_steps() -> list[Step]:
    """A fill, and two amounts of overwriting with two reads before and after each."""
    steps: list[Step] = [("fill", 0, {500_000: 10}, [400, 400])]
    for stage in range(3):
        if stage:
            steps.append(("overwrite", stage, {6_000: 50 * stage, 90_000: 5}, [100, 90]))
        latencies = {450_000 * (stage + 1): 90, 700_000 * (stage + 1): 10}
        steps += [("read", stage, latencies, [2000 // (stage + 1)] * 2)] * 2
    return steps


def add_step(recording: Recording, step: Step, start: int) -> int:
    """Adds a step that starts at `start` ns; returns its end."""
    phase, stage, counts, mib = step
    end = start + len(mib) * 1_000_000_000
    values = {
        **dict.fromkeys(("repeat", "rest_s", "block_bytes", "errors"), 0),
        "phase": phase,
        "stage": stage,
        "queue_depth": 1,
        "start_ns": start,
        "end_ns": end,
        "requests": sum(counts.values()),
        "extents": None,
        "bytes": sum(mib) << 20,
    }
    intervals = {
        "start_ns": list(range(start, end, 1_000_000_000)),
        "requests": [1] * len(mib),
        "bytes": [amount << 20 for amount in mib],
        "latency_ns_max": [1] * len(mib),
    }
    latency = {"latency_ns": list(counts), "count": list(counts.values())}
    recording.add(StepRow(values, intervals, latency))
    return end

"""The studio's module computes what the native module computes: counters, times, latencies."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab import profiles
from ssdlab.device import Drive, open_twin
from ssdlab.experiments.placement.drives import edit_profile

MODULE = Path(ssdlab.__file__).parent / "studio" / "studio.wasm"
RUN_STEPS = Path(__file__).with_name("run_steps.mjs")
CAPACITY = 1 << 30
MIB = 1 << 20

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="node is missing: it runs the module"),
    pytest.mark.skipif(not MODULE.exists(), reason="make studio has not built the module"),
]


def job(**fields: Any) -> dict[str, Any]:
    return {"job": {"op": "write", "length_bytes": CAPACITY, **fields}}


def random_writes(count: int, **fields: Any) -> dict[str, Any]:
    sizes = {"block_bytes": 4096, "amount_bytes": 4096 * count}
    return job(**{"pattern": "random", "seed": 7, **sizes, **fields})


FILL = job(block_bytes=MIB, amount_bytes=CAPACITY, queue_depth=4)
FLUSH = {"job": {"op": "flush"}}
MIXED = random_writes(
    12_000,
    block_bytes=0,
    block_mix=((4096, 0.7), (16384, 0.2), (65536, 0.1)),
    read_share=0.4,
    trim_share=0.05,
    queue_depth=32,
    sync={"flush": {"every": 9}},
)
STEPS = {
    "random": [FILL, FLUSH, random_writes(80_000), {"rest": 2.5}, random_writes(20_000, seed=8)],
    "mixed": [FILL, MIXED, {"rest": 0.01}, random_writes(9_000, queue_depth=16, threads=4)],
    # Logarithms, powers and exponentials: another implementation of them in the module.
    "zipf": [FILL, random_writes(200_000, pattern={"zipf": {"theta": 0.99}}, queue_depth=8)],
    "rate": [FILL, random_writes(60_000, arrival={"rate": {"per_s": 30e3, "poisson": True}})],
    "zeros": [FILL, {**random_writes(5_000), "zeros": True}, random_writes(5_000)],
    "reads": [
        FILL,
        random_writes(30_000, pattern="random_once", sync="durable", queue_depth=2),
        job(op="read", block_bytes=MIB, amount_bytes=CAPACITY, queue_depth=2),
        random_writes(20_000, op="read", queue_depth=64),
        job(op="trim", block_bytes=MIB, amount_bytes=CAPACITY // 2),
        random_writes(20_000, hint={"stream": {"number": 1}}),
    ],
}
CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "streams": {"ftl": {"placement": "streams", "streams": 4, "victim": "d-choices"}},
    "inferred": {"ftl": {"placement": "inferred", "victim": "cost-benefit"}},
    "packed": {"ftl": {"placement": "packed", "victim": "random", "idle_reserve": 12}},
    "worn": {"ftl": {"wear_levelling": "static", "map_cache": "64 KiB", "victim": "fifo"}},
}


def by_module(text: str, steps: list[Any], seed: int) -> dict[str, Any]:
    spec = {"profile": text, "capacity_bytes": CAPACITY, "seed": seed}
    command = ["node", str(RUN_STEPS), str(MODULE), "1000"]
    given = json.dumps({"spec": spec, "steps": steps})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def step_by_native_module(drive: Drive, step: dict[str, Any]) -> dict[str, Any]:
    if "rest" in step:
        start = drive.now_ns()
        assert drive.rest(step["rest"])
        return {"kind": "rest", "start_ns": start, "end_ns": drive.now_ns()}
    used = drive.writing_zeros() if step.get("zeros") else drive
    outcome = used.run(json.dumps(step["job"]))
    rows: dict[int, int] = {}
    latency = outcome["latency"]
    for value, count in zip(latency["latency_ns"].tolist(), latency["count"].tolist(), strict=True):
        rows[value] = rows.get(value, 0) + count
    names = ("start_ns", "end_ns", "requests", "bytes", "errors", "unserved", "stopped")
    result = {name: outcome[name] for name in names}
    return result | {"kind": "job", "latency": [list(row) for row in sorted(rows.items())]}


def assert_equal(text: str, steps: list[Any], seed: int = 3) -> None:
    found = by_module(text, steps, seed)
    drive = open_twin("twin", text, CAPACITY, seed=seed)
    for step, result in zip(steps, found["results"], strict=True):
        expected = step_by_native_module(drive, step)
        assert {name: result[name] for name in expected} == expected
    assert found["counters"] == drive.counters()


@pytest.mark.parametrize("steps", STEPS)
def test_the_same_steps_have_the_same_results_and_counters(steps: str) -> None:
    assert_equal(profiles.load("toshiba-xg5"), STEPS[steps])


@pytest.mark.parametrize("changes", CHANGES)
def test_whatever_the_policies_of_the_drive(changes: str) -> None:
    text = edit_profile(profiles.load("samsung-970-evo-plus-500"), CHANGES[changes])
    assert_equal(text, STEPS["reads"])


@pytest.mark.parametrize("name", profiles.names())
def test_whatever_the_drive(name: str) -> None:
    assert_equal(profiles.load(name), STEPS["mixed"], seed=11)


def test_an_error_is_one_line_with_what_is_allowed() -> None:
    given = json.dumps({"spec": {"profile": "[drive]\nmodel = 5\n"}, "steps": []})
    command = ["node", str(RUN_STEPS), str(MODULE), "0"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "drive.model: is 5; may be a text in quotes\n"

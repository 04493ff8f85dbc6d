"""The scenes: each repeats an experiment, and each chapter begins where its text says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forked import Program, run_ssdlab

from ssdlab import profiles
from ssdlab.device import describe_twin, open_twin
from ssdlab.records import read_run
from ssdlab.report.inside import SCENE_OF
from ssdlab.studio import SCENES
from ssdlab.studio.page import CAPACITY
from ssdlab.studio.scenes import load_scene

SECONDS = (90, 150)
"""About two minutes."""


@pytest.fixture
def ssdlab(tmp_path: Path) -> Program:
    """`ssdlab(*words)` -> the finished process."""
    return lambda *words, **options: run_ssdlab(words, cwd=tmp_path, **options)


def _scene(data: dict[str, Any], name: str) -> dict[str, Any]:
    return next(scene for scene in data["scenes"] if scene["name"] == name)


def _replayed(drive: dict[str, Any]) -> tuple[dict[str, Any] | None, list[list[int]]]:
    """The counters and ends of jobs after the steps of a scene, on a new twin."""
    spec = drive["spec"]
    twin = open_twin("scene", spec["profile"], spec["capacity_bytes"], seed=spec["seed"])
    ends = []
    for step in drive["steps"]:
        if "rest" in step:
            twin.rest(step["rest"])
        else:
            fields = twin.run(json.dumps(step["job"]))
            ends.append([fields["requests"], fields["start_ns"], fields["end_ns"]])
    return twin.counters(), ends


def test_reports_name_the_scene_of_their_experiment() -> None:
    assert {scene: experiment for experiment, scene in SCENE_OF.items()} == {
        name: load_scene(name).experiment for name in SCENES
    }


@pytest.mark.parametrize("name", SCENES)
def test_the_steps_of_a_scene_repeat_the_experiment(data: dict[str, Any], name: str) -> None:
    drives = _scene(data, name)["drives"]
    assert drives
    for drive in drives:
        assert drive["spec"]["seed"] == data["seed"] > 0
        assert _replayed(drive) == (drive["counters"], drive["ends"])


@pytest.mark.parametrize("name", SCENES)
def test_chapters_follow_each_other_and_take_two_minutes(data: dict[str, Any], name: str) -> None:
    scene = _scene(data, name)
    steps = [chapter["step"] for chapter in scene["chapters"]]
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert steps[-1] < len(scene["drives"][0]["steps"]) + len(scene["extra"])
    assert SECONDS[0] <= sum(chapter["seconds"] for chapter in scene["chapters"]) <= SECONDS[1]


def test_drives_side_by_side_get_the_same_number_of_commands(data: dict[str, Any]) -> None:
    striped, hinted = _scene(data, "conflicts")["drives"]
    assert [end[0] for end in striped["ends"]] == [end[0] for end in hinted["ends"]]
    assert striped["spec"] != hinted["spec"]


@pytest.mark.parametrize("name", ["ageing", "power"])
def test_the_command_of_a_scene_does_the_same(
    data: dict[str, Any], ssdlab: Program, tmp_path: Path, name: str
) -> None:
    scene = _scene(data, name)
    done = ssdlab(*scene["command"].split()[1:], "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] == scene["verdict"]
    rows = read_run(tmp_path / result["folder"]).tables["steps"].to_pylist()
    ends = [[row["requests"], row["start_ns"], row["end_ns"]] for row in rows]
    assert ends == scene["drives"][0]["ends"]


@pytest.mark.parametrize("name", SCENES)
def test_the_command_for_a_real_drive_is_one_of_the_program(name: str, ssdlab: Program) -> None:
    words = load_scene(name).own.split()
    assert words[0] == "ssdlab"
    done = ssdlab(*words[1:], "--help")
    assert done.returncode == 0, done.stderr


def test_a_page_without_a_module_says_how_to_build_it(tmp_path: Path, data: dict[str, Any]) -> None:
    from ssdlab.errors import UsageError
    from ssdlab.studio import PageOptions, make_page
    from ssdlab.target import Twin

    with pytest.raises(UsageError, match="make studio"):
        make_page(PageOptions(Twin("toshiba-xg5"), None), module=tmp_path / "studio.wasm")


def test_every_shipped_profile_fits_the_capacity_of_the_free_play() -> None:
    for name in profiles.names():
        assert describe_twin(name, profiles.load(name), CAPACITY)["superblocks"] > 30


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scene", "none"], "ageing, spare, trim, power, conflicts, cache"),
        (["--out", "nowhere/page.html"], "existing directory"),
        (["--out", "/"], "existing directory"),
        (["/no/such.toml"], "give twin:NAME or twin:FILE.toml"),
        (["/"], "/ is not a twin"),
        (["twin:no-such-twin"], "no twin called"),
        (["toshiba-xg5", "--capacity", "1KiB"], "at least about"),
    ],
)
def test_bad_input_is_one_line(ssdlab: Program, words: list[str], said: str) -> None:
    done = ssdlab("studio", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1

"""tools/tidy_baseline.json: words, tuple parameters and import cycles, whose number only falls."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Tidy = Callable[..., list[str]]

BASELINE = "tools/tidy_baseline.json"


@pytest.fixture
def tidy(run: Run, checkout: Path, tmp_path: Path) -> Tidy:
    """Runs tidy on `tmp_path` and returns its findings."""

    def run_tidy(*options: str) -> list[str]:
        result = run(checkout, "python", "tools/tidy.py", tmp_path, *options)
        assert "Traceback" not in result.stdout, result.stdout
        return result.stdout.splitlines()

    return run_tidy


def plant(root: Path, files: dict[str, str]) -> None:
    """Write modules; each gets a first line that says it is one."""
    for name, code in files.items():
        opening = '"""A module."""' if name.endswith(".py") else "//! A module."
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{opening}\n{code}")


def accept(root: Path, **numbers: Any) -> None:
    """Write the tree's baseline."""
    baseline = {"words": {}, "tuple_parameters": 0, "cycles": [], **numbers}
    (root / BASELINE).parent.mkdir(exist_ok=True)
    (root / BASELINE).write_text(json.dumps(baseline))


def accepted(root: Path) -> Any:
    return json.loads((root / BASELINE).read_text())


# Words


def test_a_word_is_counted_in_names_comments_and_over_line_ends(tidy: Tidy, tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "python/names.py": "it_is_grey = Grey = 'GREY'\ngreyish = 1\n",
            "crates/time/src/lib.rs": "// dark\n/// grey: counted\nfn dark_grey() {}\n",
        },
    )
    accept(tmp_path, words={"grey": 0, "dark grey": 0})
    assert [line.partition(" occurs ")[2].partition(",")[0] for line in tidy()] == [
        "2 times",
        "5 times",
    ]


def test_recording_lowers_a_number_and_never_raises_one(tidy: Tidy, tmp_path: Path) -> None:
    plant(tmp_path, {"python/names.py": "grey = green = 1\n"})
    accept(tmp_path, words={"grey": 3, "green": 0})
    risen = '"green" occurs 1 times, 0 at most'
    fallen = '"grey" occurs 1 times, no longer 3: run `python tools/tidy.py --record`'
    assert tidy() == [
        f"{BASELINE}:1: baseline: {fallen}",
        f"{BASELINE}:1: words: {risen}: write the usual word",
    ]
    assert tidy("--record") == [f"{BASELINE}:1: words: {risen}: write the usual word"]
    assert accepted(tmp_path)["words"] == {"grey": 1, "green": 0}


# Tuples


def test_tuple_parameters_are_listed_only_above_the_accepted_number(
    tidy: Tidy, tmp_path: Path
) -> None:
    plant(tmp_path, {"python/pair.py": "def f(a: tuple[int, str], b: tuple[int, int]): pass\n"})
    accept(tmp_path, tuple_parameters=2)
    assert tidy() == []
    accept(tmp_path, tuple_parameters=1)
    assert ["f(a)" in line or "f(b)" in line for line in tidy()] == [True, True]
    accept(tmp_path, tuple_parameters=3)
    assert "2 tuple parameters, no longer 3" in tidy()[0]
    assert tidy("--record") == []


# Import cycles

PYTHON_CYCLES = {
    "at the top": "import ssdlab.a\n",
    "from the package": "from ssdlab import a\n",
    "of a name": "from ssdlab.a import ANSWER\n",
    "in a function": "def late() -> None:\n    from ssdlab.a import ANSWER\n",
}


@pytest.mark.parametrize("planted", PYTHON_CYCLES)
def test_modules_that_import_each_other_are_refused(
    tidy: Tidy, tmp_path: Path, planted: str
) -> None:
    plant(
        tmp_path,
        {
            "python/ssdlab/__init__.py": "",
            "python/ssdlab/a.py": "import ssdlab.b.c\n\nANSWER = 42\n",
            "python/ssdlab/b/__init__.py": "",
            "python/ssdlab/b/c.py": PYTHON_CYCLES[planted],
        },
    )
    found = "ssdlab.a -> ssdlab.b.c -> ssdlab.a"
    assert tidy() == [f"python/ssdlab/a.py:2: import-cycle: {found}"]


def test_an_import_for_type_checkers_is_not_part_of_a_cycle(tidy: Tidy, tmp_path: Path) -> None:
    typed = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import ssdlab.a\n"
    plant(
        tmp_path,
        {"python/ssdlab/a.py": "import ssdlab.b\n", "python/ssdlab/b.py": typed},
    )
    assert tidy() == []


# `power` in each test: engine refers to it, and one of these lines refers back to engine.
RUST_CYCLES = {
    "by use": "use crate::{time::Nanos, engine::{self, Command}};\n",
    "by a path in code": "fn cut(command: crate::engine::Command) {}\n",
    "by super": "use super::engine::Command;\n",
    "by a name that lib.rs exports again": "use crate::Command;\n",
}
ENGINE = {
    "lib.rs": "mod engine;\nmod power;\npub use engine::Command;\n",
    "engine/mod.rs": "mod run;\npub struct Command;\n",
    "engine/run.rs": "use super::Command;\nuse crate::power::Power;\n",
}


def plant_engine(root: Path, power: str) -> None:
    sources = {**ENGINE, "power.rs": power}
    plant(root, {f"crates/flash/src/{name}": code for name, code in sources.items()})


@pytest.mark.parametrize("planted", RUST_CYCLES)
def test_sibling_modules_of_a_crate_that_use_each_other_are_refused(
    tidy: Tidy, tmp_path: Path, planted: str
) -> None:
    plant_engine(tmp_path, RUST_CYCLES[planted])
    found = "flash::engine -> flash::power -> flash::engine"
    assert tidy() == [f"crates/flash/src/engine/run.rs:3: import-cycle: {found}"]


def test_unit_tests_and_comments_of_a_crate_may_refer_to_anything(
    tidy: Tidy, tmp_path: Path
) -> None:
    tests = "#[cfg(test)]\nmod tests {\n    use crate::engine::Command;\n}\n"
    plant_engine(tmp_path, f"// use crate::engine::Command;\npub struct Power;\n{tests}")
    assert tidy() == []


def test_an_accepted_cycle_passes_and_is_removed_when_it_is_gone(
    tidy: Tidy, tmp_path: Path
) -> None:
    plant_engine(tmp_path, "use crate::engine::Command;\n")
    accept(tmp_path, cycles=[["flash::engine", "flash::power"]])
    assert tidy() == []
    plant_engine(tmp_path, "pub struct Power;\n")
    assert "this import cycle is gone or smaller: flash::engine, flash::power" in tidy()[0]
    assert tidy("--record") == []
    assert accepted(tmp_path)["cycles"] == []
    plant_engine(tmp_path, "use crate::engine::Command;\n")
    assert "import-cycle" in tidy()[0]

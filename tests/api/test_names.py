"""The names in `ssdlab`: typed, documented, and loaded on first use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import ssdlab
from pages.commands import Verb, root, walk
from ssdlab import api
from ssdlab.experiments import questions

SOURCE = Path(ssdlab.__file__)
SHARED = {"targets", "capacity", "destroy_data", "out", "seed", "json", "quiet", "yes"}
"""Options of every command of `ssdlab run`: how a target is opened, and a run kept and shown."""


def test_what_is_offered_is_what_the_api_has_and_what_type_checkers_see() -> None:
    (for_checkers,) = (
        node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If)
    )
    imported = for_checkers.body[0]
    assert isinstance(imported, ast.ImportFrom)
    assert [each.name for each in imported.names] == ssdlab.__all__ == api.__all__
    assert all(getattr(ssdlab, name) is getattr(api, name) for name in ssdlab.__all__)
    assert set(ssdlab.__all__) <= set(dir(ssdlab))
    assert (SOURCE.parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ssdlab.nothing


def test_importing_ssdlab_loads_no_slow_module() -> None:
    slow = "{'numpy', 'pyarrow', 'typer', 'rich', 'ssdlab.api'}"
    program = f"import ssdlab, sys; print(sorted({slow} & set(sys.modules)))"
    path = {"PYTHONPATH": str(SOURCE.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ssdlab.__all__)
def test_every_name_and_its_public_members_are_documented(name: str) -> None:
    offered = getattr(ssdlab, name)
    assert inspect.getdoc(offered)
    for attribute, value in vars(offered).items() if inspect.isclass(offered) else ():
        if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{attribute}"


@pytest.mark.parametrize(
    "verb",
    [each for each in walk(root()) if each.words[1:2] == ("run",) and len(each.words) == 3],
    ids=lambda verb: verb.words[-1],
)
def test_a_question_has_the_parameters_that_its_command_has(verb: Verb) -> None:
    name = verb.words[-1]
    if name == "resume":
        return
    question = getattr(questions, name.capitalize())
    assert question.experiment == name
    options = {each.name for each in verb.command.params} - SHARED
    assert {field.name for field in fields(question)} == options

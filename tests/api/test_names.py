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
"""Options of every `ssdlab run` command for targets and output."""


def test_ssdlab_and_its_api_and_type_checkers_have_the_same_names() -> None:
    (for_checkers,) = (
        node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If)
    )
    imported = for_checkers.body[0]
    assert isinstance(imported, ast.ImportFrom)
    assert [alias.name for alias in imported.names] == ssdlab.__all__ == api.__all__
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
    public = getattr(ssdlab, name)
    assert inspect.getdoc(public)
    for attribute, value in vars(public).items() if inspect.isclass(public) else ():
        if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{attribute}"


@pytest.mark.parametrize(
    "verb",
    [verb for verb in walk(root()) if verb.words[1:2] == ("run",) and len(verb.words) == 3],
    ids=lambda verb: verb.words[-1],
)
def test_an_experiment_class_has_the_options_of_its_command(verb: Verb) -> None:
    name = verb.words[-1]
    if name == "resume":
        return
    question = getattr(questions, name.capitalize())
    assert question.experiment == name
    options = {parameter.name for parameter in verb.command.params} - SHARED
    assert {field.name for field in fields(question)} == options

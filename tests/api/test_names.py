"""The names in `ssdlab`: typed, documented, and loaded on first use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import ssdlab
from ssdlab import api, experiments

SOURCE = Path(ssdlab.__file__)


def test_what_is_offered_is_what_the_api_has_and_what_type_checkers_see() -> None:
    (for_checkers,) = (
        node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If)
    )
    imported = for_checkers.body[0]
    assert isinstance(imported, ast.ImportFrom)
    offered = [*api.__all__, *experiments.__all__]
    assert (imported.module, [each.name for each in imported.names]) == ("ssdlab.api", ["*"])
    assert offered == ssdlab.__all__
    assert all(getattr(ssdlab, name) is getattr(api, name) for name in api.__all__)
    assert set(ssdlab.__all__) == {name for name in dir(ssdlab) if not name.startswith("_")}
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

"""Licences: of ssdlab, of its dependencies and of its data."""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

import licences
import third_party

LICENCE = "MIT OR Apache-2.0"
GPL = "Classifier: License :: OSI Approved :: GNU General Public License (GPL)\n"


def test_every_manifest_states_the_licence_and_its_texts_are_there(checkout: Path) -> None:
    workspace = tomllib.loads((checkout / "Cargo.toml").read_text())["workspace"]["package"]
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    assert workspace["license"] == project["license"] == LICENCE
    for manifest in [*checkout.glob("crates/*/Cargo.toml"), checkout / "fuzz/Cargo.toml"]:
        stated = tomllib.loads(manifest.read_text())["package"]["license"]
        assert stated in (LICENCE, {"workspace": True}), manifest
    for name in project["license-files"]:
        assert "the ssdlab authors" in (checkout / name).read_text()


def test_each_published_table_is_on_the_page_of_sources(checkout: Path) -> None:
    page = (checkout / "docs/reference/sources.md").read_text()
    tables = [path.stem for path in (checkout / "python/ssdlab/profiles/tables").glob("*.toml")]
    assert len(tables) >= 8
    assert [name for name in tables if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("expression", "permitted"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-2.0-only OR MIT AND ISC", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(GPL-2.0-only OR Apache-2.0) AND SSPL-1.0", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH Something-else", False),
        ("MIT OR", True),
        ("MIT AND", False),
        ("(MIT", False),
        ("MIT MIT", False),
        ("", False),
    ],
)
def test_a_licence_is_permitted_if_the_allowed_ones_satisfy_it(
    expression: str, *, permitted: bool
) -> None:
    assert licences.is_permitted(expression) == permitted


def test_the_licences_of_all_dependencies_are_permitted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one licence fewer, the crates that need it are named."""
    assert licences.main() == 0
    monkeypatch.setattr(licences, "ALLOWED", licences.ALLOWED - {"ISC", "PSF-2.0"})
    assert licences.main() == 1
    printed = capsys.readouterr().out
    assert "crate untrusted" in printed
    assert "Python package matplotlib" in printed
    assert "crate serde " not in printed


@pytest.mark.parametrize(
    ("metadata", "stated"),
    [
        ("License-Expression: MIT\nClassifier: License :: OSI Approved :: BSD License\n", "MIT"),
        (
            "Classifier: License :: OSI Approved :: BSD License\n" + GPL,
            "BSD-3-Clause OR GNU-General-Public-License-GPL-",
        ),
        ("License: BSD\n", "BSD-3-Clause"),
        ("License: Mine\n", "Mine"),
        ("", "none"),
    ],
)
def test_the_licence_of_a_python_package_is_read(
    tmp_path: Path, metadata: str, stated: str
) -> None:
    folder = tmp_path / "thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: thing\n{metadata}")
    assert licences.stated(Distribution.at(folder)) == stated


def test_licences_of_linked_crates_only_are_collected() -> None:
    def package(name: str, source: str | None = "registry") -> dict[str, Any]:
        return {"id": name, "name": name, "version": "1.0.0", "source": source}

    def node(name: str, **kinds: str | None) -> dict[str, Any]:
        deps = [{"pkg": pkg, "dep_kinds": [{"kind": kind}]} for pkg, kind in kinds.items()]
        return {"id": name, "deps": deps}

    described = {
        "packages": [package("own", None), *map(package, ("a", "b", "test", "x"))],
        "resolve": {"nodes": [node("own", a=None, test="dev"), node("a", b=None, x="build"),
                              node("b"), node("test"), node("x")]},
    }  # fmt: skip
    assert [each["name"] for each in third_party.linked(described, {"own"})] == ["a", "b"]

"""What a release needs: licences, one version, manual pages; each check refuses what it is for."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

import licences
import release_check
import third_party
from pages import manual, share
from pages.commands import root, walk

Run = Callable[..., subprocess.CompletedProcess[str]]
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


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The files of a release 1.2.3, committed and tagged."""
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3, 2026-12-01\n\n- All.\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "release"], ["tag", "v1.2.3"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "tag.gpgSign=false"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    return tmp_path


CHECKS = (release_check.versions, release_check.changelog, release_check.tag)


def test_a_release_with_one_version_a_section_and_a_tag_is_accepted(release: Path) -> None:
    assert [problem for check in CHECKS for problem in check(release)] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("CITATION.cff", "1.2.3", "1.2.2", "Cargo.toml says 1.2.3, CITATION.cff 1.2.2"),
        ("pyproject.toml", "1.2.3", "1.3.0", "Cargo.toml says 1.2.3, pyproject.toml 1.3.0"),
        ("Cargo.toml", "1.2.3", "1.2", "1.2 is not MAJOR.MINOR.PATCH"),
        ("CHANGELOG.md", ", 2026-12-01", "", "CHANGELOG.md has no section"),
        ("CHANGELOG.md", "- All.", "", "CHANGELOG.md has no section"),
        ("CHANGELOG.md", "## 1.2.3", "## Unreleased\n\n- More.\n\n## 1.2.3", "under Unreleased"),
        ("CHANGELOG.md", "- All.", "- All of it.", "files differ from the commit"),
    ],
)
def test_a_release_that_is_not_one_is_refused(
    release: Path, name: str, old: str, new: str, problem: str
) -> None:
    text = (release / name).read_text()
    assert old in text
    (release / name).write_text(text.replace(old, new))
    problems = [each for check in CHECKS for each in check(release)]
    assert problem in "; ".join(problems)


def test_a_commit_without_the_tag_is_refused(release: Path) -> None:
    subprocess.run(["git", "tag", "--delete", "v1.2.3"], cwd=release, check=True)
    assert [*release_check.tag(release)] == ["this commit has no tag v1.2.3"]


def test_an_unknown_check_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert release_check.main(["colour"]) == 2
    assert "there is no check colour" in capsys.readouterr().out


def test_each_verb_has_a_manual_page_with_all_its_options() -> None:
    pages = manual.pages()
    for verb in walk(root()):
        page = pages[f"{'-'.join(verb.words)}.1"].replace("\\-", "-")
        assert [each for each in verb.options() - {"--help"} if each not in page] == []
        assert verb.example in page
    assert len(pages) > 30


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_accepts_the_manual_pages(tmp_path: Path, run: Run) -> None:
    for name, text in manual.pages().items():
        (tmp_path / name).write_text(text)
        done = run(tmp_path, "groff", "-man", "-Tutf8", "-ww", "-z", name)
        assert (done.returncode, done.stdout) == (0, ""), name


def test_completions_of_three_shells_are_installed(tmp_path: Path) -> None:
    share.main(tmp_path)
    for path in share.COMPLETIONS.values():
        assert "_SSDLAB_COMPLETE=complete_" in (tmp_path / path).read_text()
    assert (tmp_path / "man/man1/ssdlab-run-aging.1").is_file()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_at_the_first_tab(tmp_path: Path, run: Run) -> None:
    """zsh loads the file as a function: called once, it must call the program."""
    share.main(tmp_path)
    program = tmp_path / "ssdlab"
    program.write_text("#!/bin/sh\necho asked $_SSDLAB_COMPLETE >&2\n")
    program.chmod(0o755)
    script = (
        f"fpath+=({tmp_path}/zsh/site-functions); path=({tmp_path} $path); autoload -U compinit; "
        "compinit -D -u; autoload -Uz _ssdlab; words=(ssdlab ru); CURRENT=2; _ssdlab"
    )
    done = run(tmp_path, "zsh", "-f", "-c", script)
    assert "asked complete_zsh" in done.stdout

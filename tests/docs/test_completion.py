"""A shell completes verbs and options, by what `ssdlab --show-completion` gives it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ssdlab ru", {"run", "runs"}),
        ("ssdlab run st", {"steady", "stripe"}),
        ("ssdlab run steady --dr", {"--drive-writes"}),
        ("ssdlab run aging to", {"toshiba-xg5"}),
        ("ssdlab serve to", {"toshiba-xg5"}),
        ("ssdlab twin show to", {"toshiba-xg5"}),
        ("ssdlab twin what-if to", {"toshiba-xg5"}),
        ("ssdlab provision to", {"toshiba-xg5"}),
        ("ssdlab twin what-if toshiba-xg5 --change ftl.sp", {"ftl.spare="}),
        ("ssdlab witness ", {"report", "serve", "verify", "write"}),
    ],
)
def test_bash_is_told_the_verbs_and_options_that_begin_so(
    words: str, found: set[str], environment: dict[str, str]
) -> None:
    asked = {
        "_SSDLAB_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        ["ssdlab"], env={**environment, **asked}, capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == found, done.stderr


def test_run_folders_are_completed(environment: dict[str, str], tmp_path: Path) -> None:
    for folder in ("ssdlab-runs/one", "ssdlab-runs/two", "others/three"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "manifest.json").touch()
    (tmp_path / "empty").mkdir()

    def completed(words: str) -> set[str]:
        asked = {
            "_SSDLAB_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        done = subprocess.run(
            ["ssdlab"],
            env={**environment, **asked},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return set(done.stdout.split())

    runs = {"ssdlab-runs", "ssdlab-runs/one", "ssdlab-runs/two"}
    assert completed("ssdlab report ") == {*runs, "others"}
    assert completed("ssdlab runs ss") == runs
    assert completed("ssdlab run resume ssdlab-runs/o") == {"ssdlab-runs/one"}
    assert completed("ssdlab compare ssdlab-runs/one,others/") == {"ssdlab-runs/one,others/three"}

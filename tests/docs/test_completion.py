"""A shell completes verbs and options, by what `ssdlab --show-completion` gives it."""

from __future__ import annotations

import subprocess

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

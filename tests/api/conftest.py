"""Small runs of twins by the Python API, shared by the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import ssdlab


@pytest.fixture(scope="session")
def twin() -> ssdlab.Target:
    """A small twin."""
    return ssdlab.open_target("twin:toshiba-xg5", capacity="256MiB")


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of the runs below."""
    return tmp_path_factory.mktemp("api") / "results"


@pytest.fixture(scope="session")
def aged(twin: ssdlab.Target, results: Path) -> ssdlab.Run:
    """An `aging` run."""
    return twin.run(ssdlab.Aging(size="16MiB"), seed=3, out=results, label="first")


@pytest.fixture(scope="session")
def split(twin: ssdlab.Target, results: Path, aged: ssdlab.Run) -> ssdlab.Run:
    """A `split` run in the same folder, after `aged`."""
    return twin.run(ssdlab.Split(size="64MiB", quick=True), seed=3, out=results)

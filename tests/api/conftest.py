"""Small runs of twins, made once by the Python API, that several tests look at."""

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
    """A run of ageing."""
    return twin.run(ssdlab.Aging(size="16MiB"), seed=3, out=results, label="first")


@pytest.fixture(scope="session")
def split(twin: ssdlab.Target, results: Path, aged: ssdlab.Run) -> ssdlab.Run:
    """A run of another experiment in the same folder, after the first."""
    return twin.run(ssdlab.Split(size="64MiB", quick=True), seed=3, out=results)

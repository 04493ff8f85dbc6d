"""`pytest -n` runs the tests of a group in one process: their fixtures are made once."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="needs pytest -n")
def test_a_file_is_a_group(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith(f"@{request.path}")

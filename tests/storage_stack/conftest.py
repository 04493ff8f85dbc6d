"""A captured machine for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import CapturedMachine


@pytest.fixture
def captured(tmp_path: Path) -> CapturedMachine:
    """A machine with no block devices yet."""
    return CapturedMachine(tmp_path / "captured")

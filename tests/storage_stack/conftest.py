"""Fixture: a captured machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import CapturedMachine


@pytest.fixture
def captured(tmp_path: Path) -> CapturedMachine:
    """A machine without block devices."""
    return CapturedMachine(tmp_path / "captured")

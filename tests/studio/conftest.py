"""The page of the studio, made once for all tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from studio_page import data_of

from ssdlab.studio import PageOptions, make_page
from ssdlab.studio.page import MODULE
from ssdlab.target import Twin

MIB = 1 << 20
SEED = 3


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page; without a built module it has a placeholder instead, and does not run."""
    module = MODULE
    if not module.exists():
        module = tmp_path_factory.mktemp("module") / "studio.wasm"
        module.write_bytes(b"no module")
    return make_page(PageOptions(Twin("toshiba-xg5", 256 * MIB), "ageing", SEED), module=module)


@pytest.fixture(scope="session")
def running_page(page: str) -> str:
    """The page with its module."""
    if not MODULE.exists():
        pytest.skip(f"needs {MODULE.name}, which is not built: make studio")
    return page


@pytest.fixture(scope="session")
def data(page: str) -> dict[str, Any]:
    """The data that the page has."""
    found: dict[str, Any] = json.loads(data_of(page))
    return found

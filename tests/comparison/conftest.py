"""Finished runs with numbers chosen by the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ssdlab.records import Manifest, Recording, Result, Run


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """`make_run(**changes)` -> a finished `aging` run in a directory, with these fields."""
    count = iter(range(10_000))
    tables = Recording().tables()

    def make(**changes: Any) -> Run:
        number = next(count)
        seconds = f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"
        both: dict[str, Any] = {
            "experiment": "aging",
            "target": "/mnt/data",
            "virtual": False,
            "seed": number,
        }
        manifest = Manifest(
            run=f"run-{number}",
            ssdlab="0.1.0",
            started=f"2026-11-21T{seconds}+00:00",
            parameters={"size_mib": 64.0},
            versions={"ssdlab": "0.1.0", "kernel": "6.1"},
            host={"name": "lab"},
            device={"kind": "directory"},
            profile=None,
            **both,
        )
        result = Result(
            ssdlab="0.1.0",
            duration_s=1.0,
            parameters={},
            measures=[],
            findings={},
            verdict="",
            warnings=[],
            folder="",
            **both,
        )
        folder = Path(f"run-{number}")
        return Run(folder, _changed(manifest, changes), _changed(result, changes), tables)

    return make


def _changed(record: Any, changes: dict[str, Any]) -> Any:
    fields = {name: value for name, value in changes.items() if name in record.__struct_fields__}
    return msgspec.structs.replace(record, **fields)

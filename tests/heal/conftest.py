"""Fixtures of the heal tests: files with known content, and a steady writer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from patients import Healing, Writer, drop


@pytest.fixture
def patient() -> Callable[[Path, int], Healing]:
    """`patient(directory, size_bytes)` -> files with random content in a directory of its own."""

    def make(directory: Path, size_bytes: int) -> Healing:
        chance = random.Random(size_bytes)
        here = directory / "here"
        here.mkdir()
        healing = Healing(
            here / "patient",
            chance.randbytes(size_bytes),
            here / "bystander",
            chance.randbytes(99999),
        )
        healing.path.write_bytes(healing.content)
        healing.bystander.write_bytes(healing.other)
        for path in (healing.path, healing.bystander):
            drop(path)
        return healing

    return make


@pytest.fixture
def writing() -> Iterator[Callable[[Healing, str], Writer]]:
    """`writing(healing, mode)` -> a program that writes at random: buffered, direct, mapped."""
    with ExitStack() as undo:

        def start(healing: Healing, mode: str, rest_us: int = 500) -> Writer:
            writer = Writer(healing, mode, rest_us)
            undo.callback(writer.process.wait)
            undo.callback(writer.process.kill)
            return writer

        yield start

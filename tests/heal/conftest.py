"""Fixtures of the heal tests: files with known content, and a random writer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sample_file import RandomWriter, SampleFile, drop


@pytest.fixture
def make_sample() -> Callable[[Path, int], SampleFile]:
    """`make_sample(directory, size_bytes)` -> a file and a bystander in a new directory."""

    def make(directory: Path, size_bytes: int) -> SampleFile:
        rng = random.Random(size_bytes)
        folder = directory / "here"
        folder.mkdir()
        sample = SampleFile(
            folder / "sample",
            rng.randbytes(size_bytes),
            folder / "bystander",
            rng.randbytes(99999),
        )
        sample.path.write_bytes(sample.content)
        sample.bystander.write_bytes(sample.bystander_content)
        for path in (sample.path, sample.bystander):
            drop(path)
        return sample

    return make


@pytest.fixture
def writing() -> Iterator[Callable[[SampleFile, str], RandomWriter]]:
    """`writing(sample, mode)` -> a program that writes at random: buffered, direct, mapped."""
    with ExitStack() as undo:

        def start(sample: SampleFile, mode: str, rest_us: int = 500) -> RandomWriter:
            writer = RandomWriter(sample, mode, rest_us)
            undo.callback(writer.process.wait)
            undo.callback(writer.process.kill)
            return writer

        yield start

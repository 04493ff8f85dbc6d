"""The fuzz target `fio` accepts its stored corpus."""

import tarfile
from pathlib import Path

import fio

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "fio.tar.gz"


def test_each_stored_job_file_is_refused_in_one_line_or_converted_back_unchanged() -> None:
    run = 0
    with tarfile.open(CORPUS) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                fio.fio(file.read())
                run += 1
    assert run > 10

"""What the fuzz target `fio` runs: the parser of fio's job files, which is Python.

A job file is refused in one line, or its jobs are printed as a job file that reads as the same.
"""

import msgspec

from ssdlab.device.fio import FioJob, parse_fio, to_fio
from ssdlab.errors import UsageError


def fio(content: bytes) -> None:
    """Reads a job file of this content, and prints what it says."""
    try:
        jobs = parse_fio(content.decode(errors="replace"), 1 << 30, {})
    except UsageError as error:
        check_line(error)
        return
    for job in jobs:
        text = printed(job)
        if text is not None:
            [read] = parse_fio(text, 1 << 30, {})
            assert of_requests(read) == of_requests(job), text


def printed(job: FioJob) -> str | None:
    """The job as a job file; None where fio has no word for something in it."""
    try:
        return to_fio(job)
    except UsageError as error:
        refused = error
    check_line(refused)
    # `to_fio` reads what it prints: what came from a job file must not change by that.
    assert not str(refused).endswith("as fio has it"), str(refused)
    return None


def of_requests(step: FioJob) -> FioJob:
    """The job without what is left out where it is printed: notes, and seeds fio may choose."""
    return msgspec.structs.replace(
        step,
        notes=(),
        job=msgspec.structs.replace(step.job, seed=0),
        options=msgspec.structs.replace(step.options, seed=0),
    )


def check_line(error: UsageError) -> None:
    """What users see of an error is one line."""
    assert str(error)
    assert len(str(error).splitlines()) == 1, str(error)

"""Parameters of `workload`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import Parameter, Parameters


@dataclass(frozen=True, kw_only=True)
class Workload(Parameters):
    """How does this drive perform under the jobs of a fio job file?

    Runs the jobs one after the other on the target, not on the file that they name. Regions that
    are read are written first. Unknown options are refused by name.
    """

    example: ClassVar = "workload twin:toshiba-xg5 --fio job.fio"
    sized_by: ClassVar = "the fio job file"

    fio: Annotated[
        Path | str, Parameter("A fio job file.", metavar="FILE", label="Job file", key="fio")
    ]

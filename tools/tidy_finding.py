"""`Finding`: a violation with its place."""

from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """A violation of a rule; sorts by place."""

    file: Path
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.what}"

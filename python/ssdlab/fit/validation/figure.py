"""`Figure`: a published figure of a real drive next to that of its twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["fitted", "by construction", "predicted"]


@dataclass(frozen=True)
class Figure:
    """A published figure, the twin's, and whether the twin was made from it."""

    label: str
    published: float
    twin: float
    role: Role

    @property
    def error(self) -> float:
        """Relative error: positive where the twin's value is larger."""
        return self.twin / self.published - 1.0

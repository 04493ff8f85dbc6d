"""A fit that starts again from other profiles if no twin near the first one explains the results.

The search goes downhill from its start profile, and may stay where all twins nearby are worse. Fits
from unlike profiles rarely stay at the same place. A twin that explains everything else, but not
how fast the drive writes in the long run, is such a place, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab import profiles
from ssdlab.errors import UsageError
from ssdlab.fit.checks import FITTED
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.results import FitInput
from ssdlab.fit.solving import Progress

OTHERS: Final = ("wd-sn850", "intel-s3510-480", "samsung-970-evo-plus-500")
"""Unlike in interface, dies, page and caches."""
POOR: Final = 0.05
"""Mean error above which other profiles are tried. Twins of real drives have 0.8 to 5.1 %."""
SCATTER: Final = 1.1
"""Chi squared per degree of freedom up to which the scatter of the results explains the error."""


@dataclass(frozen=True)
class Attempt:
    """The fit from the profile with this name and text."""

    start: str
    text: str
    fitted: Fitted

    @property
    def error(self) -> float:
        """The mean error of the values that were fitted."""
        errors = [abs(each.error) for each in self.fitted.checks if each.note == FITTED]
        return sum(errors) / len(errors) if errors else 0.0

    @property
    def explains(self) -> bool:
        """Whether no better twin is to be expected from another start."""
        fitted = self.fitted
        return (self.error <= POOR or fitted.excess <= SCATTER) and not fitted.contradicted

    @property
    def rank(self) -> float:
        """The error, and `POOR` more if the rates of `steady` contradict the twin."""
        return self.error + (POOR if self.fitted.contradicted else 0.0)


def attempts(
    start: str,
    fit_input: FitInput,
    source: str,
    progress: Progress = lambda _done, _total: None,
) -> list[Attempt]:
    """Fits from a profile, and from others until one explains the results; the best comes first.

    A profile that cannot be fitted to these results is left out, unless it is the first.

    Raises:
        UsageError: the start profile is unusable, or a twin can produce none of the results.
    """
    found = list[Attempt]()
    for name in (start, *(each for each in OTHERS if each != start)):
        text = profiles.load(name)
        try:
            found.append(Attempt(name, text, fit(text, fit_input, source, progress)))
        except UsageError:
            if not found:
                raise
        if found[-1].explains:
            break
    return sorted(found, key=lambda each: each.rank)

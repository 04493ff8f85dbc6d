"""Candidates near a solution: other choices, with factors that keep its rates, and other limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from ssdlab.fit.parameters import CHANNELS, DIES_PER_CHANNEL, PAGE, PROTECTED, SearchSpace
from ssdlab.fit.solving import Floats, Solution, Start
from ssdlab.profiles.toml_edit import get_value
from ssdlab.units import parse_size

CHANNEL: Final = "flash.channel_bandwidth"
LINK: Final = "link.bandwidth"
FASTER: Final = 2.5
"""Times faster than the limit: where a link or channels start that should not limit a rate."""
COMMANDS: Final = ("link.read_command", "link.write_command")
LIMITS: Final = (LINK, CHANNEL, *COMMANDS)
APART: Final = 0.2
"""Difference of log(factor) of two solutions in which something else is the limit."""
SLOWER: Final = 2.0
"""Factor from the first guess of a command to one that limits the rate."""
PROGRAM: Final = "flash.program"
FLUSH: Final = "buffer.flush_overhead"
BY_RATE: Final = (PROGRAM, "slc.program")
"""Times in proportion to the bytes that all dies program, if the rate of writing is to stay."""
BANDWIDTHS: Final = 3
"""How many bandwidths of the channels are tried in a grid."""


@dataclass(frozen=True)
class Neighbours:
    """Makes candidates from a solution; `fixed` are the start profile's choices."""

    profile: str
    space: SearchSpace
    fixed: Mapping[str, Any]

    @property
    def keys(self) -> list[str]:
        """The keys of the factors."""
        return [scale.key for scale in self.space.scales]

    def value(self, solution: Solution, key: str) -> Any:
        """The solution's choice of this key."""
        return self._at(solution.choices, key)

    def alternatives(self, best: Solution, keys: Collection[str]) -> list[tuple[Any, ...]]:
        """The combinations that differ from the best in one of these choices.

        Another number of channels is also tried with the same number of dies in all.
        """
        by_key = dict(zip(self.fixed, best.choices, strict=True))
        found = [one for key in keys for one in self.space.combinations([key], by_key)]
        if CHANNELS in keys and DIES_PER_CHANNEL in self.fixed:
            dies = by_key[CHANNELS] * by_key[DIES_PER_CHANNEL]
            found += [
                one
                for one in self.space.combinations([CHANNELS, DIES_PER_CHANNEL], by_key)
                if self._at(one, CHANNELS) * self._at(one, DIES_PER_CHANNEL) == dies
            ]
        return [one for one in dict.fromkeys(found) if one != best.choices]

    def steps(self, best: Solution, keys: Collection[str]) -> list[Start]:
        """The alternatives in one of these choices.

        Another number of channels is tried with the same bandwidth of each, and of all together;
        programs of another length, and capacitors, also with the same time of a flush that waits
        for a program.
        """
        found = []
        for choices in self.alternatives(best, keys):
            moved = self.moved(best, choices)
            found.append((choices, moved))
            flushed = self._with_same_flush(best, choices, moved)
            found += [] if flushed is None else [(choices, flushed)]
            if CHANNELS in self.fixed and CHANNEL in self.keys:
                was, now = (self._at(one, CHANNELS) for one in (best.choices, choices))
                shifted = moved + self._shift(CHANNEL, float(np.log(was / now)))
                found += [(choices, shifted)] if was != now else []
        return found

    def combined(
        self, best: Solution, keys: Collection[str], changes: Sequence[Mapping[str, Any]] = ()
    ) -> list[Start]:
        """All combinations of these choices, also after each of the changes."""
        by_key = dict(zip(self.fixed, best.choices, strict=True))
        found = dict.fromkeys(
            one
            for change in ({}, *changes)
            for one in self.space.combinations(keys, {**by_key, **change})
        )
        return [(one, best.log_factors) for one in found]

    def pairs(self, best: Solution, steps: Sequence[Solution]) -> list[Start]:
        """The combinations of two of these steps from the best that change different choices."""
        found = []
        for one, other in combinations(steps, 2):
            changed = [self._changed(best, each) for each in (one, other)]
            if changed[0].isdisjoint(changed[1]):
                choices = tuple(
                    b if b != was else a
                    for was, a, b in zip(best.choices, one.choices, other.choices, strict=True)
                )
                found.append((choices, one.log_factors + other.log_factors - best.log_factors))
        return found

    @staticmethod
    def _changed(best: Solution, other: Solution) -> set[int]:
        pairs = enumerate(zip(best.choices, other.choices, strict=True))
        return {at for at, (was, now) in pairs if was != now}

    def with_choices(self, solution: Solution, keys: Collection[str], like: Solution) -> Start:
        """The solution with the choices of these keys that another solution has."""
        choices = tuple(
            other if key in keys else own
            for key, own, other in zip(self.fixed, solution.choices, like.choices, strict=True)
        )
        return choices, solution.log_factors

    def moved(self, best: Solution, choices: tuple[Any, ...]) -> Floats:
        """The factors of the best, with programs as long as the new page and dies require."""
        was, now = (self._row_bytes(one) for one in (best.choices, choices))
        return best.log_factors + np.where(np.isin(self.keys, BY_RATE), np.log(now / was), 0.0)

    def _with_same_flush(
        self, best: Solution, choices: tuple[Any, ...], moved: Floats
    ) -> Floats | None:
        """The factors with the overhead that keeps the time of a flush, if one does."""
        if not {PROGRAM, FLUSH} <= set(self.keys):
            return None
        times = [
            self._waits(best.choices, best.log_factors),
            self._waits(choices, moved),
        ]
        at, flush = self.keys.index(FLUSH), self.space.scales[self.keys.index(FLUSH)]
        overhead = (flush.mean(self.profile) + flush.offset) * np.exp(best.log_factors[at])
        changed = overhead + times[0] - times[1]
        if times[0] == times[1] or changed < flush.offset:
            return None
        return moved + self._shift(FLUSH, float(np.log(changed / overhead)))

    def _waits(self, choices: tuple[Any, ...], factors: Floats) -> float:
        """Seconds that a flush waits for a program: none if capacitors protect the buffer."""
        is_choice = PROTECTED in self.fixed
        protected = (
            self._at(choices, PROTECTED) if is_choice else get_value(self.profile, PROTECTED)
        )
        at = self.keys.index(PROGRAM)
        time = self.space.scales[at].mean(self.profile) * float(np.exp(factors[at]))
        return 0.0 if protected else time

    def _row_bytes(self, choices: tuple[Any, ...]) -> int:
        """Bytes that all dies program at once, as far as these depend on the choices."""
        size = parse_size(self._at(choices, PAGE)) if PAGE in self.fixed else 1
        if DIES_PER_CHANNEL not in self.fixed:  # then other channels share the same dies
            return size
        channels = self._at(choices, CHANNELS) if CHANNELS in self.fixed else 1
        return size * int(channels * self._at(choices, DIES_PER_CHANNEL))

    def bandwidths(self, choices: tuple[Any, ...]) -> list[Floats]:
        """Shifts of the factors that give the channels different bandwidths.

        With the last one, all of them together are as fast as the link.
        """
        if CHANNEL not in self.keys:
            return [np.zeros(len(self.keys))]
        scale = self.space.scales[self.keys.index(CHANNEL)]
        low, high = np.log(scale.low) + 0.7, np.log(scale.high) - 0.3
        tried = [float(x) for x in np.linspace(low, high, BANDWIDTHS)]
        if LINK in self.keys:
            link = self.space.scales[self.keys.index(LINK)].mean(self.profile)
            all_channels = self._channels(choices) * scale.mean(self.profile)
            tried.append(float(np.clip(np.log(link / all_channels), low, high)))
        return [self._shift(CHANNEL, x) for x in tried]

    def other_limits(self, best: Solution) -> list[Start]:
        """Candidates in which something else limits the fastest rates.

        These are the channels if the link did, or the other way, and the controller's time for a
        command. All explain the rate, and there is no way downhill from one to the other.
        """
        found = [
            (best.choices, best.log_factors + self._shift(key, amount))
            for key in COMMANDS
            if key in self.keys
            for amount in (float(np.log(SLOWER)), -float(np.log(SLOWER)))
        ]
        if LINK not in self.keys or CHANNEL not in self.keys:
            return found
        link, channel = (
            self.space.scales[at].mean(self.profile) * np.exp(best.log_factors[at])
            for at in (self.keys.index(LINK), self.keys.index(CHANNEL))
        )
        for choices in [best.choices, *self.alternatives(best, [CHANNELS])]:
            ratio = float(np.log(self._channels(choices) * channel / link))
            for key, other, amount in ((LINK, CHANNEL, ratio), (CHANNEL, LINK, -ratio)):
                moved = self._shift(key, amount) + self._shift(other, float(np.log(FASTER)))
                found.append((choices, best.log_factors + moved))
        return found

    def is_other(self, one: Solution, best: Solution) -> bool:
        """Whether it has other choices, or something else limits the fastest rates."""
        moved = np.abs(one.log_factors - best.log_factors) > APART
        return one.choices != best.choices or bool(moved[np.isin(self.keys, LIMITS)].any())

    def _channels(self, choices: tuple[Any, ...]) -> int:
        is_choice = CHANNELS in self.fixed
        return int(self._at(choices, CHANNELS) if is_choice else get_value(self.profile, CHANNELS))

    def _at(self, choices: tuple[Any, ...], key: str) -> Any:
        return choices[list(self.fixed).index(key)]

    def _shift(self, key: str, amount: float) -> Floats:
        return np.where(np.array(self.keys) == key, amount, 0.0)


def best_by(solutions: Sequence[Solution], places: Sequence[int]) -> list[Solution]:
    """For each combination of the choices at these places, the solution of the lowest cost."""
    ranked = sorted(solutions, key=lambda one: -one.cost)
    found = {tuple(one.choices[at] for at in places): one for one in ranked}
    return sorted(found.values(), key=lambda one: one.cost)

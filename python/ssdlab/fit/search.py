"""The search: fits the factors by least squares for the promising combinations of choices.

The cost of a candidate is the sum of squares of log(twin / drive), in standard deviations, plus the
prior's penalty (`parameters`). The choices that all results depend on are varied one after the
other, from the best combination so far, until none improves it; those that only an ageing row
depends on are all tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ssdlab.errors import UsageError
from ssdlab.fit.intervals import POOR_FIT, drop_of, measured_reach
from ssdlab.fit.objective import Effort, Objective
from ssdlab.fit.parameters import PAGE, SearchSpace
from ssdlab.fit.solving import Floats, Solution, Task, solve_all
from ssdlab.profiles.toml_edit import get_value, values_only
from ssdlab.units import parse_size

Progress = Callable[[int, int], None]
"""Called with the number of finished combinations, and the total number."""
ROUGH_ROUNDS: Final = 2
FINE_ROUNDS: Final = 6
"""Least-squares iterations: rough for all combinations, fine for the promising ones."""
OF_ROW: Final = ("ftl.read_portion", "ftl.read_portions")
"""Choices that only an ageing row depends on."""
FOR_GRID: Final = ("split",)
"""Experiments that rank a grid of combinations: they depend on dies, channels and read-ahead."""
MODE: Final = "slc.mode"
RULES: Final = (MODE, "ftl.mapping_unit", "flash.suspend")
"""Choices that the grid does not show, and that all other numbers depend on."""
NOT_IN_GRID: Final = (*RULES, "link.max_transfer")
CHANNEL: Final = "flash.channel_bandwidth"
CHANNELS: Final = "flash.channels"
LINK: Final = "link.bandwidth"
REGISTER: Final = "flash.cache_register"
FASTER: Final = 2.5
"""Times faster than the limit: where a link or channels start that should not limit a rate."""
COMMANDS: Final = ("link.read_command", "link.write_command")
LIMITS: Final = (LINK, CHANNEL, *COMMANDS)
APART: Final = 0.2
"""Difference of log(factor) of two solutions in which something else is the limit."""
SLOWER: Final = 2.0
"""Factor from the first guess of a command to one that limits the rate."""
EXCHANGES: Final = 3
"""How many combinations are solved in which something else is the limit."""
START_ROUNDS: Final = 3
STEPS: Final = 2
"""Rough steps for a combination, with the derivatives of another."""
RESTARTS: Final = 3
"""The most times that the search for reaches finds a better point."""
SWEEPS_OTHER: Final = 4
"""The most times with the other choice of a cache register."""
SWEEPS_MAX: Final = 10
"""The most times that all other choices are varied."""
BY_PAGE: Final = ("flash.program", "slc.program")
"""Times in proportion to the bytes of a program, if the rate of writing is to stay."""
PROMISING_COST: Final = 12.0
"""Combinations within this cost of the best are refined."""


def search(
    profile: str,
    objectives: Sequence[Objective],
    space: SearchSpace,
    progress: Progress,
) -> list[Solution]:
    """Solutions whose choices are about as good as the best combination, sorted by cost.

    Raises:
        UsageError: no combination gives a valid twin.
    """
    found = _Search(profile, objectives, space, progress)
    solutions = found.run()
    if not solutions:
        raise UsageError(
            "no candidate is a valid twin; run `ssdlab twin check` on the start profile"
        )
    # Those that were solved roughly, with the derivatives of another, do not know theirs.
    excess = max(one.excess for one in solutions)
    solutions = [replace(one, excess=excess) for one in solutions]
    return sorted(solutions, key=lambda solution: solution.cost)


class _Search:
    """One search: its candidates so far, and its progress."""

    def __init__(
        self,
        profile: str,
        objectives: Sequence[Objective],
        space: SearchSpace,
        progress: Progress,
    ) -> None:
        self.space, self.progress, self.done = space, progress, 0
        self.keys = [scale.key for scale in space.scales]
        zeros = np.zeros(len(space.scales))
        self.fixed = {choice.key: choice.value_in(profile) for choice in space.choices}
        self.outer = [key for key in self.fixed if key not in OF_ROW]
        start = Solution(tuple(self.fixed.values()), zeros, zeros, np.inf)
        bare = values_only(profile)
        self.task = Task(bare, objectives, space, start, 0.0, FINE_ROUNDS, Effort.FINE)
        self.others = [one for one in objectives if one.experiment != "aging"]

    def run(self) -> list[Solution]:
        """The best combinations, refined; that of the lowest cost with the reach of its factors.

        If a factor can be moved to a better point, the refinement continues there.
        """
        solutions = self._combinations()
        for _ in range(RESTARTS):
            if not solutions:
                break
            best = min(solutions, key=lambda one: one.cost)
            if best.excess > POOR_FIT:  # then nothing counts as determined
                break
            solutions.remove(best)
            reached = measured_reach(self._task_of(best), best)
            if reached.reach is not None or best.jacobian is None:
                return [reached, *solutions]
            task = (reached.choices, reached.log_factors)
            [better] = self._solve_each([task], self.task.objectives, FINE_ROUNDS) or [best]
            # The others keep their distance: they stopped at the same place.
            moved = better.cost - best.cost
            others = [
                replace(one, cost=one.cost + moved, excess=better.excess) for one in solutions
            ]
            solutions = [better, *others]
        return solutions

    def _task_of(self, best: Solution) -> Task:
        penalties = dict(self.space.combinations(list(self.fixed), self.fixed))
        return replace(self.task, start=best, penalty=penalties[best.choices])

    def _combinations(self) -> list[Solution]:
        if not self.others and self.task.objectives:
            return self._run_row()
        near = self._near()
        if not near or len(self.others) == len(self.task.objectives):
            return near
        inner = self._rank_inner(near[0])
        task = (self._with_inner(near[0], inner[0]), near[0].log_factors)
        refined = self._solve_each([task], self.task.objectives, START_ROUNDS)
        if not refined:
            return near
        # The others keep their distance from the best in the results that distinguished them.
        [best] = refined
        rest = [
            replace(best, choices=self._with_inner(best, one), cost=best.cost + one.cost)
            for one in inner[1:]
        ]
        rest += [
            replace(
                one,
                choices=self._with_inner(one, inner[0]),
                cost=best.cost + one.cost - near[0].cost,
            )
            for one in near[1:]
        ]
        return refined + rest

    def _run_row(self) -> list[Solution]:
        """With an ageing row only: all combinations of dies and portions, then other pages."""
        keys = [key for key in self.fixed if key != PAGE]
        zeros = self.task.start.log_factors
        tasks = [(choices, zeros) for choices, _ in self.space.combinations(keys, self.fixed)]
        rough = self._solve_each(tasks, self.task.objectives, ROUGH_ROUNDS, Effort.ROUGH)
        rough.sort(key=lambda solution: solution.cost)
        if not rough:
            return []
        limit = rough[0].cost + PROMISING_COST
        promising = [one for one in rough if one.cost <= limit]
        tasks = [(one.choices, one.log_factors) for one in promising]
        refined = self._solve_each(tasks, self.task.objectives, FINE_ROUNDS)
        best = min(refined, key=lambda solution: solution.cost)
        if PAGE in self.fixed:
            pages = self._alternatives(best, [PAGE])
            tasks = [(choices, self._moved(best, choices)) for choices in pages]
            refined += self._solve_each(tasks, self.task.objectives, FINE_ROUNDS)
        return refined

    def _near(self) -> list[Solution]:
        """The best solution for the results other than ageing, and those hardly worse.

        From the best of a grid, single choices are changed for as long as that helps.
        """
        starts = [self._with_rules(*start) for start in self._grid()]
        solved = self._solve_each(starts, self.others, START_ROUNDS)
        if not solved:
            return []
        tried: list[Solution] = []
        exchanged: set[tuple[Any, ...]] = set()
        for _ in range(SWEEPS_MAX):
            best = min(solved, key=lambda one: one.cost)
            tried, better = self._sweep(best, self.outer)
            if better:
                solved += better
                continue
            if best.choices in exchanged:
                break
            exchanged.add(best.choices)
            others = [*self._exchange_limits(best), *self._exchange_register(best, starts)]
            others += self._with_other_register(best, [*solved, *others])
            solved += others
            if not others or min(one.cost for one in others) >= best.cost:
                break
        best = min(solved, key=lambda one: one.cost)
        return self._polished(best, [*solved, *tried])

    def _sweep(self, best: Solution, keys: Sequence[str]) -> tuple[list[Solution], list[Solution]]:
        """The alternatives in one of these choices, and the first solved if it is better."""
        tried = self._step_each(best, keys)
        first = min(tried, key=lambda one: one.cost, default=best)
        if first.cost >= best.cost:
            return tried, []
        task = (first.choices, first.log_factors)
        return tried, self._solve_each([task], self.others, START_ROUNDS)

    def _with_other_register(self, best: Solution, solved: Sequence[Solution]) -> list[Solution]:
        """Better solutions with the other choice of a cache register than the best has.

        It changes what all other numbers mean, so that these are varied, too, before both compare.
        """
        if REGISTER not in self.fixed:
            return []
        at = list(self.fixed).index(REGISTER)
        known = [one for one in solved if one.choices[at] != best.choices[at]]
        found: list[Solution] = []
        for _ in range(SWEEPS_OTHER if known else 0):
            other = min([*known, *found], key=lambda one: one.cost)
            _, better = self._sweep(other, [key for key in self.outer if key != REGISTER])
            if not better:
                break
            found += better
        return found

    def _grid(self) -> list[tuple[tuple[Any, ...], Floats]]:
        """Start values: the combinations that explain `split` best, at the first guess.

        Channels and their bandwidth are varied together, because they compensate each other.
        """
        start = (self.task.start.choices, self.task.start.log_factors)
        objectives = [one for one in self.others if one.experiment in FOR_GRID]
        keys = [key for key in self.outer if key not in NOT_IN_GRID]
        if not objectives or not keys:
            return [start]
        bandwidths = self._bandwidths()
        tasks = [
            (choices, self._moved(self.task.start, choices) + moved)
            for choices, _ in self.space.combinations(keys, self.fixed)
            for moved in bandwidths
        ]
        ranked = self._solve_each(tasks, objectives, 1)
        ranked.sort(key=lambda one: -one.cost)
        at = list(self.fixed).index(REGISTER) if REGISTER in self.fixed else None
        # With and without it all other numbers differ, so both are solved from their best start.
        best = {None if at is None else one.choices[at]: one for one in ranked}
        return [(one.choices, one.log_factors) for one in best.values()] or [start]

    def _with_rules(
        self, choices: tuple[Any, ...], log_factors: Floats
    ) -> tuple[tuple[Any, ...], Floats]:
        """The start with the rules that explain all results best."""
        by_key = dict(zip(self.fixed, choices, strict=True))
        tasks = [(each, log_factors) for each, _ in self.space.combinations(RULES, by_key)]
        ranked = self._solve_each(tasks, self.others, 1)
        best = min(ranked, key=lambda one: one.cost, default=None)
        return (choices, log_factors) if best is None else (best.choices, best.log_factors)

    def _exchange_register(
        self, best: Solution, starts: Sequence[tuple[tuple[Any, ...], Floats]]
    ) -> list[Solution]:
        """The solutions with the other start's register and the best's other choices."""
        keys = list(self.fixed)
        if REGISTER not in keys:
            return []
        at = keys.index(REGISTER)
        tasks = [
            ((*best.choices[:at], choices[at], *best.choices[at + 1 :]), log_factors)
            for choices, log_factors in starts
            if choices[at] != best.choices[at]
        ]
        return self._solve_each(tasks, self.others, START_ROUNDS)

    def _bandwidths(self) -> list[Floats]:
        """Shifts of the factors that give the channels different bandwidths."""
        if CHANNEL not in self.keys:
            return [np.zeros(len(self.keys))]
        scale = self.space.scales[self.keys.index(CHANNEL)]
        low, high = np.log(scale.low) + 0.7, np.log(scale.high) - 0.3
        return [self._shift(CHANNEL, float(x)) for x in np.linspace(low, high, 3)]

    def _shift(self, key: str, amount: float) -> Floats:
        return np.where(np.array(self.keys) == key, amount, 0.0)

    def _exchange_limits(self, best: Solution) -> list[Solution]:
        """Solutions where something else limits the fastest rates.

        These are the channels if the link did, or the other way, and the controller's time for a
        command. All explain the rate, and there is no way downhill from one to the other.
        """
        ranked = self._solve_each(self._other_limits(best), self.others, 1)
        ranked.sort(key=lambda one: one.cost)
        tasks = [(one.choices, one.log_factors) for one in ranked[:EXCHANGES]]
        return self._solve_each(tasks, self.others, START_ROUNDS)

    def _other_limits(self, best: Solution) -> list[tuple[tuple[Any, ...], Floats]]:
        tasks = [
            (best.choices, best.log_factors + self._shift(key, amount))
            for key in COMMANDS
            if key in self.keys
            for amount in (float(np.log(SLOWER)), -float(np.log(SLOWER)))
        ]
        if LINK not in self.keys or CHANNEL not in self.keys:
            return tasks
        link, channel = (
            self.space.scales[at].mean(self.task.profile) * np.exp(best.log_factors[at])
            for at in (self.keys.index(LINK), self.keys.index(CHANNEL))
        )
        at = list(self.fixed).index(CHANNELS) if CHANNELS in self.fixed else None
        for choices in [best.choices, *self._alternatives(best, [CHANNELS])]:
            count = get_value(self.task.profile, CHANNELS) if at is None else choices[at]
            ratio = float(np.log(count * channel / link))
            for key, other, amount in ((LINK, CHANNEL, ratio), (CHANNEL, LINK, -ratio)):
                moved = self._shift(key, amount) + self._shift(other, float(np.log(FASTER)))
                tasks.append((choices, best.log_factors + moved))
        return tasks

    def _alternatives(self, best: Solution, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        """The combinations that differ from the best in one of these choices."""
        by_key = dict(zip(self.fixed, best.choices, strict=True))
        return [
            choices
            for key in keys
            for choices, _ in self.space.combinations([key], by_key)
            if choices != best.choices
        ]

    def _step_each(self, best: Solution, keys: Sequence[str]) -> list[Solution]:
        """Solves the alternatives in one of these choices roughly, with the best's derivatives.

        Another number of channels is tried with the same bandwidth of each, and of all together.
        """
        fixed, scales = list(self.fixed), self.keys
        tasks = []
        for choices in self._alternatives(best, keys):
            moved = self._moved(best, choices)
            tasks.append((choices, moved))
            if CHANNELS in fixed and CHANNEL in scales:
                was, now = (one[fixed.index(CHANNELS)] for one in (best.choices, choices))
                shifted = moved + self._shift(CHANNEL, float(np.log(was / now)))
                tasks += [(choices, shifted)] if was != now else []
        return self._solve_each(tasks, self.others, STEPS, jacobian=best.jacobian)

    def _polished(self, best: Solution, tried: list[Solution]) -> list[Solution]:
        """The best after more iterations, and the others within the interval.

        Those were solved roughly: their costs are too high rather than too low.
        """
        [best] = self._solve_each([(best.choices, best.log_factors)], self.others, START_ROUNDS)
        limit = best.cost + drop_of(best)
        near = [one for one in tried if one.cost <= limit and self._is_other(one, best)]
        near.sort(key=lambda one: one.cost)
        by_choices = {one.choices: one for one in reversed(near)}
        near = sorted(by_choices.values(), key=lambda one: one.cost)
        return [best, *(replace(one, sigma=best.sigma) for one in near)]

    def _is_other(self, one: Solution, best: Solution) -> bool:
        """Whether it has other choices, or something else limits the fastest rates."""
        moved = np.abs(one.log_factors - best.log_factors) > APART
        return one.choices != best.choices or bool(moved[np.isin(self.keys, LIMITS)].any())

    def _moved(self, best: Solution, choices: tuple[Any, ...]) -> Floats:
        """The factors of the best, with programs as long as the new page requires."""
        log_factors = best.log_factors.copy()
        keys = list(self.fixed)
        if PAGE in self.fixed:
            was, now = (parse_size(one[keys.index(PAGE)]) for one in (best.choices, choices))
            for n, scale in enumerate(self.space.scales):
                if scale.key in BY_PAGE:
                    log_factors[n] += np.log(now / was)
        return log_factors

    def _rank_inner(self, best: Solution) -> list[Solution]:
        """The combinations of the choices of an ageing row that fit it, best first.

        The cost of each is that above the best.
        """
        by_key = dict(zip(self.fixed, best.choices, strict=True))
        objectives = [one for one in self.task.objectives if one.experiment == "aging"]
        tasks = [
            (choices, best.log_factors) for choices, _ in self.space.combinations(OF_ROW, by_key)
        ]
        ranked = self._solve_each(tasks, objectives, 1, Effort.ROUGH)
        if not ranked:
            return [best]
        ranked.sort(key=lambda one: one.cost)
        drop = drop_of(best)
        least = ranked[0].cost
        return [replace(one, cost=one.cost - least) for one in ranked if one.cost <= least + drop]

    def _with_inner(self, outer: Solution, inner: Solution) -> tuple[Any, ...]:
        pairs = zip(self.fixed, outer.choices, inner.choices, strict=True)
        return tuple(new if key in OF_ROW else old for key, old, new in pairs)

    def _solve_each(
        self,
        tasks: Sequence[tuple[tuple[Any, ...], Floats]],
        objectives: Sequence[Objective],
        rounds: int,
        effort: Effort = Effort.FINE,
        jacobian: Floats | None = None,
    ) -> list[Solution]:
        """Solves each combination from its start values; those that give no twin are left out."""
        penalties = dict(self.space.combinations(list(self.fixed), self.fixed))
        shared = replace(self.task, objectives=objectives, rounds=rounds, effort=effort)
        shared = replace(shared, jacobian=jacobian)
        full = [
            replace(
                shared,
                start=Solution(choices, start, start * 0.0, 0.0),
                penalty=penalties[choices],
            )
            for choices, start in tasks
        ]

        def report(done: int) -> None:
            self.progress(self.done + done, self.done + max(len(full), done) + 1)

        solutions = solve_all(full, report)
        self.done += len(full)
        return solutions

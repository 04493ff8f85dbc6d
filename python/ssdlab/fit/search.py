"""The search: fits the factors by least squares for the promising combinations of choices.

The cost of a candidate is the sum of squares of log(twin / drive), in standard deviations, plus the
prior's penalty (`parameters`). The choices that all results depend on are varied one after the
other, from the best combination so far, until none improves it. Cache registers and the kind of SLC
cache change what all other numbers mean, so each combination of these is searched side by side. The
choices that only an ageing row depends on are all tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ssdlab.errors import UsageError
from ssdlab.fit.direct_estimates import SLC
from ssdlab.fit.intervals import POOR_FIT, drop_of, measured_reach, possible
from ssdlab.fit.neighbours import Neighbours, best_by
from ssdlab.fit.objective import Effort, Objective
from ssdlab.fit.parameters import (
    CHANNELS,
    CHUNK,
    DELAY_LIMIT,
    DIES_PER_CHANNEL,
    PAGE,
    PROTECTED,
    REGISTER,
    TYPES,
    SearchSpace,
)
from ssdlab.fit.solving import Progress, Solution, Solver, Start, Task
from ssdlab.fit.variables import FOLDING, MODE
from ssdlab.profiles.toml_edit import values_only

ROUGH_ROUNDS: Final = 2
FINE_ROUNDS: Final = 6
"""Least-squares iterations: rough for all combinations, fine for the promising ones."""
OF_ROW: Final = ("ftl.read_portion", "ftl.read_portions")
"""Choices that only an ageing row depends on."""
AT_STARTS: Final = (DELAY_LIMIT,)
"""Choices that are tried only at the starts of a search: few drives have them, and on the way they
can make up for the errors of others."""
FOR_GRID: Final = ("split",)
"""Experiments that rank a grid of combinations: they depend on dies, channels and pages."""
SHOW_DIES: Final = ("split", "stripe")
"""Experiments that rank dies, channels and pages after the grid."""
SUSPEND: Final = "flash.suspend"
RULES: Final = (MODE, "ftl.mapping_unit", SUSPEND, PROTECTED)
"""Choices that the grid does not show, and that all other numbers depend on."""
NOT_IN_GRID: Final = (
    *RULES,
    FOLDING,
    CHUNK,
    SLC,
    "link.max_transfer",
    "flash.keeps_page",
    "ftl.read_ahead",
    TYPES,
    "slc.bits_per_cell",
)
BRANCHING: Final = (REGISTER, MODE)
"""Choices that change what all other numbers mean. Each combination is a branch of the search, in
which these are varied before the branches compare."""
GEOMETRY: Final = (*BRANCHING, CHANNELS, DIES_PER_CHANNEL)
"""Each combination of these is solved, with the page that is best at the first guess."""
VARIED: Final = 4
"""How many of the best combinations of a grid are solved with other pages, dies and chunks, too."""
MORE_STARTS: Final = 6
"""Best combinations with unlike numbers of channels from which the search starts, too."""
EXCHANGES: Final = 5
"""How many combinations are solved in which something else is the limit."""
START_ROUNDS: Final = 3
SWEEP_ROUNDS: Final = 2
"""Derivatives of a solution to start with, and of one that a sweep tries."""
STEPS: Final = 2
"""Rough steps for a combination, with the derivatives of another."""
SOLVED: Final = 2
"""How many candidates are solved for the cost that a step may reach, at most."""
PAIRED: Final = 2
"""How many changes of each choice are combined with those of another."""
SOLVED_PAIRS: Final = 6
"""How many of these combinations are solved, at most."""
STEPPED: Final = 8
"""How many candidates take these steps, of those that are ranked."""
BETTER: Final = 0.1
"""What a candidate must save of the cost to be solved."""
RESTARTS: Final = 3
"""The most times that the search for reaches finds a better point."""
HOPELESS: Final = 5.0
"""A search goes on only if its cost is below this times that of another search."""
SWEEPS_MAX: Final = 10
"""The most times that the choices of all branches are varied."""
PROMISING_COST: Final = 12.0
"""Combinations within this cost of the best are refined."""


def search(
    profile: str,
    objectives: Sequence[Objective],
    space: SearchSpace,
    progress: Progress,
    rival: float = np.inf,
) -> list[Solution]:
    """Solutions whose choices are about as good as the best combination, sorted by cost.

    `rival` is the cost of the best of another search; this one ends early if single changes do not
    come below `HOPELESS` times that.

    Raises:
        UsageError: no combination gives a valid twin.
    """
    limit = HOPELESS * max(rival, PROMISING_COST)
    solutions = _Search(profile, objectives, space, progress, limit).run()
    if not solutions:
        raise UsageError(
            "no candidate is a valid twin; run `ssdlab twin check` on the start profile"
        )
    # Those that were solved roughly, with the derivatives of another, do not know theirs.
    excess = max(one.excess for one in solutions)
    solutions = [replace(one, excess=excess) for one in solutions]
    return sorted(solutions, key=lambda solution: solution.cost)


class _Search:
    """One search: its candidates so far, and its progress.

    It ends early where single changes reach no cost below `limit`.
    """

    def __init__(
        self,
        profile: str,
        objectives: Sequence[Objective],
        space: SearchSpace,
        progress: Progress,
        limit: float,
    ) -> None:
        self.space, self.limit = space, limit
        self.solved = set[tuple[Any, ...]]()
        self.swept = set[Solution]()
        zeros = np.zeros(len(space.scales))
        self.fixed = {choice.key: choice.value_in(profile) for choice in space.choices}
        self.outer = [key for key in self.fixed if key not in (*OF_ROW, *AT_STARTS)]
        start = Solution(tuple(self.fixed.values()), zeros, zeros, np.inf)
        bare = values_only(profile)
        self.task = Task(bare, objectives, space, start, 0.0, FINE_ROUNDS, Effort.FINE)
        self.solve = Solver(self.task, progress).solve
        self.neighbours = Neighbours(bare, space, self.fixed)
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
            [better] = self.solve([task], self.task.objectives, FINE_ROUNDS) or [best]
            # The others keep their distance: they stopped at the same place.
            moved = better.cost - best.cost
            others = [
                replace(one, cost=one.cost + moved, excess=better.excess) for one in solutions
            ]
            solutions = [better, *others]
        return solutions

    def _task_of(self, best: Solution) -> Task:
        return replace(self.task, start=best, penalty=self.space.penalty(best.choices))

    def _combinations(self) -> list[Solution]:
        if not self.others and self.task.objectives:
            return self._run_row()
        near = self._near()
        if not near or len(self.others) == len(self.task.objectives):
            return near
        inner = self._rank_inner(near[0])
        task = (self._with_inner(near[0], inner[0]), near[0].log_factors)
        refined = self.solve([task], self.task.objectives, START_ROUNDS)
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
        tasks = [(choices, zeros) for choices in self.space.combinations(keys, self.fixed)]
        rough = self.solve(tasks, self.task.objectives, ROUGH_ROUNDS, Effort.ROUGH)
        rough.sort(key=lambda solution: solution.cost)
        if not rough:
            return []
        limit = rough[0].cost + PROMISING_COST
        tasks = [(one.choices, one.log_factors) for one in rough if one.cost <= limit]
        refined = self.solve(tasks, self.task.objectives, FINE_ROUNDS)
        best = min(refined, key=lambda solution: solution.cost)
        if PAGE in self.fixed:
            tasks = self.neighbours.steps(best, [PAGE])
            refined += self.solve(tasks, self.task.objectives, FINE_ROUNDS)
        return refined

    def _near(self) -> list[Solution]:
        """The best solution for the results other than ageing, and those hardly worse.

        In each branch, single choices are changed for as long as that helps.
        """
        starts = self.solve(self._starts(), self.others, START_ROUNDS)
        branches = best_by(starts, self._places(BRANCHING))
        if not branches:
            return []
        solved, tried = list(branches), list[Solution]()
        exchanged: set[tuple[Any, ...]] = set()
        for _ in range(SWEEPS_MAX):
            found: list[Solution] = []
            for branch in branches:
                near, better = self._sweep(branch, branches)
                tried += near
                found += better
            if not found:
                best = min(branches, key=lambda one: one.cost)
                if best.cost > self.limit:
                    return [best]
                if best.choices in exchanged:
                    break
                exchanged.add(best.choices)
                found = [*self._exchange_limits(best), *self._pairs(best), *self._other_sizes(best)]
            solved += found
            last, branches = branches, best_by([*branches, *found], self._places(BRANCHING))
            if branches == last:
                break
        return self._polished(branches[0], [*solved, *tried])

    def _sweep(
        self, branch: Solution, branches: Sequence[Solution]
    ) -> tuple[list[Solution], list[Solution]]:
        """The alternatives in one choice, solved roughly, and those that are better.

        All are ranked by the cost that a step may reach with the derivatives of the branch. What
        the other branches have found is tried, too.
        """
        keys = [key for key in self.outer if key not in BRANCHING]
        tasks = [] if branch in self.swept else self.neighbours.steps(branch, keys)
        self.swept.add(branch)
        others = [one for one in branches if one is not branch]
        tasks += [self.neighbours.with_choices(one, BRANCHING, branch) for one in others]
        ranked = self._ranked(branch, tasks)
        again = [(one.choices, one.log_factors) for one in ranked[:STEPPED]]
        tried = self.solve(again, self.others, STEPS, jacobian=branch.jacobian)
        # Its derivatives may mislead steps to other choices, so that the most promising are solved.
        first = min(tried, key=lambda one: one.cost, default=branch)
        solved = self._solve_new([first, *ranked[:SOLVED]], branch.cost - BETTER)
        return [*tried, *solved], [one for one in solved if one.cost < branch.cost]

    def _ranked(self, branch: Solution, tasks: Sequence[Start]) -> list[Solution]:
        """The candidates, by the cost that a small step may reach."""
        ranked = self.solve(tasks, self.others, 0, jacobian=branch.jacobian)
        return sorted(ranked, key=lambda one: one.cost)

    def _solve_new(self, candidates: Sequence[Solution], limit: float) -> list[Solution]:
        """Solves those with a cost below the limit, unless their choices were solved before."""
        new = {
            one.choices: (one.choices, one.log_factors)
            for one in reversed(candidates)
            if one.cost < limit and one.choices not in self.solved
        }
        self.solved |= new.keys()
        return self.solve(list(new.values()), self.others, SWEEP_ROUNDS)

    def _pairs(self, best: Solution) -> list[Solution]:
        """The most promising changes of two choices at once, solved.

        Some numbers compensate each other: with a larger page and other channels, for example, the
        results may be the same.
        """
        singles = [
            one
            for key in self.outer
            for one in self._ranked(best, self.neighbours.steps(best, [key]))[:PAIRED]
        ]
        pairs = self._ranked(best, self.neighbours.pairs(best, singles))
        return self._solve_new(pairs[:SOLVED_PAIRS], best.cost + drop_of(best))

    def _places(self, keys: Collection[str]) -> list[int]:
        """The places of the choices of these keys."""
        return [at for at, key in enumerate(self.fixed) if key in keys]

    def _starts(self) -> list[Start]:
        """Start values of each branch, with the rules that explain all results best.

        Which kind of SLC cache explains them depends on its size, so the kinds are tried with the
        smallest and the largest, too.
        """
        found: list[Start] = []
        sizes = next((choice.values for choice in self.space.choices if choice.key == SLC), ())
        extremes = [{SLC: size} for size in (*sizes[:1], *sizes[-1:])]
        for each, log_factors in self._grid():
            start = replace(self.task.start, choices=each, log_factors=log_factors)
            tried = self._combined(self._combined(start, RULES)[0], (MODE, FOLDING), extremes)
            for best in best_by(tried, self._places([MODE])):
                limited = self._combined(best, (SUSPEND, *AT_STARTS))[0]
                unlike = dict.fromkeys((best.choices, limited.choices))
                found += [(choices, log_factors) for choices in unlike]
        return found

    def _combined(
        self, best: Solution, keys: Collection[str], changes: Sequence[Mapping[str, Any]] = ()
    ) -> list[Solution]:
        """The best and all other combinations of these choices, the cheapest first."""
        tasks = self.neighbours.combined(best, keys, changes)
        solved = self.solve(tasks, self.others, 1) if len(tasks) > 1 else []
        return sorted([best, *solved], key=lambda one: one.cost)

    def _grid(self) -> list[Start]:
        """The combinations that explain `split` and `stripe` best, with unlike channels.

        Channels and their bandwidth are varied together, because they compensate each other. With
        and without a cache register all other numbers differ, so there is one of each.
        """
        start = (self.task.start.choices, self.task.start.log_factors)
        objectives = [one for one in self.others if one.experiment in FOR_GRID]
        keys = [key for key in self.outer if key not in NOT_IN_GRID]
        if not objectives or not keys:
            return [start]
        tasks = [
            (choices, self.neighbours.moved(self.task.start, choices) + moved)
            for choices in self.space.combinations(keys, self.fixed)
            for moved in self.neighbours.bandwidths(choices)
        ]
        ranked = self.solve(tasks, objectives, 1)
        solved = self._solve_grid(best_by(ranked, self._places(GEOMETRY)))
        best = best_by(solved, self._places(BRANCHING))
        more = best_by(solved, self._places((*BRANCHING, CHANNELS)))
        best += [one for one in more[:MORE_STARTS] if one not in best]
        return [(one.choices, one.log_factors) for one in best] or [start]

    def _solve_grid(self, grid: Sequence[Solution]) -> list[Solution]:
        """The combinations of a grid with the best factors, and others near those that are best.

        The first guess ranks them poorly: a wrong time or bandwidth outweighs the dies and pages.
        """
        objectives = [one for one in self.others if one.experiment in SHOW_DIES]
        tasks = [(one.choices, one.log_factors) for one in grid]
        solved = self.solve(tasks, objectives, SWEEP_ROUNDS)
        solved.sort(key=lambda one: one.cost)
        near = [
            step
            for one in solved[:VARIED]
            for step in self.neighbours.steps(one, [PAGE, DIES_PER_CHANNEL, CHUNK])
        ]
        return solved + self.solve(near, objectives, SWEEP_ROUNDS)

    def _exchange_limits(self, best: Solution) -> list[Solution]:
        """The best solutions where something else limits the fastest rates."""
        ranked = self.solve(self.neighbours.other_limits(best), self.others, 1)
        ranked.sort(key=lambda one: one.cost)
        tasks = [(one.choices, one.log_factors) for one in ranked[:EXCHANGES]]
        return self.solve(tasks, self.others, SWEEP_ROUNDS)

    def _other_sizes(self, best: Solution) -> list[Solution]:
        """The best solution for each other page, and chunk if that is not known.

        Their factors differ too much from those of the best for rough steps.
        """
        tasks = self.neighbours.steps(best, [PAGE, CHUNK])
        return self.solve(tasks, self.others, START_ROUNDS)

    def _polished(self, best: Solution, tried: list[Solution]) -> list[Solution]:
        """The best after more iterations, and the others that the results do not exclude.

        Those were solved roughly: their costs are too high rather than too low.
        """
        [best] = self.solve([(best.choices, best.log_factors)], self.others, START_ROUNDS)
        steps = self.neighbours.steps(best, [*self.outer, *AT_STARTS])
        tried = [*tried, *self.solve(steps, self.others, STEPS, jacobian=best.jacobian)]
        near = possible(self.space, best, tried)
        near = [one for one in near if self.neighbours.is_other(one, best)]
        unlike = best_by(near, range(len(self.fixed)))
        return [best, *(replace(one, sigma=best.sigma) for one in unlike)]

    def _rank_inner(self, best: Solution) -> list[Solution]:
        """The combinations of the choices of an ageing row that fit it, best first.

        The cost of each is that above the best.
        """
        by_key = dict(zip(self.fixed, best.choices, strict=True))
        objectives = [one for one in self.task.objectives if one.experiment == "aging"]
        tasks = [(choices, best.log_factors) for choices in self.space.combinations(OF_ROW, by_key)]
        ranked = self.solve(tasks, objectives, 1, Effort.ROUGH)
        if not ranked:
            return [best]
        ranked.sort(key=lambda one: one.cost)
        drop = drop_of(best)
        least = ranked[0].cost
        return [replace(one, cost=one.cost - least) for one in ranked if one.cost <= least + drop]

    def _with_inner(self, outer: Solution, inner: Solution) -> tuple[Any, ...]:
        pairs = zip(self.fixed, outer.choices, inner.choices, strict=True)
        return tuple(new if key in OF_ROW else old for key, old, new in pairs)

"""The steps of the search of ``minimize(method="auto")``, and which of them pays, learnt from the run.

A step sweeps wide trees, or jumps, sweeps and takes the components that do not raise the energy. Wide trees find what
narrow ones cannot, and cost more. A step is first tried when it takes a small share of the work done so far; then it is
used the more often the more energy it has lately won per unit of work.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from treefield.moves.accept import PerComponent
from treefield.moves.balls import BallJump
from treefield.moves.boxes import BoxJump
from treefield.moves.common import ACCEPT_WORK, own_work, restore, state_of
from treefield.moves.mixed import MixedJump
from treefield.protocols import Jump, Learns, Model, TreeSet, WideTrees
from treefield.validation import as_count, as_fields, as_non_negative

_MEMORY = 0.1  # of the work so far: what a step has won counts by e^-1 less after so much more work by it
_FLOOR = 0.1  # the share of the work that is spread evenly over all steps
_NOTHING = 1e-200  # a rate below is that of steps that have long won nothing
_JUMPS_FROM = 50  # states: narrower trees do not mend what large jumps destroy
_LARGEST_WORK = 3e9  # of a step: about two seconds, so that limits and interrupts are kept
_SWEEPS = 2  # after a jump
_RESTART_SWEEPS = 4  # after a jump to random labels
_TRIAL_SHARE = 0.3  # of the work so far: a step that takes more is not tried yet
_WIDE_SHARE = 0.25  # of the work, for wide trees while the dual is at work


class Step:
    """One way to improve a labelling. Its trees are prepared when it is first used."""

    def __init__(
        self, mrf: Model, prepare: Callable[[], TreeSet], sweep_work: float, jump: Jump | None = None, sweeps: int = 1
    ) -> None:
        self._mrf, self._prepare, self._sweep_work, self._sweeps = mrf, prepare, sweep_work, sweeps
        self.jump = jump
        self._accept = PerComponent()
        self._trees: TreeSet | None = None

    @property
    def work(self) -> float:
        """The work of the last use, or about that of the first, in sites x labels."""
        if self.jump is None:
            return self._sweep_work
        return own_work(self.jump, self._mrf) + self._sweeps * self._sweep_work + ACCEPT_WORK * self._mrf.size

    def take(self, x: np.ndarray, rng: np.random.Generator, *, reverse: bool, has_all_cores: bool) -> float:
        """Improve `x` in place; returns the change of energy, never positive."""
        if self._trees is None:
            self._trees = self._prepare()
        self._trees.has_all_cores = has_all_cores
        if self.jump is None:
            return self._trees.sweep(x, rng, reverse=reverse)
        y = self.jump(x, self._mrf, rng)
        for _ in range(self._sweeps):
            self._trees.sweep(y, rng, reverse=reverse)
        return self._accept(self._mrf, x, y, rng) or 0.0


def _scramble(mrf: Model) -> Jump:
    """Random labels in large regions."""
    if mrf.backend.boxes is not None:
        return BoxJump("scramble", size=(8, 32), density=1.0)
    return BallJump("scramble", size=(64, 1024), density=1.0)


def _restart(x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
    """A jump to random labels: what is better there is merged, component by component."""
    return mrf.backend.random_labels(rng)


def choose_wide_trees(mrf: Model, room: float, threads: int) -> list[tuple[WideTrees, int]]:
    """The wide trees whose workspaces fit into `room` bytes, the narrowest first, and how many threads fit for each.

    Which they are does not depend on the number of threads.
    """
    chosen = []
    for wide in mrf.backend.wider_trees:
        if wide.bytes > room:
            break
        chosen.append(wide)
        room -= wide.bytes
    found = []
    for wide in chosen:
        more = min(threads - 1, int(min(room / wide.bytes, threads)))
        room -= more * wide.bytes
        found.append((wide, 1 + more))
    return found


def usual_steps(
    mrf: Model, trees: TreeSet, wide_trees: list[tuple[WideTrees, int]], *, spares_memory: bool
) -> list[Step]:
    """Mixed jumps with the usual trees, then all that the wide trees can do, the cheapest first."""
    steps = []
    for wide, threads in wide_trees:
        memory = wide.memory if spares_memory else "auto"
        prepare = functools.cache(
            functools.partial(mrf.backend.tree_set, wide.trees, width=wide.width, memory=memory, threads=threads)
        )
        steps.append(Step(mrf, prepare, wide.work))
        if wide.states >= _JUMPS_FROM:
            steps.append(Step(mrf, prepare, wide.work, _scramble(mrf), _SWEEPS))
            steps.append(Step(mrf, prepare, wide.work, _restart, _RESTART_SWEEPS))
    steps = sorted((step for step in steps if step.work <= _LARGEST_WORK), key=lambda step: step.work)
    return [Step(mrf, lambda: trees, mrf.backend.sweep_work, MixedJump()), *steps]


class Steps:
    """The steps, what each has lately won and spent, and the work of the search so far.

    While the dual is at work, `is_shared`, steps of wide trees take a quarter of all work at most, so that rounds stay
    short.
    """

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.won, self.spent = np.zeros(len(steps)), np.zeros(len(steps))
        self.uses = np.zeros(len(steps), np.int64)
        self.total = self.wide = 0.0  # the work of the whole search, and of steps of wide trees

    @property
    def all_tried(self) -> bool:
        """Whether every step has been taken."""
        return bool(self.uses.min() > 0)

    def choose(self, rng: np.random.Generator, *, is_shared: bool, most_work: float) -> int:
        """The number of the step to take next; none of wide trees that takes more than `most_work`."""
        if len(self.steps) == 1 or (is_shared and self.wide > _WIDE_SHARE * self.total):
            return 0
        works = np.array([step.work for step in self.steps])
        new = np.flatnonzero((self.uses == 0) & (works <= min(_TRIAL_SHARE * self.total, most_work)))
        if len(new):
            return int(new[0])
        possible = (self.uses > 0) & (works <= most_work)
        possible[0] = True
        odds = possible / works
        odds /= odds.sum()
        rates = np.where(possible, self.won / np.maximum(self.spent, 1.0), 0.0)
        if rates.max() >= _NOTHING:
            wins = (rates / rates.max()) ** 2
            odds = _FLOOR * odds + (1 - _FLOOR) * wins / wins.sum()
        return int(rng.choice(len(odds), p=odds / odds.sum()))

    def learn(self, number: int, won: float) -> None:
        """Note the energy that a step has won."""
        step = self.steps[number]
        work = step.work
        kept = math.exp(-work / max(_MEMORY * self.total, work))
        self.won[number] = kept * self.won[number] + won
        self.spent[number] = kept * self.spent[number] + work
        self.uses[number] += 1
        self.total += work
        if number > 0:
            self.wide += work
        if isinstance(step.jump, Learns):
            step.jump.learn(won, work)

    def get_state(self) -> dict[str, object]:
        """What a checkpoint keeps."""
        learnt = {name: getattr(self, name).tolist() for name in ("won", "spent", "uses")}
        jumps = [state_of(step.jump) for step in self.steps]
        return learnt | {"total": self.total, "wide": self.wide, "jumps": jumps}

    def set_state(self, state: object) -> None:
        """Restore a state that `get_state` returned; raise an error for any other."""
        names = "won", "spent", "uses", "jumps", "total", "wide"
        *lists, total, wide = as_fields(state, "the state of the steps", *names)
        for name, values in zip(names, lists, strict=False):
            if not isinstance(values, list) or len(values) != len(self.steps):
                raise ValueError(f"{name} must be a list of {len(self.steps)} values, one for each step")
        won, spent, uses, jumps = lists
        self.won, self.spent = (
            np.array([as_non_negative(v, "won and spent") for v in values]) for values in (won, spent)
        )
        self.uses = np.array([as_count(value, "uses") for value in uses], np.int64)
        self.total, self.wide = as_non_negative(total, "total"), as_non_negative(wide, "wide")
        for step, jump_state in zip(self.steps, jumps, strict=True):
            restore(step.jump, jump_state)

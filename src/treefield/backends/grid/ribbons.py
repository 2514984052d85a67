"""Ribbons of a grid: several adjacent lines solved exactly together, with borders that move from sweep to sweep."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.ribbon_layouts import Bar, Layout, lay_out
from treefield.backends.grid.schedules import LANES, cross_shape
from treefield.backends.threads import Workers, share_of
from treefield.protocols import WideTrees
from treefield.validation import as_count, as_flat_labels

if TYPE_CHECKING:
    from treefield.kernels.grid.profiles import Profile
    from treefield.kernels.grid.ribbon_costs import Labels
    from treefield.kernels.rules.rule import Rule

_USUAL_STATES = 256  # of a ribbon whose width is not given
_SEARCH_STATES = 2.0**4, 2.0**6, 2.0**8, 2.0**10, 2.0**12, 2.0**14  # of the ribbons that a search tries
_MOST_LABELS = 8  # where a search tries ribbons at all: beyond, lines and the dual do better
_MOST_BYTES = 2**30  # of one thread's workspace
_FEW_BYTES = {"auto": 2**26, "low": 2**21}  # a workspace that needs more is split into segments
_KEPT_LINES = 2**16  # in all layouts that are kept
_LINE_BYTES = 40  # of a line in a layout, for each direction
_SERIAL_BELOW = 500_000  # sites x states of a sweep: with less, threads cost more than they bring


def usual_width(costs: GridCosts, states: float = _USUAL_STATES) -> int:
    """The largest width whose ribbons have at most so many states, at least 1."""
    extra = costs.lattice.connectivity - 1
    if costs.n_labels == 1:
        return 1
    width = int(math.log(states) / math.log(costs.n_labels) + 1e-9) - extra
    return max(1, min(width, widest_ribbon(costs)))


def search_widths(costs: GridCosts) -> list[WideTrees]:
    """The ribbons that a search should try."""
    if not 2 <= costs.n_labels <= _MOST_LABELS:
        return []
    widths = sorted({usual_width(costs, states) for states in _SEARCH_STATES} - {1})
    fitting = [width for width in widths if profile_bytes(costs, width) <= _MOST_BYTES]
    found = {float(costs.n_labels) ** _largest_queue(costs, width): width for width in fitting}
    return [
        WideTrees("ribbons", width, states, _sweep_work(costs, width), "low", _set_bytes(costs, width))
        for states, width in found.items()
    ]


def _set_bytes(costs: GridCosts, width: int) -> int:
    """The memory of a tree set, with one thread and little of it, roughly."""
    lines = sum(costs.size // n for n in costs.shape)
    layouts = 2 * lines + min(width * lines, _KEPT_LINES)
    return profile_bytes(costs, width, "low") + layouts * _LINE_BYTES * (2 * len(costs.lattice.steps) + 1)


def _largest_queue(costs: GridCosts, width: int) -> int:
    """How many sites a profile holds, at most."""
    return max(Bar(costs, axis, width).queue for axis in range(len(costs.shape)))


def _sweep_work(costs: GridCosts, width: int) -> float:
    """The work of a sweep, in sites x labels: measured, relative to a sweep over lines."""
    site, state = (6.6, 0.1) if costs.n_labels == 2 else (12.0, 0.6)
    axes = len(costs.shape)
    return costs.size * sum(
        site + state * float(costs.n_labels) ** Bar(costs, axis, width).queue for axis in range(axes)
    )


def as_width(costs: GridCosts, width: int | None, memory: str) -> int:
    """A width that fits into the grid and into memory, or an error that names the largest that does."""
    if width is None:
        return usual_width(costs)
    width = as_count(width, "width", 1)
    widest = widest_ribbon(costs)
    if width > widest:
        raise ValueError(
            f"width={width} is wider than a grid of {' x '.join(map(str, costs.shape))} sites; "
            f"the largest width that fits is {widest}"
        )
    fits = width
    while fits > 1 and profile_bytes(costs, fits, memory) > _MOST_BYTES:
        fits -= 1
    if fits < width:
        states = f"{costs.n_labels}**{_largest_queue(costs, width)}"
        raise ValueError(
            f"width={width} needs {states} states at each of its steps, more than {_MOST_BYTES >> 20} MB; the largest "
            f"width that fits is {fits}"
        )
    return width


def profile_bytes(costs: GridCosts, width: int, memory: str = "auto") -> int:
    """The memory of one thread's workspace for ribbons of that width, at most."""
    return sum(_workspace_bytes(costs, Bar(costs, axis, width), memory) for axis in range(len(costs.shape)))


def widest_ribbon(costs: GridCosts) -> int:
    """The largest width of a ribbon along any axis. Across a periodic axis one line is left out."""
    return max(
        math.prod(n - ring for n, ring in zip(cross_shape(costs.shape, a), cross_shape(costs.periodic, a), strict=True))
        for a in range(len(costs.shape))
    )


class Turn(NamedTuple):
    """The ribbons along one axis, and in which phases a sweep solves them. Closed lines begin at `start`."""

    bar: Bar
    layout: Layout
    start: int
    phases: list[np.ndarray]


class RibbonSet:
    """Ribbons along every axis, every second one at once, then the others.

    For every sweep their borders are drawn afresh, and on closed lines the column that keeps its labels. Without a
    generator they stay where they are. The costs are read where they lie: beyond them there is the workspace of each
    thread.
    """

    def __init__(
        self, costs: GridCosts, width: int | None, *, order: str = "fixed", memory: str = "auto", threads: int = 1
    ) -> None:
        self.width = as_width(costs, width, memory)
        self.order, self.costs = order, costs
        self.has_all_cores = True
        bars = [Bar(costs, axis, self.width) for axis in range(len(costs.shape) - 1, -1, -1)]
        whole = [bar for bar in bars if bar.is_whole and not costs.periodic[bar.axis]]
        self._bars = whole[:1] or bars  # if one ribbon is the whole grid there is nothing else to solve
        self.patience = 1 if whole else max(max(bar.sizes) for bar in bars)
        states = float(costs.n_labels) ** max(bar.queue for bar in self._bars)
        self._workers = Workers(threads if costs.size * states >= _SERIAL_BELOW else 1)
        self._memory = memory
        self._workspaces: dict[tuple[int, int], tuple[Rule, Profile, Labels]] = {}
        self._layouts: dict[tuple[int, tuple[int, ...]], Layout] = {}
        self._load()

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every ribbon once, in place on an int32 labelling; returns the energy change.

        With `check` it is never positive. With `reverse` the ribbons along each axis that came last come first.
        """
        flat = as_flat_labels(x, self.costs)
        random = rng if self.order == "random" else None
        turns = []
        for i in range(len(self._bars)) if random is None else random.permutation(len(self._bars)):
            bar = self._bars[i]
            layout, start = self._layout(bar, self._offsets(bar, rng)), 0
            if rng is not None and self.costs.periodic[bar.axis]:
                start = int(rng.integers(bar.length))
            phases = layout.phases[:: -1 if reverse else 1]
            if random is not None:
                phases = [phases[k] for k in random.permutation(len(phases))]
            turns.append(Turn(bar, layout, start, phases))
        return self._solve(flat, turns, check)

    def _offsets(self, bar: Bar, rng: np.random.Generator | None) -> tuple[int, ...]:
        """Where the first ribbon ends, across each axis."""
        if rng is None:
            return bar.sizes
        free = [n != size for n, size in zip(bar.shape, bar.sizes, strict=True)]
        limits = [
            (n if ring else size) if moves else 1
            for n, size, ring, moves in zip(bar.shape, bar.sizes, bar.periodic, free, strict=True)
        ]
        drawn = rng.integers(1, np.array(limits) + 1)
        return tuple(int(d) if moves else size for d, size, moves in zip(drawn, bar.sizes, free, strict=True))

    def _solve(self, flat: np.ndarray, turns: list[Turn], check: bool) -> float:
        """Solve the ribbons along one axis after the other; returns the energy change."""
        from treefield.kernels.grid.ribbons import solve_ribbons

        counts = np.array([len(turn.phases) for turn in turns])
        arrivals = np.zeros(counts.sum() + 1, np.int64)
        firsts = np.cumsum(counts) - counts
        failed: list[int] = []  # threads that others would wait for in vain

        def solve(thread: int, threads: int) -> None:
            arrivals[0] = threads
            try:
                for turn, first in zip(turns, firsts.tolist(), strict=True):
                    rule, profile, labels = self._workspace(turn.bar, thread)
                    layout, ribbons = turn.layout, turn.layout.ribbons._replace(start=turn.start)
                    own = [share_of(groups, thread, threads) for groups in turn.phases]
                    groups, ends = np.concatenate(own), np.cumsum([len(part) for part in own])
                    work = layout.costs, layout.lines, rule, ribbons, profile, labels, check, layout.changes
                    phase = 0
                    while phase < len(own) and not failed:
                        phase = solve_ribbons(flat, groups, ends, phase, arrivals[first:], threads, *work)
                        if phase < len(own):
                            time.sleep(0)  # let the others work
            except BaseException:
                failed.append(thread)
                raise

        largest = max(len(groups) for turn in turns for groups in turn.phases)
        self._workers.run(solve, largest if self.has_all_cores else 1)
        return float(sum(turn.layout.changes.sum() for turn in turns))

    def _layout(self, bar: Bar, offsets: tuple[int, ...]) -> Layout:
        key = bar.axis, offsets
        if key not in self._layouts:
            if sum(len(layout.lines.sites) for layout in self._layouts.values()) > _KEPT_LINES:
                self._layouts.clear()
            self._layouts[key] = lay_out(self.costs, bar, offsets)
        return self._layouts[key]

    def _workspace(self, bar: Bar, thread: int) -> tuple[Rule, Profile, Labels]:
        """One thread's rule, which may hold a workspace, and its workspace for the ribbons along an axis."""
        key = bar.axis, thread
        if key not in self._workspaces:
            self._workspaces[key] = self.costs.rule(), *_new_workspace(self.costs, bar, self._memory)
        return self._workspaces[key]

    def _load(self) -> None:
        from treefield.kernels.simd.jit import as_compile_time

        with as_compile_time():
            bar = self._bars[0]
            turn = Turn(bar, self._layout(bar, bar.sizes), 0, [np.zeros(0, np.int64)])
            self._solve(np.zeros(0, np.int32), [turn], True)


def _stores_decisions(costs: GridCosts) -> bool:
    """Whether the kernel stores decisions, as bits; otherwise it stores the costs of all states."""
    from treefield.kernels.rules.rule import lane_rules

    return lane_rules[type(costs.rule())].label_count == 2


def _segment_steps(costs: GridCosts, bar: Bar, memory: str) -> int:
    """The steps of a segment: all if their workspace is small, else those that need the least memory in all."""
    states = costs.n_labels**bar.queue
    bytes_of_costs = states * LANES * costs.dtype.itemsize
    bytes_of_step = states if _stores_decisions(costs) else bytes_of_costs
    if bar.steps * bytes_of_step <= _FEW_BYTES[memory]:
        return bar.steps
    return min(bar.steps, math.ceil(math.sqrt(bar.steps * bytes_of_costs / bytes_of_step)))


def _pair_entries(costs: GridCosts, bar: Bar) -> int:
    """The entries of the tables of two diagonals together; those of one line are not used but for their first."""
    if costs.lattice.connectivity != 2:
        return 0
    return costs.n_labels**3 if bar.has_diagonals or costs.n_labels == 2 else costs.n_labels


def _workspace_bytes(costs: GridCosts, bar: Bar, memory: str) -> int:
    from treefield.kernels.grid.profiles import ROLES

    states, segment = costs.n_labels**bar.queue, _segment_steps(costs, bar, memory)
    bytes_of_costs = states * LANES * costs.dtype.itemsize
    kept = segment * (states if _stores_decisions(costs) else bytes_of_costs) + 3 * bytes_of_costs
    checkpoints = -(-bar.steps // segment) * bytes_of_costs if segment < bar.steps else 0
    tables = (ROLES * costs.n_labels**2 + _pair_entries(costs, bar)) * LANES * costs.dtype.itemsize
    return kept + checkpoints + tables + bar.steps * LANES * (8 * costs.n_labels + 64)


def _new_workspace(costs: GridCosts, bar: Bar, memory: str) -> tuple[Profile, Labels]:
    from treefield.kernels.grid.profiles import ROLES, Profile
    from treefield.kernels.grid.ribbon_costs import Labels
    from treefield.kernels.simd.arrays import aligned, zeros

    labels, dtype, segment = costs.n_labels, costs.dtype, _segment_steps(costs, bar, memory)
    states, kinds = labels**bar.queue, len(bar.sizes) + 1 + 2 * bar.has_diagonals
    places = 2 if _stores_decisions(costs) else segment + 1
    segments = -(-bar.steps // segment)
    profile = Profile(
        unary=aligned(bar.steps * labels * LANES, dtype),
        weights=zeros(bar.steps * kinds * LANES, dtype),
        costs=aligned(places * states * LANES, dtype),
        checkpoints=aligned(segments * states * LANES if segments > 1 else 0, dtype),
        segment=segment,
        decisions=aligned(segment * states if _stores_decisions(costs) else 0, np.uint8),
        tables=zeros(ROLES * labels * labels * LANES, dtype),
        pairs=zeros(_pair_entries(costs, bar) * LANES, dtype),
        base=aligned(labels * LANES, dtype),
        out=aligned(labels * LANES, dtype),
        states=aligned(LANES, np.int32),
    )
    old, new = (aligned(bar.steps * LANES, np.int32) for _ in range(2))
    return profile, Labels(old, new, np.zeros(bar.steps, np.uint8))

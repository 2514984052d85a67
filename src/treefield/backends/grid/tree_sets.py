"""Tree sets: trees prepared for exact search, ready to be swept again and again."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from treefield.backends.grid import schedules
from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.forests import GridForests, combs
from treefield.backends.grid.lines import AxisLines, WorkSpace
from treefield.backends.grid.ribbons import RibbonSet, as_width
from treefield.backends.shared import as_site_lists
from treefield.backends.threads import Workers
from treefield.protocols import Trees, TreeSet
from treefield.validation import as_choice, as_count, as_flat_labels, as_thread_count

NAMES = ("bands", "rows-columns", "alternating", "ribbons", "combs", "sites")
_SERIAL_STEPS = 2  # per thread: for so few, waking the threads takes longer than it saves
_SERIAL_BELOW = 200_000  # sites x labels of a sweep: with less, threads cost more than they bring


def check_options(
    costs: GridCosts,
    trees: Trees | None,
    order: str,
    bands: int | None,
    width: int | None,
    memory: str,
    threads: int | None,
) -> None:
    """Refuse what does not make a tree set of a grid model, before any work."""
    as_choice(order, "order", ("fixed", "random"))
    as_choice(memory, "memory", ("auto", "low"))
    as_thread_count(threads)
    trees = "bands" if trees is None else trees
    name = as_choice(trees, "trees", NAMES) if isinstance(trees, str) else None
    if name is None:
        as_site_lists(trees, costs.shape)
    if bands is not None:
        as_count(bands, "bands", 1)
        if name != "bands":
            raise ValueError(f'bands={bands} goes with trees="bands", got trees={trees!r}')
    if width is not None:
        as_count(width, "width", 1)
        if name != "ribbons":
            raise ValueError(f'width={width} goes with trees="ribbons", got trees={trees!r}')
        as_width(costs, width, memory)
    if memory == "low" and name in (None, "combs", "sites"):
        raise ValueError(
            f'memory="low" goes with trees="bands", "rows-columns", "alternating" or "ribbons", got trees={trees!r}'
        )
    if order == "random" and name == "sites":
        raise ValueError('order="random" does not go with trees="sites", which are updated in raster order')


def tree_set(
    costs: GridCosts,
    trees: Trees | None,
    *,
    order: str,
    bands: int | None,
    width: int | None,
    memory: str,
    threads: int | None,
) -> TreeSet:
    """The tree set of that name, or of the given site-index arrays, for a grid model."""
    check_options(costs, trees, order, bands, width, memory, threads)
    trees = "bands" if trees is None else trees
    if not isinstance(trees, str):
        return GridForests(costs, as_site_lists(trees, costs.shape), order=order)
    if trees == "combs":
        return GridForests(costs, combs(costs.shape), order=order)
    if trees == "sites":
        return GridSites(costs)
    if trees == "ribbons":
        return RibbonSet(costs, width, order=order, memory=memory, threads=as_thread_count(threads))
    axes = range(len(costs.shape) - 1, -1, -1)  # rows first, as in the paper
    if trees == "bands":
        plans = [schedules.bands(costs.shape, axis, costs.n_labels, bands, costs.periodic) for axis in axes]
    elif trees == "alternating":
        plans = [schedules.alternating(costs.shape, axis, costs.periodic) for axis in axes]
    else:
        plans = [schedules.rows_columns(costs.shape, axis) for axis in axes]
    space = WorkSpace(costs, plans if memory == "auto" else [])
    packed = memory == "auto"
    axis_lines = [AxisLines(costs, plan, space, packed=packed, ring=costs.periodic[plan.axis]) for plan in plans]
    if any(costs.periodic):  # queues may touch
        lines = LineSet(axis_lines, order=order)
        return RingSet(lines, costs) if all(costs.periodic) else lines
    return LineSet(
        axis_lines, order=order, threads=1 if costs.size * costs.n_labels < _SERIAL_BELOW else as_thread_count(threads)
    )


def tree_set_bytes(costs: GridCosts, memory: str) -> int:
    """The memory that bands need, roughly."""
    scratch = 4 * schedules.LANES * max(costs.shape) * (costs.n_labels + 4) * costs.dtype.itemsize
    if memory == "low":
        return (
            scratch
            + max(costs.shape) * costs.n_labels * schedules.LANES * costs.unary.itemsize
            + 64 * costs.size // min(costs.shape)
        )
    plans = [schedules.bands(costs.shape, axis, costs.n_labels) for axis in range(len(costs.shape))]
    grid = costs.kernel_grid()
    weights = 0 if grid.uniform else 2 * len(costs.lattice.steps) * grid.weights.itemsize
    per_site = costs.n_labels * costs.unary.itemsize + weights + 1
    return scratch + sum(len(plan.lines) * schedules.LANES * costs.shape[plan.axis] * per_site for plan in plans)


class LineSet:
    """Lines along every axis, each axis with its schedule."""

    def __init__(self, axes: list[AxisLines], *, order: str = "fixed", threads: int = 1) -> None:
        self.order = order
        self.has_all_cores = True  # if not, other threads need the cores: sweep with one
        self.patience = 1
        self._axes = axes
        self._workers = Workers(threads)
        self._forward = [self._order(axis, None) for axis in axes]
        self._backward = [
            [[steps[::-1].copy() for steps in queues] for queues in order[::-1]] for order in self._forward
        ]
        # where there is one queue there is little to share: labels are brought in by one thread, too
        shares = [threads if len(order[0]) > 1 else 1 for order in self._forward]
        self._parts = [
            np.array_split(np.arange(len(axis.plan.lines)), share) for axis, share in zip(axes, shares, strict=True)
        ]

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place on an int32 labelling; returns the energy change.

        With `check` it is never positive. With `reverse` the lines along each axis go from the last to the first.
        """
        flat = as_flat_labels(x, self._axes[0].costs)
        random = rng if self.order == "random" else None
        fixed = self._backward if reverse else self._forward
        for i in range(len(self._axes)) if random is None else random.permutation(len(self._axes)):
            axis = self._axes[i]
            self._map(axis.enter, flat, self._parts[i])
            for queues in fixed[i] if random is None else self._order(axis, random):
                self._map(functools.partial(axis.solve, check=check), flat, queues)
        return float(sum(axis.changes.sum() for axis in self._axes))

    def _order(self, axis: AxisLines, rng: np.random.Generator | None) -> schedules.Phases:
        """The schedule's phases, each with its queues; without threads all in one queue, in an order they allow."""
        phases = axis.plan.phases(rng)
        return (
            phases if self._workers.count > 1 else [[np.concatenate([steps for queues in phases for steps in queues])]]
        )

    def _map(self, work: Callable[..., None], flat: np.ndarray, parts: list[np.ndarray]) -> None:
        """`work(flat, steps, thread=number)` for every part, shared out among threads."""

        def solve(numbers: np.ndarray, thread: int) -> None:
            for number in numbers.tolist():
                work(flat, parts[number], thread=thread)

        few = sum(map(len, parts)) <= _SERIAL_STEPS * self._workers.count
        self._workers.share(solve, np.arange(len(parts)), all_threads=self.has_all_cores and not few)


class RingSet:
    """Lines whose ends are joined, along every axis.

    The first site of each keeps its label, but for lines along another axis; so the first site of all is one more tree,
    by itself.
    """

    def __init__(self, lines: LineSet, costs: GridCosts) -> None:
        self.order, self._lines, self._costs = lines.order, lines, costs
        self._around = costs.edges_of(0)
        self.has_all_cores, self.patience = True, 1

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place; returns the energy change.

        With `reverse` the first site comes first, then the lines along each axis from the last to the first.
        """
        flat = as_flat_labels(x, self._costs)
        first = self._update_first_site(flat) if reverse else 0.0
        change = self._lines.sweep(x, rng, check, reverse)
        return first + change + (0.0 if reverse else self._update_first_site(flat))

    def _update_first_site(self, flat: np.ndarray) -> float:
        costs = self._costs.flat_unary[: self._costs.n_labels].astype(np.float64)
        for other, table in self._around:
            costs = costs + table[:, flat[other]]
        costs = np.minimum(costs, self._costs.forbidden_cost)
        old, new = flat[0], costs.argmin()
        flat[0] = new
        return float(costs[new] - costs[old])


class GridSites:
    """Single sites, the smallest trees: a sweep is one of ICM, in raster order within bands swept side by side."""

    def __init__(self, costs: GridCosts) -> None:
        from treefield.kernels.simd.jit import as_compile_time

        self.has_all_cores, self.patience = True, 1
        plan = schedules.bands(costs.shape, len(costs.shape) - 1, costs.n_labels)
        self._rows = AxisLines(costs, plan, WorkSpace(costs, [plan]))
        self._steps = np.concatenate([steps for queues in self._rows.plan.phases(None) for steps in queues])
        with as_compile_time():
            self._rows.update_sites(np.zeros(1, np.int32), self._steps[:0])

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Update every site once, in place; returns the energy change.

        An update never raises the energy: there is nothing to check. With `reverse` the rows go from the last to the
        first.
        """
        flat = as_flat_labels(x, self._rows.costs)
        self._rows.enter(flat, self._rows.plan.blocks)
        return self._rows.update_sites(flat, self._steps[::-1].copy() if reverse else self._steps)

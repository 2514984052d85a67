"""Trees of any shape: combs, and sites that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.schedules import LANES
from treefield.errors import CycleError
from treefield.validation import as_flat_labels

if TYPE_CHECKING:
    from treefield.kernels.grid.energy import Grid
    from treefield.kernels.grid.forests import GridForest, GridForestScratch


def combs(shape: tuple[int, ...]) -> list[np.ndarray]:
    """A spine and every second line (figure 2 a, b of the paper): four trees of more than half of the sites each.

    Along rows: the even rows and the first column, the odd rows and the first column; along columns the same the other
    way round. In 3-D, in every second plane at once.
    """
    *planes, rows, columns = shape
    if planes:
        starts = [np.arange(parity, planes[0], 2)[:, None] * rows * columns for parity in range(min(2, planes[0]))]
        return [(start + tree).reshape(-1) for start in starts for tree in combs((rows, columns))]
    i, j = np.indices((rows, columns))
    trees = [((i % 2 == p) | (j == 0)) for p in (0, 1)] + [((j % 2 == p) | (i == 0)) for p in (0, 1)]
    return [np.flatnonzero(tree) for tree in trees]


def forest_bytes(costs: GridCosts) -> int:
    """The memory that a forest of all sites needs, at most: in a chain every site has a group of lanes to itself."""
    return 8 * costs.size * (LANES * (2 * costs.n_labels + 8) + 24)


class GridForests:
    """Induced forests, solved one after the other, the trees of each at once.

    Memory: twice the sites x labels of the largest forest.
    """

    def __init__(
        self, costs: GridCosts, trees: list[np.ndarray], *, order: str = "fixed", dtype: DTypeLike | None = None
    ) -> None:
        self.order, self.has_all_cores, self.patience = order, True, 1
        self._costs = costs
        self._dtype = costs.dtype if dtype is None else np.dtype(dtype)
        self._grid = costs.kernel_grid()
        self._rule = costs.rule(self._dtype)
        self._member = np.zeros(costs.size, np.bool_)
        self._forests = []
        for number, sites in enumerate(trees):
            forest, count = plan(sites, self._grid, costs.size)
            if forest is None:
                raise CycleError(
                    f"trees[{number}] has a cycle: its {len(sites)} sites and all edges between them must form trees"
                )
            self._forests.append((sites, forest, np.empty(count)))
        largest = max(len(forest.counts) for _, forest, _ in self._forests)
        self._scratch = _scratch(largest, costs.n_labels, self._dtype, self._member, self._grid.weights.dtype)
        self._load()

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place on an int32 labelling; returns the energy change, never positive.

        With `reverse` the last tree comes first.
        """
        order = list(range(len(self._forests)))[:: -1 if reverse else 1]
        if self.order == "random" and rng is not None:
            order = rng.permutation(order).tolist()
        flat = as_flat_labels(x, self._costs)
        return sum(self._solve(flat, *self._forests[number], check) for number in order)

    def _solve(
        self, flat: np.ndarray, sites: np.ndarray, forest: GridForest, changes: np.ndarray, check: bool
    ) -> float:
        from treefield.kernels.grid.forests import pack_forest, solve_forest

        costs = self._costs
        self._member[:] = False
        self._member[sites] = True
        used = len(forest.counts) * costs.n_labels * LANES
        scratch = self._scratch._replace(h=self._scratch.h[:used], changes=changes)
        forbidden_cost = np.full(1, min(costs.forbidden_cost, float(np.finfo(self._dtype).max)), self._dtype)[0]
        pack_forest(costs.flat_unary, forest, costs.n_labels, forbidden_cost, scratch.unary)
        return solve_forest(flat, costs.n_labels, forest, self._grid, self._rule, scratch, check)

    def _load(self) -> None:
        from treefield.kernels.grid.forests import GridForest
        from treefield.kernels.simd.jit import as_compile_time

        with as_compile_time():
            none = np.zeros(0, np.int64)
            self._solve(np.zeros(1, np.int32), none, GridForest(none, none, none, none, none), np.empty(0), True)


def plan(sites: np.ndarray, grid: Grid, size: int) -> tuple[GridForest | None, int]:
    """Order the sites of a forest for `solve_forest`: (GridForest, number of trees), or (None, -1) for a cycle."""
    from treefield.kernels.grid.forests import GridForest, plan_grid_forest
    from treefield.kernels.simd.jit import as_compile_time

    count = len(sites)
    index = np.full(size, -1, np.int64)
    index[sites] = np.arange(count)
    parents, directions, heights, trees, queue = np.empty((5, count), np.int64)
    with as_compile_time():
        plan_grid_forest(sites[:0], grid, index, parents, directions, heights, trees, queue)
    number = plan_grid_forest(sites, grid, index, parents, directions, heights, trees, queue)
    if number < 0:
        return None, -1
    key = heights * (2 * len(grid.shape) + 1) + directions + 1
    order = np.argsort(key, kind="stable")
    # a group is a run of up to eight sites of one key
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    lengths = np.diff(np.append(starts, count))
    groups = -(-lengths // LANES)
    first_group = np.cumsum(groups) - groups
    within = np.arange(count) - np.repeat(starts, lengths)
    place = np.empty(count, np.int64)
    place[order] = (np.repeat(first_group, lengths) + within // LANES) * LANES + within % LANES
    total = int(groups.sum())

    def spread(values: np.ndarray) -> np.ndarray:
        out = np.zeros(total * LANES, np.int64)
        out[place] = values
        return out

    group_directions = np.empty(total, np.int64)
    group_directions[place // LANES] = directions
    counts = np.bincount(place // LANES, minlength=total)
    forest = GridForest(spread(sites), spread(place[np.maximum(parents, 0)]), spread(trees), group_directions, counts)
    return forest, int(number)


def _scratch(
    groups: int, labels: int, dtype: np.dtype, member: np.ndarray, weight_dtype: np.dtype
) -> GridForestScratch:
    from treefield.kernels.grid.forests import GridForestScratch
    from treefield.kernels.simd.arrays import aligned

    message = labels * LANES
    return GridForestScratch(
        unary=aligned(groups * message, dtype),
        h=aligned(groups * message, dtype),
        message=aligned(message, dtype),
        lows=aligned(groups * LANES, dtype),
        new=np.zeros(groups * LANES, np.int32),
        member=member,
        changes=np.empty(0),
        neighbour_labels=aligned(LANES, np.int32),
        edges=aligned(LANES, np.int64),
        weights=aligned(LANES, weight_dtype),
        change=aligned(LANES, np.float64),
    )

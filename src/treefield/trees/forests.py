"""Trees of any shape: combs, and whatever sites the user names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treefield.trees.schedules import LANES
from treefield.validation import as_flat_labels


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


def checked_sites(trees: Any, shape: tuple[int, ...]) -> list[np.ndarray]:
    """The user's trees as arrays of flat site indices, or an error."""
    if (isinstance(trees, np.ndarray) and trees.ndim == 1) or not isinstance(trees, Iterable):
        raise TypeError(
            f"trees must be a name or a list of site-index arrays, got {type(trees).__name__}; "
            "one tree is a list of one array"
        )
    size = int(np.prod(shape))
    checked = []
    for number, tree in enumerate(trees):
        try:
            sites = np.asarray(tree)
        except ValueError:
            raise ValueError(f"trees[{number}] must be a 1-D array of flat site indices, got {tree!r}") from None
        if sites.dtype.kind not in "ui" or sites.ndim != 1 or sites.size == 0:
            raise ValueError(
                f"trees[{number}] must be a non-empty 1-D array of flat site indices, "
                f"got dtype {sites.dtype} and shape {sites.shape}"
            )
        if sites.min() < 0 or sites.max() >= size:
            raise ValueError(
                f"trees[{number}] names sites {sites.min()} to {sites.max()}, but the model has sites 0 to {size - 1}"
            )
        if len(np.unique(sites)) != len(sites):
            raise ValueError(f"trees[{number}] names a site twice")
        checked.append(sites.astype(np.int64))
    if not checked:
        raise ValueError("trees is an empty list; at least one tree is needed")
    return checked


def has_few_edges(mrf: Any) -> bool:
    """Whether the edges of a model are few enough for it to be a tree, or several."""
    grid = mrf.kernel_grid()
    if not grid.uniform:
        return int(np.count_nonzero(grid.weights)) < mrf.size
    return sum(n > 1 and weight != 0 for n, weight in zip(mrf.shape, grid.weights, strict=True)) <= 1


def forest_bytes(mrf: Any) -> int:
    """The memory that a forest of all sites needs, at most: in a chain every site has a group of lanes to itself."""
    return 8 * mrf.size * (LANES * (2 * mrf.labels + 8) + 24)


class CycleError(ValueError):
    """Sites that should form trees have a cycle."""


class ForestSet:
    """Induced forests, solved one after the other, the trees of each at once. Memory: twice the sites x labels of the
    largest forest."""

    def __init__(self, mrf: Any, trees: list[np.ndarray], *, order: str = "fixed", dtype: Any = None) -> None:
        self.order = order
        self._mrf = mrf
        self._dtype = mrf.dtype if dtype is None else np.dtype(dtype)
        self._grid = mrf.kernel_grid()
        self._rule = mrf.rule(self._dtype)
        self._member = np.zeros(mrf.size, np.bool_)
        self._forests = []
        for number, sites in enumerate(trees):
            forest, count = plan(sites, self._grid, mrf.size)
            if forest is None:
                raise CycleError(
                    f"trees[{number}] has a cycle: its {len(sites)} sites and all edges between them must form trees"
                )
            self._forests.append((sites, forest, np.empty(count)))
        largest = max(len(forest.counts) for _, forest, _ in self._forests)
        self._scratch = _scratch(largest, mrf.labels, self._dtype, self._member, self._grid.weights.dtype)
        self._load()

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place on an int32 labelling, with `reverse` from the last to the first; returns the
        energy change, never positive."""
        order = list(range(len(self._forests)))[:: -1 if reverse else 1]
        if self.order == "random" and rng is not None:
            order = rng.permutation(order).tolist()
        flat = as_flat_labels(x, self._mrf)
        return sum(self._solve(flat, *self._forests[number], check) for number in order)

    def _solve(self, flat: np.ndarray, sites: np.ndarray, forest: Any, changes: np.ndarray, check: bool) -> float:
        from treefield.kernels.forest import pack_forest, solve_forest

        mrf = self._mrf
        self._member[:] = False
        self._member[sites] = True
        used = len(forest.counts) * mrf.labels * LANES
        scratch = self._scratch._replace(h=self._scratch.h[:used], changes=changes)
        big = self._dtype.type(min(mrf.big, float(np.finfo(self._dtype).max)))
        pack_forest(mrf.flat_unary, forest, mrf.labels, big, scratch.unary)
        return solve_forest(flat, mrf.labels, forest, self._grid, self._rule, scratch, check)

    def _load(self) -> None:
        from treefield.kernels.forest import Forest
        from treefield.kernels.jit import as_compile_time

        with as_compile_time():
            none = np.zeros(0, np.int64)
            self._solve(np.zeros(1, np.int32), none, Forest(none, none, none, none, none), np.empty(0), True)


def plan(sites: np.ndarray, grid: Any, size: int) -> tuple[Any, int]:
    """Order the sites of a forest for `solve_forest`: (Forest, number of trees), or (None, -1) if there is a cycle."""
    from treefield.kernels.forest import Forest, plan_forest
    from treefield.kernels.jit import as_compile_time

    count = len(sites)
    index = np.full(size, -1, np.int64)
    index[sites] = np.arange(count)
    parents, directions, heights, trees, queue = np.empty((5, count), np.int64)
    with as_compile_time():
        plan_forest(sites[:0], grid, index, parents, directions, heights, trees, queue)
    number = plan_forest(sites, grid, index, parents, directions, heights, trees, queue)
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
    forest = Forest(spread(sites), spread(place[np.maximum(parents, 0)]), spread(trees), group_directions, counts)
    return forest, int(number)


def _scratch(groups: int, labels: int, dtype: np.dtype, member: np.ndarray, weight_dtype: np.dtype) -> Any:
    from treefield.kernels.arrays import aligned
    from treefield.kernels.forest import ForestScratch

    message = labels * LANES
    return ForestScratch(
        unary=aligned(groups * message, dtype),
        h=aligned(groups * message, dtype),
        message=aligned(message, dtype),
        lows=aligned(groups * LANES, dtype),
        new=np.zeros(groups * LANES, np.int32),
        member=member,
        changes=np.empty(0),
        beside=aligned(LANES, np.int32),
        edges=aligned(LANES, np.int64),
        weights=aligned(LANES, weight_dtype),
        change=aligned(LANES, np.float64),
    )

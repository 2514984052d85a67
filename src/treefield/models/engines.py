"""How the protocol of a grid model is carried out: by kernels made for plain grids, or by those of graphs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from treefield.validation import labels_of

_LINES = ("bands", "rows-columns", "alternating", "sites")  # tree sets that need not know of diagonals being cycles


class PlainEngine:
    """For grids whose neighbours are those along the axes: everything in lanes."""

    paper_trees, search_trees = "rows-columns", "bands"

    def __init__(self, mrf: Any) -> None:
        self._mrf = mrf

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        from treefield.kernels.grid import pairwise_energy, unary_energy

        mrf, flat = self._mrf, x.reshape(-1)
        unary, forbidden = unary_energy(flat, mrf.flat_unary, mrf.labels, mrf.big)
        grid, rule = mrf.kernel_grid(), mrf.rule(np.float64)
        pairwise, more = pairwise_energy(flat, mrf.labels, grid, rule, mrf.big, *_work(grid))
        return unary + pairwise, forbidden + more

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from treefield.kernels.components import join_components, pairwise_changes, unary_changes

        mrf = self._mrf
        grid, rule = mrf.kernel_grid(), mrf.rule(np.float64)
        flat = labels_of(x, mrf), labels_of(y, mrf, "y")
        numbers = np.empty(len(flat[0]), np.int32)
        count = join_components(*flat, grid.shape, grid.strides, numbers)
        finite, forbidden = np.zeros(count), np.zeros(count, np.int64)
        unary_changes(*flat, mrf.flat_unary, mrf.labels, numbers, mrf.big, finite, forbidden)
        pairwise_changes(*flat, mrf.labels, grid, rule, numbers, mrf.big, finite, forbidden, *_work(grid))
        return numbers.reshape(x.shape), finite, forbidden

    def tree_set(self, trees: Any, **options: Any) -> Any:
        from treefield.trees.sets import tree_set

        return tree_set(self._mrf, trees, **options)

    def check_tree_set(self, trees: Any, **options: Any) -> None:
        from treefield.trees.sets import check_options

        check_options(self._mrf, trees, **options)

    def whole_tree(self) -> Any:
        from treefield.trees.forests import ForestSet

        return ForestSet(self._mrf, [np.arange(self._mrf.size)], dtype=np.float64)  # that it is exact must be true

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        sites = np.arange(self._mrf.size).reshape(self._mrf.shape)
        return sites[tuple(slice(None, None, 2) for _ in self._mrf.shape)].reshape(-1)

    def beliefs(self) -> Any:
        from treefield.trees.beliefs import Beliefs

        return Beliefs(self._mrf)

    def dual(self, arithmetic: str) -> Any:
        from treefield.trees.dual import Dual

        return Dual(self._mrf, arithmetic)

    def sampler(self) -> Any:
        from treefield.trees.checkerboard import Checkerboard

        return Checkerboard(self._mrf)


class GraphEngine:
    """For all other grids: the graph of the same edges, which takes labellings of the grid's shape.

    In 2-D, where nothing is periodic, rows and columns are still chains: their tree sets are those of plain grids.
    """

    def __init__(self, mrf: Any) -> None:
        self._mrf = mrf
        self._has_lines = len(mrf.shape) == 2 and not any(mrf.periodic)
        self.paper_trees = "rows-columns" if self._has_lines else "random-forests"
        self.search_trees = "bands" if self._has_lines else "random-forests"
        self._made: Any = None

    @property
    def _graph(self) -> Any:
        if self._made is None:
            graph = self._mrf.to_graph()
            graph.kernel_graph()  # which the copy then has, too
            self._made = copy.copy(graph)
            self._made.shape = self._mrf.shape
        return self._made

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        return self._graph.energy_parts(x.reshape(-1))

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._graph.components(x, y)

    def tree_set(self, trees: Any, **options: Any) -> Any:
        from treefield.trees.sets import tree_set

        self.check_tree_set(trees, **options)
        if self._by_lines(trees):
            return tree_set(self._mrf, trees, **options)
        return self._graph.tree_set(trees, **options)

    def check_tree_set(self, trees: Any, **options: Any) -> None:
        from treefield.trees import induced, sets

        if self._by_lines(trees):
            sets.check_options(self._mrf, trees, **options)
            return
        names = (*(_LINES if self._has_lines else ()), *induced.NAMES)
        if isinstance(trees, str) and trees not in names:
            listed = ", ".join(map(repr, dict.fromkeys(names)))
            raise ValueError(
                f"trees of this grid must be one of {listed}, or a list of site-index arrays: it is not "
                f"plain, but {self._mrf.joined_by}; got {trees!r}"
            )
        if options["bands"] is not None or options["memory"] == "low":
            raise ValueError(
                f'bands and memory="low" go with rows and columns, got trees={trees!r} on a grid that is '
                f"{self._mrf.joined_by}"
            )
        induced.check_options(self._mrf, trees, **options)

    def _by_lines(self, trees: Any) -> bool:
        return self._has_lines and (trees is None or (isinstance(trees, str) and trees in _LINES))

    def whole_tree(self) -> Any:
        return self._graph.whole_tree()

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        return self._graph.independent_sites(rng)

    def beliefs(self) -> Any:
        return self._graph.beliefs()

    def dual(self, arithmetic: str) -> Any:
        return self._graph.dual(arithmetic)

    def sampler(self) -> Any:
        return self._graph.sampler()


def _work(grid: Any) -> tuple[np.ndarray, np.ndarray]:
    """Space for eight labels and eight weights, for kernels."""
    return np.zeros(8, np.int32), np.zeros(8, grid.weights.dtype)

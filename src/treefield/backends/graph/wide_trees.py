"""Wide trees of a graph: induced subgraphs of small treewidth that cover all sites, drawn afresh for every sweep."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.shared import Labellings
from treefield.protocols import WideTrees
from treefield.validation import as_count, as_flat_labels, label_dtype

if TYPE_CHECKING:
    from treefield.kernels.graph.fronts import Front
    from treefield.kernels.graph.wide_trees import Tables

_USUAL_STATES = 256  # of a profile whose width is not given
_SEARCH_STATES = 2.0**4, 2.0**6, 2.0**8, 2.0**10, 2.0**12  # of the trees that a search tries
_MOST_LABELS, _MOST_NEIGHBOURS = 8, 8  # where a search tries wide trees at all: beyond, trees and jumps do better
_MOST_BYTES = 2**30  # of the workspace
_FEW_DECISIONS = 2**22  # bytes


def usual_width(costs: Labellings, states: float = _USUAL_STATES) -> int:
    """The largest width whose profiles have at most so many states, at least 1."""
    if costs.n_labels == 1:
        return 1
    return max(1, min(int(math.log(states) / math.log(costs.n_labels) + 1e-9), math.prod(costs.shape)))


def as_width(costs: Labellings, width: int | None) -> int:
    """A width that fits into the graph and into memory, or an error that names the largest that does."""
    size = math.prod(costs.shape)
    width = usual_width(costs) if width is None else as_count(width, "width", 1)
    if width > size:
        raise ValueError(f"width={width} is more than the graph's {size} sites; the largest width that fits is {size}")
    fits = width
    while fits > 0 and table_bytes(costs.n_labels, fits) > _MOST_BYTES:
        fits -= 1
    if fits == 0:
        raise ValueError(
            f'trees="wide" with {costs.n_labels} labels needs more than {_MOST_BYTES >> 20} MB even for width=1; '
            'use trees="trees"'
        )
    if fits < width:
        raise ValueError(
            f"width={width} needs {costs.n_labels}**{width} states at each of its steps, more than {_MOST_BYTES >> 20} "
            f"MB; the largest width that fits is {fits}"
        )
    return width


def table_bytes(labels: int, width: int) -> int:
    """The memory of the workspace of exact search with profiles of that width."""
    return 8 * (2 * _states(labels, width) + _high_entries(labels, width)) + _decision_bytes(labels, width)


def _states(labels: int, width: int) -> int:
    """The states when a site has entered and none has left yet."""
    return labels ** (width + 1)


def _high_entries(labels: int, width: int) -> int:
    from treefield.kernels.graph.wide_trees import LOW_STATES

    return labels * _states(labels, width) // LOW_STATES + labels


def _decision_bytes(labels: int, width: int) -> int:
    """Room for the decisions of a tree: at least as many as a full profile needs to leave."""
    return max(_FEW_DECISIONS, (width + 3) * labels ** (width + 2) * label_dtype(labels).itemsize)


def search_widths(costs: GraphCosts) -> list[WideTrees]:
    """The wide trees that a search should try."""
    if not 2 <= costs.n_labels <= _MOST_LABELS or 2 * len(costs.edges) > _MOST_NEIGHBOURS * costs.size:
        return []
    states = float(costs.n_labels)
    widths = sorted({usual_width(costs, most) for most in _SEARCH_STATES} - {1})
    return [
        WideTrees("wide", width, states**width, _sweep_work(costs, width), "auto", _set_bytes(costs, width))
        for width in widths
        if table_bytes(costs.n_labels, width) <= _MOST_BYTES
    ]


def _sweep_work(costs: GraphCosts, width: int) -> float:
    """The work of a sweep, in sites x labels: measured, relative to a sweep over trees."""
    degree = 2 * len(costs.edges) / costs.size
    return costs.size * (34.0 + 4.0 * degree * width + 0.3 * float(costs.n_labels) ** (width + 1))


def _set_bytes(costs: GraphCosts, width: int) -> int:
    """The memory of a tree set, roughly."""
    return table_bytes(costs.n_labels, width) + 100 * costs.size


class WideTreeSet:
    """Cuts of all sites into wide trees: trees with a profile of up to `width` sites, solved one after the other.

    They grow from a site that is drawn for every sweep; without a generator from the first site.
    """

    has_all_cores = True

    def __init__(self, costs: GraphCosts, width: int | None, order: str = "fixed") -> None:
        self.width = self.patience = as_width(costs, width)
        self.order, self._costs = order, costs
        self._rounder = 1.5 * 2.0**52 * costs.unit
        self._roots = np.empty(costs.size, np.int32)
        self._front, self._tables = self._new_workspace()
        self._load()

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place on an int32 labelling; returns the energy change.

        With `check` it is never positive. With `reverse` trees begin at the sites that are farthest from the drawn one.
        """
        from treefield.kernels.graph.fronts import rank_sites

        flat, size = as_flat_labels(x, self._costs), self._costs.size
        root, is_reversed = (0, False) if rng is None else (int(rng.integers(size)), bool(rng.integers(2)))
        rank_sites(self._costs.kernel_graph, root, is_reversed, self._front.ranks, self._roots)
        roots = self._roots
        if reverse:
            roots = roots[::-1].copy()
            np.subtract(size - 1, self._front.ranks, out=self._front.ranks)
        if self.order == "random" and rng is not None:
            roots = rng.permutation(roots)
        return self._solve(flat, roots, check)

    def _solve(self, flat: np.ndarray, roots: np.ndarray, check: bool) -> float:
        from treefield.kernels.graph.wide_trees import solve_wide_trees

        work = self.width, self._rounder, check, self._front, self._tables
        return solve_wide_trees(self._costs.kernel_graph, flat, roots, *work)

    def _new_workspace(self) -> tuple[Front, Tables]:
        from treefield.kernels.graph.fronts import Front
        from treefield.kernels.graph.wide_trees import LOW_STATES, Tables

        size, labels, width = self._costs.size, self._costs.n_labels, self.width
        by_site, by_position = (lambda: np.zeros(size, np.int32)), (lambda: np.zeros(width + 1, np.int32))
        front = Front(
            places=np.zeros(size, np.uint8),
            trees=by_site(),
            ranks=by_site(),
            open=by_site(),
            sites=by_position(),
            sizes=by_position(),
            links=by_position(),
        )
        tables = Tables(
            costs=np.empty(2 * _states(labels, width)),
            h=np.empty(labels),
            low=np.empty(LOW_STATES * labels),
            high=np.empty(_high_entries(labels, width)),
            decisions=np.empty(_decision_bytes(labels, width) // label_dtype(labels).itemsize, label_dtype(labels)),
            events=np.empty(4 * 2 * size, np.int64),
        )
        return front, tables

    def _load(self) -> None:
        from treefield.kernels.graph.fronts import rank_sites
        from treefield.kernels.simd.jit import as_compile_time

        none = np.zeros(0, np.int32)
        with as_compile_time():
            rank_sites(self._costs.kernel_graph, 0, False, none, none)
            self._solve(none, none, True)

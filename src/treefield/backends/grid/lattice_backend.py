"""How the questions of solvers about a grid with diagonal or periodic edges are answered."""

from __future__ import annotations

import functools

import numpy as np

from treefield.backends.graph import tree_sets as graph_trees
from treefield.backends.graph.backend import GraphBackend
from treefield.backends.graph.dual import GraphDual
from treefield.backends.graph.messages import GraphBeliefs, message_bytes
from treefield.backends.graph.site_costs import SiteSampler
from treefield.backends.graph.tree_sets import ForestSampler, GraphForests
from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.elimination import eliminate_grid, graph_of
from treefield.backends.grid.lines import solve_lines_alone
from treefield.backends.grid.marginals import LineMarginals
from treefield.backends.grid.regions import GridBoxes
from treefield.backends.grid.ribbons import search_widths
from treefield.backends.grid.tree_sets import check_options, tree_set, tree_set_bytes
from treefield.protocols import Trees, TreeSet, WideTrees

_LINES = (
    "bands",
    "rows-columns",
    "alternating",
    "ribbons",
    "sites",
)  # tree sets of lines; periodic grids lack the last
_DIAGONAL_WORK = 1.6  # measured: a sweep with diagonals, relative to one without


class LatticeBackend(GridCosts):
    """Any other grid: `treefield.protocols.Backend`, answered by the graph of the same edges.

    Tree sets are lines where lines that are solved together do not touch: with diagonals in 2-D if nothing is periodic,
    and without diagonals always. Closed lines are cut open at one site.
    """

    balls = None

    @property
    def _has_line_sets(self) -> bool:
        connectivity = self.lattice.connectivity
        return connectivity == 1 or (len(self.shape) == 2 and not any(self.periodic))

    @property
    def paper_trees(self) -> str:
        """The trees of the paper's T-ILS."""
        return "rows-columns" if self._has_line_sets else "trees"

    @property
    def search_trees(self) -> str:
        """The best trees for any search."""
        return "bands" if self._has_line_sets else "trees"

    @functools.cached_property
    def _graph(self) -> GraphBackend:
        return graph_of(self)

    @property
    def boxes(self) -> GridBoxes:
        """The boxes of the grid, for jumps."""
        return GridBoxes(self)

    def check_tree_set(
        self, trees: Trees | None, *, order: str, bands: int | None, width: int | None, memory: str, threads: int | None
    ) -> None:
        """Raise what `tree_set` would raise for these arguments, without its work."""
        if self._are_lines(trees):
            check_options(self, trees, order, bands, width, memory, threads)
            return
        names = (*(self._line_names if self._has_line_sets else ()), *graph_trees.NAMES)
        neighbours = self.lattice.neighbours_text
        if isinstance(trees, str) and trees not in names:
            listed = ", ".join(map(repr, dict.fromkeys(names)))
            raise ValueError(
                f"trees of a grid with {neighbours} must be one of {listed}, or a list of site-index arrays, "
                f"got {trees!r}"
            )
        if bands is not None or memory == "low":
            raise ValueError(
                f'bands and memory="low" go with rows and columns, got trees={trees!r} on a grid with {neighbours}'
            )
        graph_trees.check_options(self, trees, order, bands, width, memory, threads)

    def tree_set(
        self,
        trees: Trees | None = None,
        *,
        order: str = "fixed",
        bands: int | None = None,
        width: int | None = None,
        memory: str = "auto",
        threads: int | None = None,
    ) -> TreeSet:
        """Trees prepared for exact search; `treefield.t_icm` explains the parameters."""
        self.check_tree_set(trees, order=order, bands=bands, width=width, memory=memory, threads=threads)
        if self._are_lines(trees):
            return tree_set(self, trees, order=order, bands=bands, width=width, memory=memory, threads=threads)
        return self._graph.tree_set(trees, order=order, bands=bands, width=width, memory=memory, threads=threads)

    @property
    def _line_names(self) -> tuple[str, ...]:
        return _LINES if self.lattice.connectivity == 2 else _LINES[:-1]

    def _are_lines(self, trees: Trees | None) -> bool:
        return self._has_line_sets and (trees is None or (isinstance(trees, str) and trees in self._line_names))

    def solve_lines(self, nu: float, axis: int) -> np.ndarray:
        """The labelling of least energy without the edges between the lines along an axis, unary costs times `nu`."""
        return solve_lines_alone(self, nu, axis)

    def marginals(self, axis: int) -> LineMarginals:
        """Min-marginals along an axis."""
        return LineMarginals(self, axis)

    @property
    def sweep_work(self) -> float:
        """The work of a sweep over the trees, in sites x labels."""
        lines = float(len(self.shape) * self.size * self.n_labels)
        if not self._has_line_sets:
            return self._graph.sweep_work
        return _DIAGONAL_WORK * lines if self.lattice.connectivity == 2 else lines

    @property
    def wider_trees(self) -> list[WideTrees]:
        """The tree sets that a search should try besides `search_trees`, the narrowest first."""
        return search_widths(self) if self._has_line_sets else self._graph.wider_trees

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        """Memory for tree sets and the dual, roughly, by (memory, arithmetic): the fastest first."""
        if not self._has_line_sets:
            return self._graph.search_bytes()
        packed = tree_set_bytes(self, "auto")
        needs: dict[tuple[str, str | None], int] = {("auto", "exact"): packed + message_bytes(self._graph)}
        return needs | {("auto", None): packed, ("low", None): tree_set_bytes(self, "low")}

    # The graph of the same edges answers the rest.

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part of the energy, and the number of forbidden costs in it."""
        return self._graph.energy_parts(x)

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The connected components of the sites where `x` and `y` differ: see the protocol."""
        return self._graph.components(x, y)

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        """The segment of each site of a flat labelling, and the number of segments."""
        return self._graph.segments(flat)

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        """Write the label across a random edge of each segment's border to `out`."""
        self._graph.labels_across(flat, numbers, seed, out)

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        """Random sites no two of which share an edge."""
        return self._graph.independent_sites(rng)

    def whole_tree(self) -> GraphForests:
        """All sites as one tree, solved exactly by one sweep; raises `CycleError` if there is a cycle."""
        return self._graph.whole_tree()

    def eliminate(self, max_entries: float, max_bytes: float, threads: int) -> np.ndarray | None:
        """The labelling of least energy by elimination; None if its predicted size exceeds a limit."""
        return eliminate_grid(self, max_entries, max_bytes, threads)

    @property
    def dual_work(self) -> float:
        """The work of one iteration of the dual, in sites x labels."""
        return self._graph.dual_work

    @property
    def has_few_edges(self) -> bool:
        """Whether there are fewer edges than sites, as in a forest."""
        return self._graph.has_few_edges

    @property
    def tree_bytes(self) -> int:
        """The memory that `whole_tree` needs, at most."""
        return self._graph.tree_bytes

    def beliefs(self) -> GraphBeliefs:
        """Messages of belief propagation."""
        return self._graph.beliefs()

    def dual(self, arithmetic: str = "auto") -> GraphDual:
        """Tree-reweighted messages, always in float64."""
        return self._graph.dual(arithmetic)

    def sampler(self) -> SiteSampler:
        """Single sites, drawn given their neighbours."""
        return self._graph.sampler()

    def tree_sampler(self) -> ForestSampler:
        """The trees of random forests, drawn given their neighbours."""
        return self._graph.tree_sampler()

"""How the questions of solvers about a graph are answered."""

from __future__ import annotations

import numpy as np

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.graph.dual import GraphDual
from treefield.backends.graph.elimination import eliminate
from treefield.backends.graph.messages import GraphBeliefs, message_bytes
from treefield.backends.graph.regions import GraphBalls
from treefield.backends.graph.site_costs import SiteSampler
from treefield.backends.graph.tree_sets import ForestSampler, GraphForests, GraphTreeSet, check_options, tree_set
from treefield.backends.graph.wide_trees import search_widths
from treefield.protocols import Trees, WideTrees
from treefield.validation import as_flat_input


class GraphBackend(GraphCosts):
    """Any graph: `treefield.protocols.Backend`."""

    paper_trees, search_trees = "trees", "trees"
    boxes = None

    @property
    def balls(self) -> GraphBalls:
        """The balls of the graph, for jumps."""
        return GraphBalls(self)

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part of the energy, and the number of forbidden costs in it."""
        from treefield.kernels.graph.energy import graph_energy

        finite, forbidden = graph_energy(x.reshape(-1), self.kernel_graph)
        return finite + self.offset, int(forbidden)

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The connected components of the sites where `x` and `y` differ: see the protocol."""
        from treefield.kernels.graph.energy import component_changes, join_differing

        flat, graph = (as_flat_input(x, self), as_flat_input(y, self, "y")), self.kernel_graph
        numbers = np.empty(self.size, np.int32)
        count = join_differing(*flat, graph, numbers)
        finite, forbidden = np.zeros(count), np.zeros(count, np.int64)
        component_changes(*flat, graph, numbers, finite, forbidden)
        return numbers.reshape(x.shape), finite, forbidden

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        """The segment of each site of a flat labelling, and the number of segments."""
        from treefield.kernels.graph.regions import join_segments

        numbers = np.empty(flat.size, np.int32)
        return numbers, join_segments(flat, self.kernel_graph, numbers)

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        """Write the label across a random edge of each segment's border to `out`."""
        from treefield.kernels.graph.regions import labels_across

        if len(self.edges):
            labels_across(flat, self.kernel_graph, numbers, seed, np.zeros(len(out), np.uint64), out)

    def check_tree_set(
        self, trees: Trees | None, *, order: str, bands: int | None, width: int | None, memory: str, threads: int | None
    ) -> None:
        """Raise what `tree_set` would raise for these arguments, without its work."""
        check_options(self, trees, order, bands, width, memory, threads)

    def tree_set(
        self,
        trees: Trees | None = None,
        *,
        order: str = "fixed",
        bands: int | None = None,
        width: int | None = None,
        memory: str = "auto",
        threads: int | None = None,
    ) -> GraphTreeSet:
        """Trees prepared for exact search; `treefield.t_icm` explains the parameters."""
        return tree_set(self, trees, order=order, bands=bands, width=width, memory=memory, threads=threads)

    def whole_tree(self) -> GraphForests:
        """All sites as one tree, solved exactly by one sweep; raises `CycleError` if there is a cycle."""
        return GraphForests(self, trees=[np.arange(self.size)])

    def solve_lines(self, nu: float, axis: int) -> np.ndarray:
        """Graphs have no lines."""
        raise TypeError("a graph has no lines")

    def eliminate(self, max_entries: float, max_bytes: float, threads: int) -> np.ndarray | None:
        """The labelling of least energy by elimination; None if its predicted size exceeds a limit."""
        return eliminate(self, max_entries, max_bytes, threads)

    @property
    def sweep_work(self) -> float:
        """The work of a sweep over the trees, in sites x labels."""
        return 4.0 * len(self.unary) * max(1.0, self.n_labels / 16 if self.joined.has_tables else 1.0)

    @property
    def wider_trees(self) -> list[WideTrees]:
        """The tree sets that a search should try besides `search_trees`, the narrowest first."""
        return search_widths(self)

    @property
    def dual_work(self) -> float:
        """The work of one iteration of the dual, in sites x labels."""
        labels = self.label_counts[self.edges].astype(np.float64)
        costs = labels.prod(axis=1) / 8 if self.joined.has_tables else labels.sum(axis=1)
        return float(16.0 * len(self.unary) + 8 * costs.sum())

    @property
    def has_few_edges(self) -> bool:
        """Whether there are fewer edges than sites, as in a forest."""
        return len(self.edges) < self.size

    @property
    def tree_bytes(self) -> int:
        """The memory that `whole_tree` needs, at most."""
        padded = 8 * int((-(-self.label_counts.astype(np.int64) // 8)).sum())
        return 2 * 8 * padded + 48 * (self.size + len(self.edges))

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        """Memory for tree sets and the dual, roughly, by (memory, arithmetic): the fastest first."""
        trees = 2 * self.tree_bytes  # as much again for jumps
        return {("auto", "exact"): trees + message_bytes(self), ("auto", None): trees}

    def beliefs(self) -> GraphBeliefs:
        """Messages of belief propagation."""
        return GraphBeliefs(self)

    def dual(self, arithmetic: str = "auto") -> GraphDual:
        """Tree-reweighted messages, always in float64."""
        return GraphDual(self, arithmetic)

    def sampler(self) -> SiteSampler:
        """Single sites, drawn given their neighbours."""
        return SiteSampler(self)

    def tree_sampler(self) -> ForestSampler:
        """The trees of random forests, drawn given their neighbours."""
        return ForestSampler(self)

    def marginals(self, axis: int) -> None:
        """Graphs have no lines."""
        return None

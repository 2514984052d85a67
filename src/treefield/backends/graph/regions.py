"""Balls of a graph: a centre and the sites nearest to it."""

from __future__ import annotations

import numpy as np

from treefield.backends.graph.costs import GraphCosts


class GraphBalls:
    """The balls of a graph: `treefield.protocols.Balls`."""

    def __init__(self, graph: GraphCosts) -> None:
        self._costs, self._graph = graph, graph.kernel_graph

    def draw(self, centres: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The end of each ball in the array of sites, and that array."""
        from treefield.kernels.graph.regions import draw_balls

        ends, sites = np.empty(len(centres), np.int64), np.empty(int(sizes.sum()), np.int32)
        seen = np.full(self._costs.size, -1, np.int32)
        return ends, sites[: draw_balls(self._graph, centres, sizes, ends, sites, seen)]

    def neighbours(self, centres: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random neighbour of each centre; the centre itself if it has none."""
        graph = self._graph
        degrees = np.diff(graph.starts)[centres]
        near = graph.starts[centres] + (rng.random(len(centres)) * degrees).astype(np.int64)
        return np.where(degrees > 0, graph.neighbours[np.minimum(near, len(graph.neighbours) - 1)], centres)

    def fill(self, y: np.ndarray, ends: np.ndarray, sites: np.ndarray, labels: np.ndarray) -> None:
        """Set each ball to its label where a site has that label, in place."""
        from treefield.kernels.graph.regions import fill_balls

        fill_balls(self._graph, y.reshape(-1), ends, sites, labels)

    def fill_best(self, y: np.ndarray, ends: np.ndarray, sites: np.ndarray) -> None:
        """Set each ball, in turn, to the constant label that costs least there, in place."""
        from treefield.kernels.graph.regions import best_balls

        seen = np.full(self._costs.size, -1, np.int32)
        best_balls(self._graph, y.reshape(-1), ends, sites, seen, np.empty(self._costs.n_labels))

    def scramble(self, y: np.ndarray, sites: np.ndarray, seed: np.uint64) -> None:
        """Set every site to a random label, in place."""
        from treefield.kernels.graph.regions import scramble_sites

        scramble_sites(self._graph, y.reshape(-1), sites, seed)

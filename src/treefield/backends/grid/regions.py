"""Boxes of a grid."""

from __future__ import annotations

import numpy as np

from treefield.backends.grid.costs import GridCosts


class GridBoxes:
    """The boxes of a grid: `treefield.protocols.Boxes`."""

    def __init__(self, costs: GridCosts) -> None:
        self._costs = costs
        self.shape = np.array((1, *costs.shape)[-3:])

    def fill(self, y: np.ndarray, low: np.ndarray, high: np.ndarray, labels: np.ndarray) -> None:
        """Set each box to its label, in place."""
        from treefield.kernels.grid.regions import fill_boxes

        fill_boxes(y.reshape(-1), self.shape, low.reshape(-1), high.reshape(-1), labels)

    def fill_best(self, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Set each box, in turn, to the constant label that costs least there, in place."""
        from treefield.kernels.grid.regions import best_boxes

        costs, labels = self._costs, self._costs.n_labels
        model = y.reshape(-1), costs.flat_unary, labels, costs.kernel_grid(), costs.rule(np.float64)
        boxes = self.shape, low.reshape(-1), high.reshape(-1)
        scratch = np.empty(labels + 8), np.empty(3 * labels)
        best_boxes(*model, costs.forbidden_cost, costs.has_edge_tables, costs.has_diagonal, *boxes, *scratch)

    def scramble(self, y: np.ndarray, low: np.ndarray, high: np.ndarray, seed: np.uint64) -> None:
        """Set every site of the boxes to a random label, in place."""
        from treefield.kernels.grid.regions import scramble_boxes

        scramble_boxes(y.reshape(-1), self.shape, low.reshape(-1), high.reshape(-1), self._costs.n_labels, seed)

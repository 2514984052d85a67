"""Messages between all neighbours of a grid, for belief propagation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.lines import forbidden_in_dtype
from treefield.backends.grid.schedules import LANES

if TYPE_CHECKING:
    from treefield.kernels.grid.messages import Field


class GridBeliefs:
    """The messages of a model, all 0 at first.

    Memory: a copy of the unary and one message per direction and site, in the arithmetic of the model; twice the
    messages once they are updated in parallel.
    """

    def __init__(self, costs: GridCosts) -> None:
        from treefield.kernels.grid import messages as bp
        from treefield.kernels.simd.arrays import aligned
        from treefield.kernels.simd.jit import as_compile_time

        self._costs, self._rule = costs, costs.rule()
        self._field = _field(costs)
        belief, sums, sent = (aligned(costs.n_labels * self._field.width, costs.dtype) for _ in range(3))
        h, out = (aligned(costs.n_labels * LANES, costs.dtype) for _ in range(2))
        self._scratch = bp.BeliefScratch(belief, sums, sent, h, out, aligned(3 * LANES, np.int64))
        nothing = self._field._replace(rows=0)
        with as_compile_time():
            bp.decode(nothing, self._rule, np.zeros(1, np.int32), self._scratch)

    def update_all(self, damping: float) -> float:
        """All messages at once, from the old ones; returns the greatest change of one."""
        from treefield.kernels.grid.messages import update_all
        from treefield.kernels.simd.jit import as_compile_time

        field = self._field
        if field.fresh.size == 0:
            field = field._replace(fresh=np.zeros_like(field.messages))
            with as_compile_time():
                update_all(field._replace(rows=0), self._rule, damping, self._scratch)
        change = update_all(field, self._rule, damping, self._scratch)
        self._field = field._replace(messages=field.fresh, fresh=field.messages)
        return float(change)

    def update_in_turn(self, damping: float) -> float:
        """Messages along each axis, forth and back, each from those just made; returns the greatest change of one."""
        from treefield.kernels.grid import messages as bp

        last = len(self._costs.shape) - 1
        work = self._rule, damping, self._scratch
        change = 0.0
        for axis in range(last + 1):
            update = bp.update_columns if axis == last else bp.update_rows
            for direction in (2 * axis + 1, 2 * axis):
                change = max(change, float(update(self._field, work[0], direction, *work[1:])))
        return change

    def decode(self, x: np.ndarray) -> None:
        """Each site's label of the least belief (Eq. 6), in place."""
        from treefield.kernels.grid.messages import decode

        decode(self._field, self._rule, x.reshape(-1), self._scratch)

    def decode_in_turn(self, x: np.ndarray) -> None:
        """One site after the other, given the labels of those before it, in place."""
        from treefield.kernels.grid.messages import decode_in_turn

        decode_in_turn(self._field, self._costs.rule(np.float64), x.reshape(-1), np.zeros(self._costs.n_labels + LANES))


def _field(costs: GridCosts) -> Field:
    from treefield.kernels.grid.messages import Field

    *others, columns = costs.shape
    rows, labels, dimensions = math.prod(others), costs.n_labels, len(costs.shape)
    width = (2 - (-columns // LANES)) * LANES
    inside = slice(LANES, LANES + columns)
    unary = np.zeros((rows, labels, width), costs.dtype)
    rows_of_costs = costs.unary.reshape(rows, columns, labels)
    for row in range(rows):
        unary[row, :, inside] = np.minimum(rows_of_costs[row].T, forbidden_in_dtype(costs, 1.0))
    grid = costs.kernel_grid()
    weights = np.zeros((dimensions, *others, width), costs.dtype)
    for axis, values in enumerate(costs.edge_weights()):
        shape = values.shape
        inner = weights[axis, ..., LANES : LANES + shape[-1]]
        inner[tuple(slice(0, n) for n in shape[:-1])] = values
    return Field(
        unary.reshape(-1),
        weights.reshape(-1),
        np.zeros(2 * dimensions * unary.size, costs.dtype),
        np.zeros(0, costs.dtype),
        np.array([math.prod(others[axis + 1 :]) for axis in range(dimensions - 1)] + [0]),
        np.array(costs.shape),
        grid.edge_offsets,
        grid.edge_strides,
        rows,
        columns,
        width,
        labels,
    )

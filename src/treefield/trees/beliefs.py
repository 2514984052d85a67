"""Messages between all neighbours of a grid, for belief propagation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treefield.trees.lines import stand_in
from treefield.trees.schedules import LANES


class Beliefs:
    """The messages of a model, all 0 at first.

    Memory: a copy of the unary and one message per direction and site, in the arithmetic of the model; twice the
    messages once they are updated in parallel.
    """

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels import bp
        from treefield.kernels.arrays import aligned
        from treefield.kernels.jit import as_compile_time

        self._mrf, self._rule = mrf, mrf.rule()
        self._field = _field(mrf)
        belief, costs, sent = (aligned(mrf.labels * self._field.width, mrf.dtype) for _ in range(3))
        h, out = (aligned(mrf.labels * LANES, mrf.dtype) for _ in range(2))
        self._scratch = bp.BeliefScratch(belief, costs, sent, h, out, aligned(3 * LANES, np.int64))
        nothing = self._field._replace(rows=0)
        with as_compile_time():
            bp.decode(nothing, self._rule, np.zeros(1, np.int32), self._scratch)

    def update_all(self, damping: float) -> float:
        """All messages at once, from the old ones; returns the greatest change of one."""
        from treefield.kernels.bp import update_all
        from treefield.kernels.jit import as_compile_time

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
        from treefield.kernels import bp

        last = len(self._mrf.shape) - 1
        work = self._rule, damping, self._scratch
        change = 0.0
        for axis in range(last + 1):
            update = bp.update_columns if axis == last else bp.update_rows
            for direction in (2 * axis + 1, 2 * axis):
                change = max(change, float(update(self._field, work[0], direction, *work[1:])))
        return change

    def decode(self, x: np.ndarray) -> None:
        """Each site's label of the least belief (Eq. 6), in place."""
        from treefield.kernels.bp import decode

        decode(self._field, self._rule, x.reshape(-1), self._scratch)

    def decode_in_turn(self, x: np.ndarray) -> None:
        """One site after the other, given the labels of those before it, in place."""
        from treefield.kernels.bp import decode_in_turn

        decode_in_turn(self._field, self._mrf.rule(np.float64), x.reshape(-1), np.zeros(self._mrf.labels + LANES))


def _field(mrf: Any) -> Any:
    from treefield.kernels.bp import Field

    *others, columns = mrf.shape
    rows, labels, dimensions = math.prod(others), mrf.labels, len(mrf.shape)
    width = (2 - (-columns // LANES)) * LANES
    inside = slice(LANES, LANES + columns)
    unary = np.zeros((rows, labels, width), mrf.dtype)
    costs = mrf.unary.reshape(rows, columns, labels)
    for row in range(rows):
        unary[row, :, inside] = np.minimum(costs[row].T, stand_in(mrf, 1.0))
    grid = mrf.kernel_grid()
    weights = np.zeros((dimensions, *others, width), mrf.dtype)
    for axis, values in enumerate(mrf.edge_weights()):
        shape = values.shape
        inner = weights[axis, ..., LANES : LANES + shape[-1]]
        inner[tuple(slice(0, n) for n in shape[:-1])] = values
    return Field(
        unary.reshape(-1),
        weights.reshape(-1),
        np.zeros(2 * dimensions * unary.size, mrf.dtype),
        np.zeros(0, mrf.dtype),
        np.array([math.prod(others[axis + 1 :]) for axis in range(dimensions - 1)] + [0]),
        np.array(mrf.shape),
        grid.edge_offsets,
        grid.edge_strides,
        rows,
        columns,
        width,
        labels,
    )

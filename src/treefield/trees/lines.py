"""The lines along one axis of a grid, located and packed for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.trees import schedules


class AxisLines:
    """The lines along one axis: where they are, their costs, and work space for every queue.

    The costs are packed once, in the unary's own dtype (memory: one unary), or with ``packed=False`` a step at a time (memory: length x labels x a
    few numbers per lane and queue). Without `absorb` the lines beside do not count; `scale` multiplies the pairwise costs.
    """

    def __init__(self, mrf: Any, plan: schedules.Schedule, *, packed: bool = True, absorb: bool = True, scale: float = 1.0) -> None:
        from treefield.kernels.arrays import aligned
        from treefield.kernels.jit import loading
        from treefield.kernels.lines import LANES, Packed, pack_unary, pack_weights

        self.plan = plan
        self._mrf = mrf
        grid = mrf.kernel_grid()
        self.lines, axes = _locate(grid, plan, mrf.labels, absorb)
        weights = grid.weights if scale == 1.0 else grid.weights * grid.weights.dtype.type(scale)
        self._weights = weights, weights[axes] if grid.uniform else weights[:0], grid.uniform
        self._big = _stand_in(mrf)
        slots = 1 if grid.uniform else self.lines.length
        blocks = len(plan.lines) if packed else 1
        unary_size = blocks * self.lines.length * mrf.labels * LANES
        weights_size = blocks * len(axes) * slots * LANES

        def allocate(unary: int, weights: int) -> Any:
            return Packed(aligned(unary, mrf.unary.dtype), aligned(weights, grid.weights.dtype), slots)

        self._allocate_block = None if packed else lambda: allocate(unary_size, weights_size)
        self._packed = allocate(unary_size, weights_size) if packed else None
        self._spaces: dict[int, tuple[Any, Any, Any]] = {}
        steps = np.arange(blocks if packed else 0)
        nothing = steps[:0]
        with loading():
            if packed:
                pack_unary(mrf.flat_unary, self.lines, nothing, self._big, self._packed.unary)
                pack_weights(*self._weights, self.lines, nothing, slots, self._packed.weights)
            self.solve(np.zeros(1, np.int32), nothing)
        if packed:
            pack_unary(mrf.flat_unary, self.lines, steps, self._big, self._packed.unary)
            pack_weights(*self._weights, self.lines, steps, slots, self._packed.weights)

    def solve(self, flat: np.ndarray, steps: np.ndarray, check: bool = True, queue: int = 0) -> float:
        """Solve the lines of these steps in place; `queue` names the work space."""
        from treefield.kernels.lines import solve_lines, solve_lines_unpacked

        packed, rule, scratch = self.space(queue)
        if self._packed is not None:
            return solve_lines(flat, steps, packed, self.lines, rule, scratch, check)
        costs = self._mrf.flat_unary, self._big, *self._weights
        return solve_lines_unpacked(flat, steps, *costs, packed, self.lines, rule, scratch, check)

    def space(self, queue: int) -> tuple[Any, Any, Any]:
        """The packed costs, the message rule and the work space of one queue."""
        if queue not in self._spaces:
            packed = self._packed if self._allocate_block is None else self._allocate_block()
            self._spaces[queue] = packed, self._mrf.rule(), _scratch(self.lines.length, self._mrf.labels, self._mrf.dtype)
        return self._spaces[queue]


def _stand_in(mrf: Any) -> np.generic:
    """`mrf.big` in the unary's own dtype: the greatest value that a packed cost may have."""
    dtype = mrf.unary.dtype
    return dtype.type(min(mrf.big, np.finfo(dtype).max)) if dtype.kind == "f" else np.iinfo(dtype).max


def _scratch(length: int, labels: int, dtype: np.dtype) -> Any:
    from treefield.kernels.arrays import aligned
    from treefield.kernels.lines import LANES, Scratch

    message = labels * LANES
    return Scratch(
        aligned(length * message, dtype),
        aligned(message, dtype),
        aligned(message, dtype),
        aligned(length * LANES, dtype),
        aligned(length * LANES, np.int32),
    )


def _locate(grid: Any, plan: schedules.Schedule, labels: int, absorb: bool) -> tuple[Any, np.ndarray]:
    """Where the lines of a schedule lie, and the axis of the edges in each direction."""
    from treefield.kernels.lines import Lines

    shape, ndim, axis = tuple(int(n) for n in grid.shape), len(grid.shape), plan.axis
    edge_strides = grid.edge_strides.reshape(ndim, ndim)
    others = [a for a in range(ndim) if a != axis]
    used = plan.lines >= 0
    coordinates = dict(zip(others, np.unravel_index(np.where(used, plan.lines, np.maximum(plan.lines[:, :1], 0)), [shape[a] for a in others]), strict=True))
    own = sum(coordinates[a] * grid.strides[a] for a in others)
    own_edge = grid.edge_offsets[axis] + sum(coordinates[a] * edge_strides[axis, a] for a in others)
    sites, edges, exists, axes, steps = [own], [own_edge], [used & (shape[axis] > 1)], [axis], [edge_strides[axis, axis]]
    for a in others:
        along = sum(coordinates[b] * edge_strides[a, b] for b in others if b != a) + grid.edge_offsets[a]
        for shift in (-1, 1):
            there = used & (coordinates[a] + shift >= 0) & (coordinates[a] + shift < shape[a])
            first = coordinates[a] - (shift < 0)  # the edge is numbered by its first site
            sites.append(np.where(there, own + shift * grid.strides[a], own))
            edges.append(np.where(there, along + first * edge_strides[a, a], 0))
            exists.append(there & absorb)
            axes.append(a)
            steps.append(edge_strides[a, axis] if shape[a] > 1 else 0)
    lines = Lines(
        sites=np.stack(sites, axis=1).astype(np.int64).reshape(-1),
        exists=np.stack(exists, axis=1).reshape(-1),
        counts=used.sum(axis=1),
        edges=np.stack(edges, axis=1).astype(np.int64).reshape(-1),
        edge_strides=np.array(steps),
        stride=int(grid.strides[axis]),
        length=shape[axis],
        labels=labels,
        directions=len(axes),
    )
    return lines, np.array(axes)

"""The checkerboard: every second site of a grid, then the others, each drawn given its neighbours (Geman & Geman)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treefield.trees.lines import stand_in
from treefield.trees.schedules import LANES
from treefield.validation import as_flat_labels, as_real_scalar

_COLDEST = 1e-30  # the least temperature that float32 can divide by; labels of unlike cost are never mixed so far down


class Checkerboard:
    """Single sites, sampled: a site takes a label with probability proportional to exp(-cost / temperature).

    The costs are packed once. Memory: one unary, and one copy of the weights unless they are uniform.
    """

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels.anneal import pack_board, sample_board
        from treefield.kernels.jit import as_compile_time

        self._mrf = mrf
        self._board = _board(mrf)
        self._rule = mrf.rule()
        if mrf.size == 1 and hasattr(self._rule, "tables"):  # no edges, yet the kernel looks at one
            self._rule = self._rule._replace(tables=np.zeros(mrf.labels**2, self._rule.tables.dtype))
        big = stand_in(mrf, 1.0)
        nothing = self._board._replace(planes=0)
        with as_compile_time():
            pack_board(mrf.flat_unary, big, nothing)
            sample_board(np.zeros(0, np.int32), nothing, self._rule, self._heat(1.0), 0)
        pack_board(mrf.flat_unary, big, self._board)

    def sample(self, x: np.ndarray, temperature: float, rng: np.random.Generator) -> float:
        """Draw every site once given its neighbours, in place on an int32 labelling; returns the energy change.

        A temperature of 0 takes the cheapest label, the lowest among equals; that of infinity any that is not
        forbidden.
        """
        from treefield.kernels.anneal import sample_board

        heat = self._heat(as_real_scalar(temperature, "temperature", infinite=True))
        return sample_board(as_flat_labels(x, self._mrf), self._board, self._rule, heat, int(rng.integers(2**63)))

    def cool(self, x: np.ndarray, temperatures: np.ndarray, rng: np.random.Generator) -> float:
        """The same for one temperature after the other."""
        return sum(self.sample(x, float(temperature), rng) for temperature in temperatures)

    def _heat(self, temperature: float) -> Any:
        """What the kernel needs to know of a temperature, in the arithmetic of the costs."""
        from treefield.kernels.anneal import Heat

        if temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {temperature:g}")
        number = self._mrf.dtype.type
        if temperature == 0:  # only the cheapest label is possible, as a cost above the least is beyond the limit
            return Heat(number(0), np.finfo(number).smallest_subnormal, np.float32(0))
        scale = math.log2(math.e) / max(temperature, _COLDEST)
        # float32 has powers down to 2**-126; of finite costs no two differ by half of what stands in for infinity
        limit = min(126 / scale if scale else math.inf, self._mrf.big / 2, float(np.finfo(number).max))
        return Heat(number(-scale), number(limit), np.float32(1))


def _board(mrf: Any) -> Any:
    from treefield.kernels.anneal import Board
    from treefield.kernels.arrays import aligned

    planes, rows, columns = (1, *mrf.shape)[-3:]
    places = (columns + 1) // 2
    half = (places // LANES + 1) * LANES
    groups = -(-places // LANES)
    grid = mrf.kernel_grid()
    weights = _packed_weights(grid, (planes, rows, columns), half)
    edges = (planes - 1) * rows * columns, planes * (rows - 1) * columns, planes * rows * (columns - 1)
    return Board(
        unary=aligned(2 * planes * rows * groups * mrf.labels * LANES, mrf.unary.dtype),
        weights=weights,
        labels=np.zeros(2 * planes * rows * half, np.uint8 if mrf.labels <= 256 else np.int32),
        h=aligned(mrf.labels * LANES, mrf.dtype),
        sums=aligned(mrf.labels * LANES, np.float32),
        edges=np.array([edges[0], edges[0] + edges[1], max(sum(edges) - 1, 0)]),
        planes=planes,
        rows=rows,
        columns=columns,
        label_count=mrf.labels,
        half=half,
        groups=groups,
        weight_axis=2 * half * (1 if grid.uniform else planes * rows),
        weight_row=0 if grid.uniform else 2 * half,
    )


def _packed_weights(grid: Any, shape: tuple[int, ...], half: int) -> np.ndarray:
    """The weights where their edges' first sites are, by column parity: [axis][row][parity][half], one row per axis if
    they are uniform; before them zeros for rows without a neighbour."""
    from treefield.kernels.arrays import aligned

    planes, rows, columns = shape
    height = 1 if grid.uniform else planes * rows
    packed = aligned((3 * height + 1) * 2 * half, grid.weights.dtype)
    packed[:] = 0
    body = packed[2 * half :].reshape(3, height, 2, half)
    first = 3 - len(grid.shape)
    for axis in range(first, 3):
        sizes = [n - (a == axis) for a, n in enumerate(shape)]
        if grid.uniform:
            full = np.zeros((1, columns), grid.weights.dtype)
            full[:, : sizes[2]] = grid.weights[axis - first]
        else:
            offset = grid.edge_offsets[axis - first]
            full = np.zeros(shape, grid.weights.dtype)
            full[: sizes[0], : sizes[1], : sizes[2]] = grid.weights[offset : offset + math.prod(sizes)].reshape(sizes)
            full = full.reshape(height, columns)
        for parity in range(2):
            half_row = full[:, parity::2]
            body[axis, :, parity, : half_row.shape[1]] = half_row
    return packed

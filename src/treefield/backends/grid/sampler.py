"""The checkerboard: every second site of a grid, then the others, each drawn given its neighbours (Geman & Geman)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.lines import forbidden_in_dtype
from treefield.backends.grid.schedules import LANES
from treefield.validation import as_flat_labels, as_non_negative

if TYPE_CHECKING:
    from treefield.kernels.grid.energy import Grid
    from treefield.kernels.grid.sampler import Board, Heat

_COLDEST = 1e-30  # the least temperature that float32 can divide by; labels of unlike cost are never mixed so far down


class Checkerboard:
    """Single sites, sampled: a site takes a label with probability proportional to exp(-cost / temperature).

    The costs are packed once. Memory: one unary, and one copy of the weights unless they are uniform.
    """

    def __init__(self, costs: GridCosts) -> None:
        from treefield.kernels.grid.sampler import pack_board, sample_board
        from treefield.kernels.simd.jit import as_compile_time

        self._costs = costs
        self._board = _board(costs)
        self._rule = costs.rule()
        forbidden_cost = forbidden_in_dtype(costs, 1.0)
        nothing = self._board._replace(planes=0)
        with as_compile_time():
            pack_board(costs.flat_unary, forbidden_cost, nothing)
            sample_board(np.zeros(0, np.int32), nothing, self._rule, self._heat(1.0), 0)
        pack_board(costs.flat_unary, forbidden_cost, self._board)

    def sample(self, x: np.ndarray, temperature: float, rng: np.random.Generator) -> float:
        """Draw every site once given its neighbours, in place on an int32 labelling; returns the energy change.

        A temperature of 0 takes the cheapest label, the lowest among equals; that of infinity any that is not
        forbidden.
        """
        from treefield.kernels.grid.sampler import sample_board

        heat = self._heat(as_non_negative(temperature, "temperature", infinite=True))
        return sample_board(as_flat_labels(x, self._costs), self._board, self._rule, heat, int(rng.integers(2**63)))

    def cool(self, x: np.ndarray, temperatures: np.ndarray, rng: np.random.Generator) -> float:
        """The same for one temperature after the other."""
        return sum(self.sample(x, float(temperature), rng) for temperature in temperatures)

    def _heat(self, temperature: float) -> Heat:
        """The kernel's parameters for a temperature, in the arithmetic of the costs."""
        from treefield.kernels.grid.sampler import Heat

        number = self._costs.dtype.type
        if temperature == 0:  # only the cheapest label is possible, as a cost above the least is beyond the limit
            return Heat(number(0), np.finfo(number).smallest_subnormal, np.float32(0))
        scale = math.log2(math.e) / max(temperature, _COLDEST)
        # float32 has powers down to 2**-126; of finite costs no two differ by half of what stands in for infinity
        limit = min(126 / scale if scale else math.inf, self._costs.forbidden_cost / 2, float(np.finfo(number).max))
        return Heat(number(-scale), number(limit), np.float32(1))


def _board(costs: GridCosts) -> Board:
    from treefield.kernels.grid.sampler import Board
    from treefield.kernels.simd.arrays import aligned

    planes, rows, columns = (1, *costs.shape)[-3:]
    places = (columns + 1) // 2
    half = (places // LANES + 1) * LANES
    groups = -(-places // LANES)
    grid = costs.kernel_grid()
    weights = _packed_weights(grid, (planes, rows, columns), half)
    edges = (planes - 1) * rows * columns, planes * (rows - 1) * columns, planes * rows * (columns - 1)
    return Board(
        unary=aligned(2 * planes * rows * groups * costs.n_labels * LANES, costs.unary.dtype),
        weights=weights,
        labels=np.zeros(2 * planes * rows * half, np.uint8 if costs.n_labels <= 256 else np.int32),
        h=aligned(costs.n_labels * LANES, costs.dtype),
        sums=aligned(costs.n_labels * LANES, np.float32),
        edges=np.array([edges[0], edges[0] + edges[1], max(sum(edges) - 1, 0)]),
        planes=planes,
        rows=rows,
        columns=columns,
        label_count=costs.n_labels,
        half=half,
        groups=groups,
        weight_axis=2 * half * (1 if grid.uniform else planes * rows),
        weight_row=0 if grid.uniform else 2 * half,
    )


def _packed_weights(grid: Grid, shape: tuple[int, ...], half: int) -> np.ndarray:
    """The weights where their edges' first sites are, by column parity: [axis][row][parity][half], one row per axis if
    they are uniform; before them zeros for rows without a neighbour."""
    from treefield.kernels.simd.arrays import aligned

    planes, rows, columns = shape
    height = 1 if grid.uniform else planes * rows
    packed = aligned((3 * height + 1) * 2 * half, grid.weights.dtype)
    packed[:] = 0
    body = packed[2 * half :].reshape(3, height, 2, half)
    first = 3 - len(grid.shape)
    for axis in range(first, 3):
        sizes = [n - (a == axis) for a, n in enumerate(shape)]
        if grid.uniform:
            padded = np.zeros((1, columns), grid.weights.dtype)
            padded[:, : sizes[2]] = grid.weights[axis - first]
        else:
            offset = grid.edge_offsets[axis - first]
            padded = np.zeros(shape, grid.weights.dtype)
            padded[: sizes[0], : sizes[1], : sizes[2]] = grid.weights[offset : offset + math.prod(sizes)].reshape(sizes)
            padded = padded.reshape(height, columns)
        for parity in range(2):
            half_row = padded[:, parity::2]
            body[axis, :, parity, : half_row.shape[1]] = half_row
    return packed

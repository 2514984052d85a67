"""The lines along one axis of a grid, located and packed for the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.grid import schedules
from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.schedules import LANES

if TYPE_CHECKING:
    from treefield.kernels.grid.energy import Grid
    from treefield.kernels.grid.lines import Scratch
    from treefield.kernels.grid.packing import Lines, Packed
    from treefield.kernels.rules.rule import Rule


class WorkSpace:
    """Packed labels, and scratch per thread: shared by the axes of a grid, which are solved one after the other."""

    def __init__(self, costs: GridCosts, plans: list[schedules.Schedule]) -> None:
        self._costs = costs
        size = max((len(plan.lines) * costs.shape[plan.axis] for plan in plans), default=0) * LANES
        self.labels = np.zeros(size, np.uint8 if costs.n_labels <= 256 else np.int32)
        self._scratch: dict[int, Scratch] = {}

    def scratch(self, thread: int) -> Scratch:
        """The scratch of one thread."""
        if thread not in self._scratch:
            self._scratch[thread] = _scratch(max(self._costs.shape), self._costs.n_labels, self._costs.dtype)
        return self._scratch[thread]


class AxisLines:
    """The lines along one axis: where they are, and their costs.

    The costs are packed once, in the unary's own dtype (memory: one unary), and the labels at every sweep; or with
    ``packed=False`` a step's costs at a time (memory: length x labels x a few numbers per lane and thread). Without
    `absorb` the neighbouring lines do not count; `scale` multiplies the pairwise costs. With `ring` the ends of a
    periodic line are joined, and its first site keeps its label; otherwise they are not.
    """

    def __init__(
        self,
        costs: GridCosts,
        plan: schedules.Schedule,
        space: WorkSpace,
        *,
        packed: bool = True,
        absorb: bool = True,
        scale: float = 1.0,
        ring: bool = False,
    ) -> None:
        from treefield.kernels.grid.packing import NaturalCosts
        from treefield.kernels.simd.arrays import aligned
        from treefield.kernels.simd.jit import as_compile_time

        self.plan = plan
        self.costs = costs
        grid = costs.kernel_grid()
        if ring and grid.uniform:  # the edges of its first site are others than those of the rest
            every = [weight.reshape(-1) for weight in costs.edge_weights()]
            grid = grid._replace(weights=np.concatenate(every).astype(grid.weights.dtype), uniform=False)
        self.lines, numbers = locate(costs, grid, plan, absorb, packed, ring)
        weights = grid.weights if scale == 1.0 else grid.weights * grid.weights.dtype.type(scale)
        axis_weights = weights[numbers] if grid.uniform else weights[:0]
        self._natural = NaturalCosts(
            costs.flat_unary, forbidden_in_dtype(costs, scale), weights, axis_weights, grid.uniform
        )
        self._slots = 1 if grid.uniform else self.lines.length
        self._packed = self._allocate(len(plan.lines)) if packed else None
        self._space = space
        self.changes = np.zeros(len(plan.blocks))
        self._by_thread: dict[int, tuple[Packed, Rule]] = {}
        blocks = np.arange(len(plan.lines))
        with as_compile_time():
            self._pack(blocks[:0])
            self.enter(aligned(0, np.int32), blocks[:0])
            self.solve(aligned(0, np.int32), blocks[:0])
        self._pack(blocks)

    def enter(self, flat: np.ndarray, blocks: np.ndarray, thread: int = 0) -> None:
        """Bring the labels of these blocks' lines in."""
        from treefield.kernels.grid.packing import pack_labels

        if self._packed is not None:
            pack_labels(flat, self.lines, blocks, self._space.labels)

    def solve(self, flat: np.ndarray, steps: np.ndarray, check: bool = True, thread: int = 0) -> None:
        """Solve the lines of these steps in place, their labels brought in before; `thread` names the work space.

        The energy changes are in `changes`, so that their sum does not depend on who solved which step.
        """
        from treefield.kernels.grid.lines import solve_lines, solve_lines_unpacked

        work = *self._packed_costs(thread), self._space.scratch(thread), check, self.changes
        if self._packed is not None:
            solve_lines(self._space.labels, flat, steps, *work)
        else:
            solve_lines_unpacked(flat, steps, self._natural, *work)

    def update_sites(self, flat: np.ndarray, steps: np.ndarray) -> float:
        """One pass of ICM over the lines of these steps in place, their labels brought in before."""
        from treefield.kernels.grid.site_updates import icm_lines

        return icm_lines(self._space.labels, flat, steps, *self._packed_costs(0), self._space.scratch(0))

    def draw(
        self, out: np.ndarray, steps: np.ndarray, closeness: float, temperature: float, seed: int, thread: int = 0
    ) -> tuple[float, int]:
        """Draw labels of the lines of these steps from their min-marginals, where the two best are close.

        The labels are packed before and stay unchanged, so that all lines see the same labels; new labels are written
        to the flat labelling `out`. Returns the sum of the differences between the two best min-marginals of a site,
        and the number of sites that have two.
        """
        from treefield.kernels.grid.marginals import draw_lines

        largest = float(np.finfo(self.costs.dtype).max)
        limit = min(self.costs.forbidden_cost / 2, largest)  # possible labels differ by less, forbidden ones by more
        options = float(closeness), min(1 / float(temperature), largest), limit, np.uint64(seed)
        return draw_lines(
            self._space.labels, out, steps, *self._packed_costs(thread), self._space.scratch(thread), *options
        )

    def _pack(self, blocks: np.ndarray) -> None:
        from treefield.kernels.grid.packing import pack_unary, pack_weights

        if self._packed is not None:
            pack_unary(self._natural, self.lines, blocks, self._packed.unary)
            pack_weights(self._natural, self.lines, blocks, self._slots, self._packed.weights)

    def _allocate(self, blocks: int) -> Packed:
        from treefield.kernels.grid.packing import Packed
        from treefield.kernels.simd.arrays import aligned

        unary = aligned(blocks * self.lines.length * self.lines.labels * LANES, self.costs.unary.dtype)
        weights = aligned(blocks * self.lines.directions * self._slots * LANES, self._natural.edge_weights.dtype)
        return Packed(unary, weights, self._slots)

    def _packed_costs(self, thread: int) -> tuple[Packed, Lines, Rule]:
        """The packed costs, the lines and the message rule, as one thread sees them: a rule may hold work space."""
        if thread not in self._by_thread:
            self._by_thread[thread] = self._allocate(1) if self._packed is None else self._packed, self.costs.rule()
        packed, rule = self._by_thread[thread]
        return packed, self.lines, rule


def forbidden_in_dtype(costs: GridCosts, scale: float) -> np.generic:
    """`forbidden_cost` in the unary's dtype, for pairwise costs times `scale`: the largest value of a packed cost."""
    dtype = costs.unary.dtype
    if dtype.kind != "f":
        return dtype.type(np.iinfo(dtype).max)
    return dtype.type(min(costs.forbidden_cost * max(scale, 1.0), float(np.finfo(dtype).max)))


def _scratch(length: int, labels: int, dtype: np.dtype) -> Scratch:
    from treefield.kernels.grid.lines import Scratch
    from treefield.kernels.simd.arrays import aligned

    message = labels * LANES
    return Scratch(
        aligned(length * message, dtype),
        aligned(message, dtype),
        aligned(message, dtype),
        aligned(length * LANES, dtype),
        aligned(length * LANES, np.int32),
    )


def locate(
    costs: GridCosts, grid: Grid, plan: schedules.Schedule, absorb: bool, packed: bool, ring: bool
) -> tuple[Lines, np.ndarray]:
    """Where the lines of a schedule lie, and which of the grid's steps the edges in each direction are."""
    from treefield.kernels.grid.packing import Lines

    steps, periodic = costs.lattice.steps, costs.periodic
    shape, ndim, axis = tuple(int(n) for n in grid.shape), len(grid.shape), plan.axis
    length, stride = shape[axis], int(grid.strides[axis])
    edge_strides = grid.edge_strides.reshape(len(steps), ndim)
    others = [a for a in range(ndim) if a != axis]
    cross = tuple(shape[a] for a in others)
    used = plan.lines >= 0
    line = np.where(used, plan.lines, np.maximum(plan.lines[:, :1], 0))
    coordinates = dict(zip(others, np.unravel_index(line, cross), strict=True))
    own = sum(coordinates[a] * grid.strides[a] for a in others)
    own_edge = grid.edge_offsets[axis] + sum(coordinates[a] * edge_strides[axis, a] for a in others)
    if length == 1:  # there is none: kernels read the first edge of all, with weight 0
        own_edge = np.zeros_like(line)
    neighbours, edges, exists = [line], [own_edge], [used & (length > 1)]
    numbers, shifts, strides = [axis], [0], [edge_strides[axis, axis]]
    for number, step in enumerate(steps):
        if number == axis:
            continue
        joined = all(n > 1 for n, s in zip(shape, step, strict=True) if s)
        for sign in (-1, 1):  # edges whose second, and those whose first site is on the line
            shift = sign * step[axis]
            there = used & joined
            first = np.full(line.shape, grid.edge_offsets[number] + min(shift, 0) * edge_strides[number, axis])
            shifted = []
            for a in others:
                coordinate = coordinates[a] + sign * step[a]
                lower = np.minimum(coordinates[a], coordinate)
                if periodic[a]:
                    coordinate, lower = coordinate % shape[a], lower % shape[a]
                there = there & (coordinate >= 0) & (coordinate < shape[a])
                first += lower * edge_strides[number, a]  # an edge has the number of its lower end
                shifted.append(coordinate)
            neighbours.append(np.where(there, np.ravel_multi_index(shifted, cross, mode="clip"), line))
            edges.append(np.where(there, first, 0))
            exists.append(there & absorb)
            numbers.append(number)
            shifts.append(shift)
            strides.append(edge_strides[number, axis] if joined else 0)
    if ring:
        stride_along = edge_strides[axis, axis]
        neighbours += [line, line]
        edges += [own_edge - stride_along, own_edge]  # at positions 1 and length - 1 the first and the last
        exists += [used & absorb] * 2
        numbers += [axis, axis]
        shifts += [-1, 1 - length]
        strides += [stride_along, stride_along]
    neighbour = np.stack(neighbours, axis=1)
    if packed:
        place = np.zeros(int(np.prod(cross)), np.int64)
        place[plan.lines[used]] = np.flatnonzero(used)
        origins = place[neighbour] // LANES * length * LANES + place[neighbour] % LANES
    else:
        origins = sum(c * grid.strides[a] for a, c in zip(others, np.unravel_index(neighbour, cross), strict=True))
    lines = Lines(
        blocks=plan.blocks,
        active=plan.active,
        sites=own.astype(np.int64).reshape(-1),
        exists=np.stack(exists, axis=1).reshape(-1),
        shifts=np.array(shifts) if any(shifts) else None,
        ring=ring,
        edges=np.stack(edges, axis=1).astype(np.int64).reshape(-1),
        edge_strides=np.array(strides),
        origins=origins.astype(np.int64).reshape(-1),
        contiguous_start=_contiguous_starts(origins, np.stack([used, *exists[1:]], axis=1), packed).reshape(-1),
        slot_stride=LANES if packed else 0,
        label_stride=0 if packed else stride,
        stride=stride,
        length=length,
        labels=costs.n_labels,
        directions=len(numbers),
    )
    return lines, np.array(numbers)


def _contiguous_starts(origins: np.ndarray, exists: np.ndarray, packed: bool) -> np.ndarray:
    """Where eight contiguous labels begin, ignoring lanes without an edge; -1 if they are not contiguous."""
    starts = origins - np.arange(LANES)
    first = np.take_along_axis(starts, exists.argmax(axis=-1)[..., None], axis=-1)
    aligned = packed & exists.any(axis=-1) & (first % LANES == 0)[..., 0] & (~exists | (starts == first)).all(axis=-1)
    return np.where(aligned, first[..., 0], -1)


def solve_lines_alone(costs: GridCosts, nu: float, axis: int) -> np.ndarray:
    """The labelling of least energy without the edges between the lines along an axis, unary costs times `nu`."""
    # min nu u + V is min u + V / nu; with nu = 0 only forbidden labels are left of the unary
    if nu == 0:
        unary = np.where(np.isinf(costs.unary), np.inf, 0)
        costs = GridCosts(unary, costs.pairwise, costs.lattice, costs.weights, costs.mask)
    plan = schedules.alternating(costs.shape, axis % len(costs.shape))
    lines = AxisLines(costs, plan, WorkSpace(costs, [plan]), absorb=False, scale=1 / nu if nu > 0 else 1.0)
    x = np.zeros(costs.shape, np.int32)
    flat = x.reshape(-1)
    lines.enter(flat, plan.blocks)
    for queues in plan.phases(None):
        for steps in queues:
            lines.solve(flat, steps, check=False)
    return x

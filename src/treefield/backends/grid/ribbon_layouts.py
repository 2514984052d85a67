"""Where the ribbons of a grid lie, which of them are solved at once, and which edges are inside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.lines import forbidden_in_dtype, locate
from treefield.backends.grid.schedules import LANES, Schedule, cross_shape

if TYPE_CHECKING:
    from treefield.kernels.grid.packing import Lines, NaturalCosts
    from treefield.kernels.grid.ribbon_costs import Ribbons


class Bar:
    """The shape of the ribbons along an axis: `sizes` are the lines across, along each of the other axes.

    In 3-D a ribbon is a bar, as square as its width allows.
    """

    def __init__(self, costs: GridCosts, axis: int, width: int) -> None:
        self.axis, self.length = axis, costs.shape[axis]
        self.shape, self.periodic = cross_shape(costs.shape, axis), cross_shape(costs.periodic, axis)
        largest = [n - ring for n, ring in zip(self.shape, self.periodic, strict=True)]
        self.sizes: tuple[int, ...] = (min(width, largest[0]),)
        if len(largest) == 2:
            first = min(math.isqrt(width), largest[0])
            second = min(width // first, largest[1])
            self.sizes = (min(width // second, largest[0]), second)
        self.rows = math.prod(self.sizes)
        self.has_diagonals = costs.lattice.connectivity == 2 and self.rows > 1
        self.queue = self.rows + self.has_diagonals
        self.steps = self.rows * self.length

    @property
    def is_whole(self) -> bool:
        """Whether one ribbon is the whole grid."""
        return self.sizes == self.shape


class Layout(NamedTuple):
    """Ribbons along one axis, at one place: groups of eight, and which of them are solved in each phase."""

    lines: Lines
    ribbons: Ribbons
    costs: NaturalCosts
    phases: list[np.ndarray]
    changes: np.ndarray


def lay_out(costs: GridCosts, bar: Bar, offsets: tuple[int, ...]) -> Layout:
    """Where the ribbons along an axis lie, the first of them ending at the offsets."""
    from treefield.kernels.grid.packing import NaturalCosts
    from treefield.kernels.grid.ribbon_costs import Ribbons

    numbers, phases = _groups(bar, offsets)
    grid = costs.kernel_grid()
    plan = Schedule(bar.axis, numbers, np.zeros(0, np.int64), np.zeros(0, np.int64), lambda rng: [])
    lines, directions = locate(costs, grid, plan, absorb=True, packed=False, ring=False)
    kinds, inside, outside = _edges(costs, bar, numbers, lines)
    used = numbers >= 0
    ribbons = Ribbons(
        rows=bar.rows,
        queue=bar.queue,
        near=bar.sizes[-1] if len(bar.sizes) == 2 and bar.sizes[0] > 1 else 1,
        roles=kinds[:, 0].copy(),
        directions=kinds[:, 1].copy(),
        distances=kinds[:, 2].copy(),
        inside=inside,
        outside=outside,
        active=_masks(used),
        ring=costs.periodic[bar.axis],
        start=0,
    )
    axis_weights = grid.weights[directions] if grid.uniform else grid.weights[:0]
    natural = NaturalCosts(costs.flat_unary, forbidden_in_dtype(costs, 1.0), grid.weights, axis_weights, grid.uniform)
    return Layout(lines, ribbons, natural, phases, np.zeros(len(numbers) // bar.rows))


def _groups(bar: Bar, offsets: tuple[int, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The line numbers of groups of eight ribbons, [group, row][lane], -1 where there is none; and each phase's groups.

    Ribbons of one phase do not touch: along each axis across, their colours alternate, with a third colour for the last
    of an odd number of ribbons around a periodic axis.
    """
    across = zip(bar.shape, bar.sizes, offsets, bar.periodic, strict=True)
    cuts = [_cut(n, size, offset, ring=bool(ring)) for n, size, offset, ring in across]
    members, colour = cuts[0]
    if len(cuts) == 2:
        (rows, row_colour), (columns, column_colour) = cuts
        first, second = rows[:, None, :, None], columns[None, :, None, :]
        members = np.where((first >= 0) & (second >= 0), first * bar.shape[1] + second, -1).reshape(-1, bar.rows)
        number = 1 + max(row_colour.max(), column_colour.max())
        colour = (row_colour[:, None] + column_colour).reshape(-1) % number
    numbers, phases, count = [], [], 0
    for phase in np.unique(colour):
        own = members[colour == phase]
        groups = -(-len(own) // LANES)
        padded = np.full((groups * LANES, bar.rows), -1)
        padded[: len(own)] = own
        numbers.append(padded.reshape(groups, LANES, bar.rows).swapaxes(1, 2).reshape(-1, LANES))
        phases.append(np.arange(count, count + groups))
        count += groups
    return np.concatenate(numbers), phases


def _cut(n: int, size: int, offset: int, *, ring: bool) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of each part of an axis that is cut into parts of that size, -1 beyond its ends; and colours."""
    if ring:
        count = -(-n // size)
        index = np.arange(count * size).reshape(count, size)
        coordinates = np.where(index < n, (index + offset) % n, -1)
    else:
        count = -(-(n + size - offset) // size)
        index = np.arange(count * size).reshape(count, size) + offset - size
        coordinates = np.where((index >= 0) & (index < n), index, -1)
    colours = np.arange(count) % 2
    if ring and count % 2 == 1 and count > 1:
        colours[-1] = 2
    return coordinates, colours


def _edges(costs: GridCosts, bar: Bar, numbers: np.ndarray, lines: Lines) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which edges lead to sites of the same ribbon that entered before, and which to sites outside.

    Returns the role, direction and distance of each kind of the former, and the masks `inside` and `outside`.
    """
    from treefield.kernels.grid.profiles import LAST, LEAVING, NEAR, SECOND, THIRD

    rows = np.arange(bar.rows)
    exists = lines.exists.reshape(-1, bar.rows, lines.directions, LANES)
    used = (numbers >= 0).reshape(-1, bar.rows, LANES)
    outside = exists.copy()
    outside[:, :, 0] = False
    kinds = [(SECOND if bar.has_diagonals else LEAVING, 0, bar.rows)]
    inside = [exists[:, :, 0] & used]
    coordinates = np.unravel_index(rows, bar.sizes)
    others = [a for a in range(len(costs.shape)) if a != bar.axis]
    steps = [step for number, step in enumerate(costs.lattice.steps) if number != bar.axis]
    for d, (step, sign) in enumerate(((step, sign) for step in steps for sign in (-1, 1)), start=1):
        moved = [c + sign * step[a] for c, a in zip(coordinates, others, strict=True)]
        there = np.logical_and.reduce([(c >= 0) & (c < n) for c, n in zip(moved, bar.sizes, strict=True)])
        other = np.ravel_multi_index([np.where(there, c, 0) for c in moved], bar.sizes)
        own = exists[:, :, d] & used[:, other] & there[:, None]
        outside[:, :, d] &= ~own
        distance = bar.rows * -sign * step[bar.axis] + int((rows - other)[there].max(initial=-bar.rows))
        if distance <= 0:
            continue  # the other site enters later, or there is none in the ribbon
        if distance == bar.queue:
            role = LEAVING
        elif step[bar.axis] != 0:
            role = THIRD
        else:
            role = LAST if distance == 1 else NEAR
        kinds.append((role, d, distance))
        inside.append(own)
    order = np.argsort([role for role, _, _ in kinds], kind="stable")  # the edge to the site that leaves comes first
    return np.array(kinds)[order], _masks(np.stack(inside, axis=2)[:, :, order]), _masks(outside)


def _masks(lanes: np.ndarray) -> np.ndarray:
    """Bit masks of the last axis, as a flat array."""
    return (lanes << np.arange(LANES)).sum(axis=-1, dtype=np.int64).reshape(-1)

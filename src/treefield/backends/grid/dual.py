"""The dual side of a grid: tree-reweighted messages in strips, and the lower bound they prove."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.fixed_point import (
    ARITHMETICS,
    exact_arithmetics,
    fixed_point,
    integer_scale,
    is_positive,
    least_finite,
    possible_arithmetics,
    raised_costs,
)
from treefield.backends.grid.schedules import LANES
from treefield.backends.shared import EPS
from treefield.protocols import DualMessages
from treefield.results import tightened
from treefield.validation import as_choice, as_flat_output

if TYPE_CHECKING:
    from treefield.kernels.grid.strips import Strips

_LOST_UNITS = 4.0  # units that rounding costs and messages may take off the bound, for each cost
_PARTS = 2**16  # int16 shares are multiples of 1 / _PARTS
# How often float64 rounds numbers of the size of a site's pairwise costs on the way to the bound, at most: where costs
# are packed and added up, in any arithmetic; and where messages are made of them and the bound is summed.
_PACKING, _PASSING = 4, 1024


class GridDual:
    """Messages that tighten a lower bound on the energy, all 0 at first.

    In "int16" and "float32" all costs are integers: times a scale, rounded down, so that the bound is proved whatever
    is rounded. "float64" takes any costs; there a margin for rounding is taken off. "auto" begins with the first of
    these that can hold the costs; "exact" does too, and goes on to float64 where only that can close the gap. Memory:
    per site and label one number for the cost and one for each axis.
    """

    def __init__(self, costs: GridCosts, arithmetic: str = "auto") -> None:
        self._costs = costs
        as_choice(arithmetic, "arithmetic", ("auto", "exact", *ARITHMETICS))
        if arithmetic == "auto":
            self._finer = list(possible_arithmetics(costs).items())
        elif arithmetic == "exact":
            self._finer = list(exact_arithmetics(costs).items())
        else:
            scale, reason = fixed_point(costs, arithmetic)
            if reason:
                raise ValueError(f'arithmetic={arithmetic!r} does not hold these costs: {reason}; use "auto"')
            self._finer = [(arithmetic, scale)]
        self.bound, self.margin = -math.inf, 0.0
        self._load(*self._finer.pop(0))

    def _load(self, arithmetic: str, scale: float) -> None:
        """Have the kernels ready; the costs are brought in when they are first needed, by whoever needs them."""
        from treefield.kernels.grid import dual as trw
        from treefield.kernels.grid import strips
        from treefield.kernels.simd.arrays import aligned
        from treefield.kernels.simd.jit import as_compile_time

        self.arithmetic, self._scale, dtype = arithmetic, scale, np.dtype(arithmetic)
        self._rule = self._costs.rule(dtype)
        self._strips = _strips(self._costs, dtype)
        self._scratch = trw.StripScratch(*(aligned(self._costs.n_labels * lanes(dtype), dtype) for _ in range(4)))
        self._filled = False
        nothing = self._strips._replace(planes=0)
        with as_compile_time():
            strips.to_strips(nothing, nothing.shares[:0], nothing.shares)
            strips.from_strips(nothing, np.zeros(1, np.int32))
            strips.pack_costs(nothing, self._costs.flat_unary, np.zeros(1), 1.0, True)
            trw.pass_forward(nothing, self._rule, self._scratch)
            trw.pass_backward(nothing, self._rule, self._scratch)

    def _fill(self) -> None:
        from treefield.kernels.grid.strips import pack_costs

        costs, whole = self._costs, self.arithmetic != "float64"
        weights = costs.edge_weights()
        reach = _reach(costs, weights)
        self._place_weights(weights)
        self._place_shares()
        best, magnitude = pack_costs(self._strips, costs.flat_unary, reach, self._scale, whole)
        base = 0.0 if costs.has_edge_tables else least_finite(costs.pairwise.costs(costs.n_labels))
        factors = sum(float(np.abs(weight).sum()) for weight in weights)
        self._constant = best + base * sum(float(weight.sum()) for weight in weights)
        with np.errstate(over="ignore"):
            most = float(reach.sum())
        # pack_costs adds up rows, then their sums; NumPy adds up pairs
        depth = self._strips.planes * self._strips.rows + self._strips.steps
        self._margin = EPS * (depth * magnitude + 64 * abs(base) * factors + _PACKING * most)
        if not whole:
            table = np.zeros((0, 0)) if costs.has_edge_tables else costs.pairwise.table(costs.n_labels)
            error = self._rule.message_error(table)
            self._margin += (_PASSING * EPS + error.relative) * most + error.absolute * factors
        if is_positive(costs):
            self.bound = max(self.bound, 0.0)
        self._filled = True

    def _place_weights(self, weights: list[np.ndarray]) -> None:
        """The weights of the edges after each site, along the last axis, the one before and the first; then of those
        before it along the latter two."""
        strips = self._strips
        costs = np.ones(1) if self.arithmetic == "float64" else raised_costs(self._costs)
        unit = 0.0 if self.arithmetic == "float64" else integer_scale(costs)
        places = strips.weights.reshape(5, -1)
        for number, axis in enumerate(range(len(weights) - 1, -1, -1)):
            scaled = weights[axis] * self._scale if costs.any() else np.zeros(weights[axis].shape)
            if unit:
                scaled = np.floor(scaled / unit) * unit
            self._place(np.pad(scaled, [(0, a == axis) for a in range(scaled.ndim)]), places[number])
            if number > 0:
                self._place(np.pad(scaled, [(int(a == axis), 0) for a in range(scaled.ndim)]), places[2 + number])

    def _place_shares(self) -> None:
        after, before = np.zeros((2, *self._costs.shape), np.int8)
        for axis in range(after.ndim):
            inner = [slice(None)] * after.ndim
            inner[axis] = slice(None, -1)
            after[tuple(inner)] += 1
            inner[axis] = slice(1, None)
            before[tuple(inner)] += 1
        chains = np.maximum(np.maximum(after, before), 1)
        if self.arithmetic == "int16":
            parts = np.minimum(_PARTS // chains.astype(np.int64), _PARTS - 1).astype(np.uint16).view(np.int16)
        else:
            third = np.nextafter(np.array(1 / 3, self.arithmetic), 0)  # not more than that, when rounded
            parts = np.array([0, 1, 1 / 2, third])[chains]
        self._place(parts, self._strips.shares)

    def _place(self, values: np.ndarray, out: np.ndarray) -> None:
        from treefield.kernels.grid.strips import to_strips

        to_strips(self._strips, np.ascontiguousarray(values, out.dtype).reshape(-1), out)

    def iterate(self, x: np.ndarray) -> float:
        """Pass forward, decoding to the int32 labelling `x`, and backward; returns the bound, which never falls."""
        from treefield.kernels.grid.dual import pass_backward, pass_forward
        from treefield.kernels.grid.strips import from_strips

        flat = as_flat_output(x, self._costs)
        if not self._filled:
            self._fill()
        pass_forward(self._strips, self._rule, self._scratch)
        from_strips(self._strips, flat)
        raised = pass_backward(self._strips, self._rule, self._scratch) / self._scale
        self.margin = self._margin + 2 * EPS * (abs(self._constant) + abs(raised))
        bound = self._constant + raised - self.margin
        self.bound = max(self.bound, tightened(bound, self._costs.is_whole))
        return self.bound

    def refine(self, gap: float) -> bool:
        """Switch to the next more exact arithmetic, keeping the messages; False if none would help to close the gap.

        Float64 is slower than float32, and helps only where the rounding of costs is what is left of the gap.
        """
        if not self._finer or (self._finer[0][0] == "float64" and gap > self._resolution):
            return False
        old, scale = self._strips, self._scale
        self._load(*self._finer.pop(0))
        self._take_messages(old, scale)
        return True

    def _take_messages(self, old: Strips, scale: float) -> None:
        """Start from the messages of other strips, whose costs are multiplied by `scale`.

        They are brought into the range that messages of these costs have: sums of them do not overflow, and the forward
        pass, which replaces them all, is one as any other.
        """
        from treefield.kernels.grid.strips import convert

        costs, whole = self._costs, self.arithmetic != "float64"
        weights = costs.edge_weights()
        spans = [_edge_spans(costs, axis, weight).max(initial=0.0) for axis, weight in enumerate(weights)]
        most = float(max(spans)) * self._scale
        most = math.floor(most) if whole else most
        has_negative = costs.has_edge_tables or min(float(weight.min(initial=0.0)) for weight in weights) < 0
        convert(old, self._strips, self._scale / scale, -float(most) if has_negative else 0.0, float(most), whole)

    @property
    def _resolution(self) -> float:
        """How far the rounding of costs to integers may keep the bound from the minimum, roughly."""
        costs = raised_costs(self._costs)
        edges = sum(math.prod(shape) for shape in self._costs.lattice.edge_shapes)
        return _LOST_UNITS * (self._costs.size + edges * integer_scale(costs) * float(costs.max())) / self._scale

    @property
    def _layout(self) -> str:
        return f"grid {self._costs.shape} of {self._costs.n_labels} labels"

    def get_messages(self) -> DualMessages:
        """The messages, for the dual of a model that differs in its costs."""
        return DualMessages(self._layout, self._scale, *self.get_state())

    def start_from(self, messages: DualMessages) -> bool:
        """Start from what `get_messages` returned, before any iteration; False if it has another layout.

        The arithmetic becomes the most exact that is no more exact than that of the messages, if there is one.
        """
        if messages.layout != self._layout:
            return False
        order = ARITHMETICS.index
        while self._finer and order(self._finer[0][0]) <= order(messages.arithmetic):
            self._load(*self._finer.pop(0))
        old = _strips(self._costs, np.dtype(messages.arithmetic))
        _set_bytes(_message_arrays(old), messages.values)
        self._take_messages(old, messages.scale)
        return True

    def get_state(self) -> tuple[str, np.ndarray]:
        """The arithmetic, and all messages as bytes, for a checkpoint."""
        return self.arithmetic, np.concatenate([array.view(np.uint8) for array in _message_arrays(self._strips)])

    def set_state(self, arithmetic: str, messages: np.ndarray, bound: float) -> None:
        """Continue from what `get_state` returned; raise a ValueError for anything else."""
        while self.arithmetic != arithmetic:
            if not self._finer:
                raise ValueError(f"arithmetic {arithmetic!r} cannot be reached by this search")
            self._load(*self._finer.pop(0))
        _set_bytes(_message_arrays(self._strips), messages)
        self.bound = bound


def _message_arrays(strips: Strips) -> list[np.ndarray]:
    return [strips.right, strips.down, strips.depth, strips.borders]


def _set_bytes(arrays: list[np.ndarray], values: np.ndarray) -> None:
    """Fill the arrays, one after the other, with bytes, or raise a ValueError if that are not as many."""
    views = [array.view(np.uint8) for array in arrays]
    if len(values) != sum(map(len, views)):
        raise ValueError(f"messages has {len(values)} bytes, expected {sum(map(len, views))}")
    for view, part in zip(views, np.split(values, np.cumsum([len(view) for view in views])[:-1]), strict=True):
        view[:] = part


def dual_bytes(costs: GridCosts, arithmetics: Iterable[str]) -> int:
    """The memory that `GridDual` needs, roughly: in one arithmetic, or in several one after the other."""
    total = 48 * costs.size  # while costs are brought in
    planes, _, columns = _planes(costs.shape)
    for arithmetic in arithmetics:
        dtype = np.dtype(arithmetic)
        n = lanes(dtype)
        sites = planes * _strip_count(costs.shape, dtype) * (columns + n) * n
        total += sites * dtype.itemsize * ((1 + len(costs.shape)) * costs.n_labels + 8)
    return total


def lanes(dtype: np.dtype) -> int:
    """How many rows a strip has."""
    return 2 * LANES if dtype == np.int16 else LANES


def _reach(costs: GridCosts, weights: list[np.ndarray]) -> np.ndarray:
    """How far the costs of each site's edges, and 0, lie apart, added up. No message is larger, and a label whose unary
    cost is that much above the best is never worth it."""
    reach = np.zeros(costs.shape)
    for axis, weight in enumerate(weights):
        inner = [slice(None)] * reach.ndim
        for part in (slice(None, -1), slice(1, None)):
            inner[axis] = part
            reach[tuple(inner)] += _edge_spans(costs, axis, weight)
    return np.minimum(reach, np.finfo(np.float64).max, out=reach).reshape(-1)


def _edge_spans(costs: GridCosts, axis: int, weight: np.ndarray) -> np.ndarray:
    """How far the costs of each edge along an axis, and 0, lie apart."""
    if costs.has_edge_tables:
        table = costs.edge_tables_by_direction()[axis]
        span = table.max(axis=(-2, -1), initial=0).astype(np.float64) - table.min(axis=(-2, -1), initial=0)
    else:
        span = raised_costs(costs).max()
    span = np.abs(weight) * np.where(weight == 0, 0.0, span)
    return np.minimum(span, min(2 * costs.forbidden_cost, np.finfo(np.float64).max))


def _planes(shape: tuple[int, ...]) -> tuple[int, int, int]:
    return (1, *shape) if len(shape) == 2 else shape  # type: ignore[return-value]


def _strip_count(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return -(-shape[-2] // lanes(dtype))


def _strips(costs: GridCosts, dtype: np.dtype) -> Strips:
    from treefield.kernels.grid.strips import Strips
    from treefield.kernels.simd.arrays import zeros

    planes, rows, columns = _planes(costs.shape)
    n, strips = lanes(dtype), _strip_count(costs.shape, dtype)
    steps, padded = columns + n, columns + 2 * n + 2
    sites = planes * strips * steps * n
    grid = costs.kernel_grid()
    numbers = np.int16 if dtype == np.int16 else np.int32
    return Strips(
        unary=zeros(sites * costs.n_labels, dtype),
        right=zeros(sites * costs.n_labels, dtype),
        down=zeros(sites * costs.n_labels, dtype),
        depth=zeros((planes + 1) * (sites // planes) * costs.n_labels if planes > 1 else 1, dtype),
        borders=zeros(planes * (strips + 1) * padded * costs.n_labels, dtype),
        weights=zeros(5 * sites, dtype),
        shares=zeros(sites, dtype),
        x=zeros(sites, numbers),
        x_borders=zeros(planes * (strips + 1) * padded, numbers),
        edge_offsets=grid.edge_offsets,
        edge_strides=grid.edge_strides,
        edges=sum(math.prod(shape) for shape in costs.lattice.edge_shapes),
        strips=strips,
        planes=planes,
        rows=rows,
        steps=steps,
        columns=padded,
        labels=costs.n_labels,
    )

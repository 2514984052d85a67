"""Pairwise costs: what two neighbouring labels cost together.

Each class checks its parameters, gives its table, and picks the message rule of `treefield.kernels.rules` that is
fastest for the signs of the weights. The rules are imported where they are used: they need the compiler. The cost of an
edge is the class's own weight times the model's weight of that edge.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from treefield.backends.graph.edges import EdgeLayout
from treefield.backends.shared import WeightRange
from treefield.validation import all_integral, as_real_array, as_real_scalar, smallest_dtype

if TYPE_CHECKING:
    from treefield.backends.grid.lattice import Lattice
    from treefield.kernels.rules.rule import Rule
    from treefield.kernels.rules.truncated import Truncated

# Of squares: a window of so few labels to either side, or of few costs in all, beats spreading
_WIDEST_WINDOW, _FEW_COSTS = 10, 512
_FARTHEST_SPREAD = 512  # labels: beyond, the lower envelope beats spreading
_SHORT_WINDOW = 4  # labels to either side: up to here, the window beats the distance transform


class Pairwise(abc.ABC):
    """A cost V(a, b) shared by all edges, times `weight`."""

    weight: float = 1.0

    def table(self, n_labels: int) -> np.ndarray:
        """V as a float64 array [first label, second label], without the weight."""
        raise TypeError(f"{type(self).__name__} has no table")

    def costs(self, n_labels: int) -> np.ndarray:
        """Every value of the table at least once, in any order."""
        return self.table(n_labels)

    @abc.abstractmethod
    def is_whole(self) -> bool:
        """Whether every value of V is an integer."""

    def edge_tables(self, lattice: Lattice, n_labels: int) -> np.ndarray | None:
        """The tables of all edges of a grid, flat; None if all edges share one."""
        return None

    def edge_layout(self, n_labels: int, has_negative_weights: bool) -> EdgeLayout:
        """How the kernels of graphs see the cost."""
        return EdgeLayout("tables", table=self.table(n_labels))

    def rule(self, n_labels: int, dtype: np.dtype, weights: WeightRange) -> Rule:
        """The message rule for kernels, in the arithmetic of `dtype`."""
        from treefield.kernels.rules.binary import BinaryRule
        from treefield.kernels.rules.table import CappedTableRule, TableRule

        table = self.table(n_labels).reshape(-1)
        forbidden = np.isinf(table)
        if not forbidden.any():
            # a constant does not change which labels are best: messages need only the differences
            return (BinaryRule if n_labels == 2 else TableRule)((table - table.min()).astype(dtype), table)
        least = 0.0 if forbidden.all() else table.min()
        if weights.least < weights.largest:
            largest = float(np.finfo(dtype).max)
            raised = np.where(forbidden, largest, table - least).astype(dtype)
            return CappedTableRule(raised, np.where(forbidden, largest, table), np.array([weights.forbidden], dtype))
        table = np.where(forbidden, 2 * weights.forbidden / weights.largest, table)
        return (BinaryRule if n_labels == 2 else TableRule)((table - least).astype(dtype), table)


class Potts(Pairwise):
    """Equal labels cost nothing, different labels `weight`.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.Potts(20.0).table(2)
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, weight: float) -> None:
        self.weight = as_real_scalar(weight, "weight")

    def __repr__(self) -> str:
        return f"Potts({self.weight:g})"

    def table(self, n_labels: int) -> np.ndarray:
        return 1.0 - np.eye(n_labels)

    def costs(self, n_labels: int) -> np.ndarray:
        return np.arange(min(n_labels, 2), dtype=np.float64)

    def is_whole(self) -> bool:
        return True

    def edge_layout(self, n_labels: int, has_negative_weights: bool) -> EdgeLayout:
        return EdgeLayout("potts", largest_costs=(np.arange(n_labels) > 0).astype(np.float64))

    def rule(self, n_labels: int, dtype: np.dtype, weights: WeightRange) -> Rule:
        from treefield.kernels.rules.potts import PottsRule, SignedPottsRule

        if n_labels == 2:
            return super().rule(n_labels, dtype, weights)
        return (SignedPottsRule if weights.least < 0 else PottsRule)()


class _Truncated(Pairwise):
    """weight * min(distance(v_a, v_b), cutoff) for labels at positions v."""

    def __init__(self, weight: float, cutoff: float, values: ArrayLike | None = None) -> None:
        self.weight = as_real_scalar(weight, "weight")
        self.cutoff = as_real_scalar(cutoff, "cutoff", infinite=True)
        if self.cutoff < 0:
            raise ValueError(f"cutoff must be at least 0 (inf for none), got {self.cutoff:g}")
        self.values = None
        if values is not None:
            self.values = as_real_array(values, "values").astype(np.float64)
            if self.values.ndim != 1 or not np.isfinite(self.values).all():
                raise ValueError(
                    f"values must be a 1-D array of finite positions, one per label, got shape {self.values.shape}"
                )

    def __repr__(self) -> str:
        values = ""
        if self.values is not None:
            few = len(self.values) <= 8
            values = f", values={self.values.tolist() if few else f'<{len(self.values)} positions>'}"
        return f"{type(self).__name__}({self.weight:g}, {self.cutoff:g}{values})"

    def positions(self, n_labels: int) -> np.ndarray:
        """Where the labels lie."""
        if self.values is None:
            return np.arange(n_labels, dtype=np.float64)
        if len(self.values) != n_labels:
            raise ValueError(f"values has {len(self.values)} positions, but unary has {n_labels} labels")
        return self.values

    @staticmethod
    def _distance(difference: np.ndarray) -> np.ndarray:
        return np.abs(difference)

    def table(self, n_labels: int) -> np.ndarray:
        v = self.positions(n_labels)
        table = np.minimum(self._distance(v[:, None] - v[None, :]), self.cutoff)
        if not np.isfinite(table).all():
            raise ValueError(f"values from {v.min():g} to {v.max():g} are too far apart: their distance overflows")
        return table

    def costs(self, n_labels: int) -> np.ndarray:
        if self.values is not None:
            return self.table(n_labels)
        return np.minimum(self._distance(np.arange(n_labels, dtype=np.float64)), self.cutoff)

    def is_whole(self) -> bool:
        # of positions that are not integers, rounding may make the distances whole
        return all_integral(np.append([] if self.values is None else self.values, self.cutoff))

    def _truncated(self, n_labels: int, dtype: np.dtype) -> Truncated | None:
        """For the rules; None if the positions do not ascend."""
        from treefield.kernels.rules.truncated import Truncated

        v = self.positions(n_labels)
        steps = np.diff(v)
        if np.any(steps < 0):
            return None
        even = steps.size > 0 and np.allclose(steps, steps[0], rtol=1e-9, atol=0)
        cutoff = np.array([min(self.cutoff, float(self._distance(v[-1] - v[0])))])
        spacing = np.array([steps[0] if even else 0.0], dtype)
        change = np.array([min(self.cutoff, float(self._distance(steps.min(initial=np.inf))))], dtype)
        return Truncated((v - v[0]).astype(dtype), cutoff.astype(dtype), v, cutoff, spacing, change)

    def _window(self, truncated: Truncated) -> np.ndarray:
        """The costs below the cutoff, by the distance of evenly spaced labels."""
        costs = self._distance(truncated.values64 - truncated.values64[0])
        return costs[costs < self.cutoff].astype(truncated.values.dtype)


class TruncatedLinear(_Truncated):
    """weight * min(|v_a - v_b|, cutoff); the positions v are 0..L-1, or `values`. `cutoff=inf` does not truncate.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.TruncatedLinear(1.0, cutoff=2).table(4)
    array([[0., 1., 2., 2.],
           [1., 0., 1., 2.],
           [2., 1., 0., 1.],
           [2., 2., 1., 0.]])
    """

    def edge_layout(self, n_labels: int, has_negative_weights: bool) -> EdgeLayout:
        positions = self.positions(n_labels)
        if has_negative_weights or not bool((np.diff(positions) >= 0).all()):
            return super().edge_layout(n_labels, has_negative_weights)
        distances = positions - positions[0]
        cutoff = min(self.cutoff, float(distances[-1]))
        return EdgeLayout("linear", positions=np.append(positions, cutoff), largest_costs=np.minimum(distances, cutoff))

    def rule(self, n_labels: int, dtype: np.dtype, weights: WeightRange) -> Rule:
        from treefield.kernels.rules.linear import LinearRule, LinearWindowRule

        truncated = None if n_labels == 2 or weights.least < 0 else self._truncated(n_labels, dtype)
        if truncated is None:
            return super().rule(n_labels, dtype, weights)
        costs = self._window(truncated)
        if truncated.spacing > 0 and len(costs) <= _SHORT_WINDOW:
            return LinearWindowRule(truncated, costs)
        return LinearRule(truncated)


class TruncatedQuadratic(_Truncated):
    """weight * min((v_a - v_b)**2, cutoff); the positions v are 0..L-1, or `values`. `cutoff=inf` does not truncate.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.TruncatedQuadratic(1.0, cutoff=7).table(4)
    array([[0., 1., 4., 7.],
           [1., 0., 1., 4.],
           [4., 1., 0., 1.],
           [7., 4., 1., 0.]])
    """

    @staticmethod
    def _distance(difference: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return difference * difference

    def rule(self, n_labels: int, dtype: np.dtype, weights: WeightRange) -> Rule:
        from treefield.kernels.rules.quadratic import EnvelopeRule, WindowRule, spread_rule

        truncated = None if n_labels == 2 or weights.least < 0 else self._truncated(n_labels, dtype)
        if truncated is None:
            return super().rule(n_labels, dtype, weights)
        costs = self._window(truncated)
        if truncated.spacing == 0 or len(costs) > _FARTHEST_SPREAD:
            return EnvelopeRule(truncated, np.empty(n_labels, np.int64), np.empty(n_labels + 1))
        if len(costs) <= _WIDEST_WINDOW or n_labels * len(costs) <= _FEW_COSTS:
            return WindowRule(truncated, costs)
        return spread_rule(truncated, costs)


class Table(Pairwise):
    """Any cost: `V[a, b]`, where `a` is the label of the edge's first site.

    Values may be negative and asymmetric; +inf forbids a pair.

    Examples
    --------
    >>> import treefield as tf
    >>> ising = tf.Table([[1, -1], [-1, 1]])
    """

    def __init__(self, V: ArrayLike) -> None:
        array = as_real_array(V, "V")
        self.V = array.astype(smallest_dtype(array, "V")).astype(np.float64)
        if self.V.ndim != 2 or self.V.shape[0] != self.V.shape[1] or self.V.size == 0:
            raise ValueError(f"V must be a square table (labels, labels), got shape {self.V.shape}")
        check_no_nan(self.V, "V")

    def __repr__(self) -> str:
        return f"Table({self.V.tolist()})" if self.V.size <= 16 else f"Table(<{self.V.shape[0]} x {self.V.shape[1]}>)"

    def table(self, n_labels: int) -> np.ndarray:
        if len(self.V) != n_labels:
            raise ValueError(f"unary has {n_labels} labels but the table is {self.V.shape}")
        return self.V

    def is_whole(self) -> bool:
        return all_integral(self.V)

    def edge_layout(self, n_labels: int, has_negative_weights: bool) -> EdgeLayout:
        return EdgeLayout("tables", table=self.V)  # sites without edges may have more labels


class EdgeTables(Pairwise):
    """A table for every edge: one array per axis, of shape edges + (labels, labels).

    For an (M, N) grid the shapes are (M-1, N, L, L) and (M, N-1, L, L), with connectivity 2 twice (M-1, N-1, L, L)
    more; a periodic axis has as many entries as sites. They are copied into one array of 4 or 8 bytes a value.
    """

    def __init__(self, tables: Sequence[ArrayLike] | np.ndarray) -> None:
        if not isinstance(tables, list | tuple):
            raise TypeError(f"tables must be a list of arrays, one per axis, got {type(tables).__name__}")
        self.tables = [as_real_array(table, f"tables[{axis}]") for axis, table in enumerate(tables)]
        for axis, table in enumerate(self.tables):
            check_no_nan(table, f"tables[{axis}]")

    def __repr__(self) -> str:
        return f"EdgeTables({', '.join(str(table.shape) for table in self.tables)})"

    def is_whole(self) -> bool:
        return all(all_integral(table) for table in self.tables)

    def edge_tables(self, lattice: Lattice, n_labels: int) -> np.ndarray:
        """All tables one after the other, [edge][first][second], as float32 if that is exact and float64 otherwise."""
        shapes = lattice.edge_shapes
        if len(self.tables) != len(shapes):
            kind = "axes" if len(shapes) == len(lattice.shape) else "directions"
            raise ValueError(
                f"EdgeTables has {len(self.tables)} arrays, expected one for each of the grid's {len(shapes)} {kind}"
            )
        for number, table in enumerate(self.tables):
            expected = (*shapes[number], n_labels, n_labels)
            if table.shape != expected:
                unary = f"for unary of shape {(*lattice.shape, n_labels)}"
                raise ValueError(f"tables[{number}] has shape {table.shape}, expected {expected} {unary}")
        kept = [smallest_dtype(table, "tables") for table in self.tables]
        dtype = np.result_type(np.float32, *kept)
        if not any(table.size for table in self.tables):  # no edges: kernels read one all the same
            return np.zeros(n_labels * n_labels, dtype)
        return np.concatenate(
            [np.zeros(1, dtype), *(table.astype(dtype, copy=False).reshape(-1) for table in self.tables)]
        )[1:]


def as_pairwise(pairwise: Pairwise | ArrayLike | Callable[[int, int], float], n_labels: int) -> Pairwise:
    """One of the classes above: an (L, L) array becomes a `Table`, and so does a function of two labels."""
    if isinstance(pairwise, Pairwise):
        return pairwise
    if callable(pairwise) and not isinstance(pairwise, type):
        return Table(_tabulate(pairwise, n_labels))
    if isinstance(pairwise, np.ndarray | list | tuple):
        table = as_real_array(pairwise, "pairwise")
        if table.shape != (n_labels, n_labels):
            raise ValueError(
                f"pairwise has shape {table.shape}, expected ({n_labels}, {n_labels}): a cost for each pair of labels"
            )
        return Table(table)
    raise TypeError(
        "pairwise must be Potts, TruncatedLinear, TruncatedQuadratic, Table, EdgeTables, an (L, L) array or a function "
        f"of two labels, got {pairwise!r}"
    )


def _tabulate(function: Callable[[int, int], float], n_labels: int) -> np.ndarray:
    table = np.empty((n_labels, n_labels))
    for a in range(n_labels):
        for b in range(n_labels):
            name = f"what the pairwise function gives for labels ({a}, {b})"
            table[a, b] = as_real_scalar(function(a, b), name, infinite=True)
    check_no_nan(table, "the table of the pairwise function")
    return table


def check_no_nan(array: np.ndarray, name: str) -> None:
    """Raise for NaN and -inf."""
    if array.size and array.dtype.kind == "f":
        low = array.min()
        if np.isnan(low):
            raise ValueError(f"{name} holds NaN; every cost must be a number (use +inf for a forbidden pair)")
        if low == -np.inf:
            raise ValueError(f"{name} holds -inf; costs may be +inf (forbidden) but not -inf")

"""The contract of a message rule, and the functions through which kernels use the rules of all pairwise kinds.

A pairwise kind is one module of this folder. Its *lane rule* serves grids: a named tuple holds the parameters, and
Numba picks the compiled functions by the class of the tuple. `register` takes the functions and refuses a kind that
lacks one of them, or its rounding margin. Its *graph rule*, if there is one, serves graphs: see `GraphRule`.

Lane rules work on eight sites at once (sixteen in int16). Costs are flat arrays [label][lane]; `base` and `at` are
where a site's costs begin. In all functions

- `weight` is the weight w of each lane's edge, and `edge` its number, which only tables per edge need;
- `own_first` says whether the site itself is the edge's first: costs are V(first label, second label);
- `labels` is the number of labels L.

Fields of the tuples whose names end in 64 are in float64, for energies; the others are in the arithmetic of messages.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numba import TypingError, types

from treefield.kernels.simd.jit import inline_helper, inline_overload
from treefield.kernels.simd.lanes import LANES, broadcast, load, minimum, where

EPS = float(np.finfo(np.float64).eps)
INT16_LIMIT = 2**15 - 2  # the largest index or sum that int16 lanes may reach


class MessageError(NamedTuple):
    """How far a float64 message can be above the exact one.

    For an edge of weight w whose costs span C it is `relative * C + absolute * abs(w)`.
    """

    relative: float
    absolute: float


FEW_ROUNDINGS = MessageError(8 * EPS, 0.0)


class Rule(Protocol):
    """The Python side of a lane rule's named tuple; `register` refuses a class that lacks one of these."""

    def message_error(self, table: np.ndarray) -> MessageError:
        """The rounding margin of a message in float64, which the lower bound of the dual subtracts.

        `table` is the exact pairwise cost [first label, second label].
        """
        ...

    def fits_int16(self) -> bool:
        """Whether messages can be computed in int16, given integer costs that int16 holds."""
        ...

    def positions(self) -> np.ndarray:
        """The positions of labels that messages are computed from, as distances from the first; one 0 without any.

        Fixed-point arithmetic needs them to be integers.
        """
        ...


@dataclasses.dataclass(frozen=True)
class LaneRule:
    """The compiled half of a lane rule. The functions have the signatures of the functions of the same names below."""

    prepare: Callable
    add_edge_cost: Callable
    message: Callable
    argmin_given: Callable
    edge_cost: Callable
    can_overwrite: bool  # a message may be written over the costs it is computed from
    uses_edge_numbers: bool  # the cost depends on the number of the edge
    label_count: int | None = None  # where the kind fixes it: the compiler unrolls loops over labels


_PYTHON_PARTS = tuple(name for name in vars(Rule) if not name.startswith("_"))
_COMPILED_PARTS = tuple(field.name for field in dataclasses.fields(LaneRule) if field.default is dataclasses.MISSING)
lane_rules: dict[type, LaneRule] = {}  # by the class of the named tuple


def register(kind, **parts):
    """Register the lane rule of a named tuple's class; raise a TypeError if a part of the contract is missing."""
    missing = [name for name in _PYTHON_PARTS if not callable(getattr(kind, name, None))]
    missing += [name for name in _COMPILED_PARTS if parts.get(name) is None]
    if missing:
        raise TypeError(f"the rule {kind.__name__} lacks {', '.join(missing)}: see treefield.kernels.rules.rule")
    lane_rules[kind] = LaneRule(**parts)


def is_kind(kind, *classes):
    """Whether Numba's type is that of a named tuple of one of the classes."""
    return isinstance(kind, types.NamedTuple | types.NamedUniTuple) and kind.instance_class in classes


def lane_rule_of(kind):
    """The registered rule of a tuple, given Numba's type of it."""
    if not is_kind(kind, *lane_rules):
        raise TypingError(f"no message rule is registered for {kind}: see treefield.kernels.rules.rule")
    return lane_rules[kind.instance_class]


def _by_kind(operation):
    """In kernels, the function of that name of the rule that the first argument belongs to."""

    @inline_overload(operation, strict=False)
    def choose(kind, *others):
        return getattr(lane_rule_of(kind), operation.__name__)

    return operation


@_by_kind
def prepare(kind, edge, own_first, x, labels):
    """The values that `add_edge_cost` needs of a neighbour's label x, computed once before the loop over labels."""


@_by_kind
def add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    """cost + w V(s, x) for one label s and prepared neighbours (Eq. 8), up to a constant that is the same for all s."""


@_by_kind
def message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    """out[s] = min over t of h[t] - low + w V(t, s), for all s (Eq. 5); `low` is min h."""


@_by_kind
def argmin_given(kind, weight, edge, own_first, low, h, base, x, labels):
    """The lowest t that minimises h[t] + w V(t, x), as int32 lanes; `low` is min h."""


@_by_kind
def edge_cost(kind, weight, edge, a, b, labels):
    """w V(a, b) in float64 lanes, for weights in float64; `a` is the label of the edge's first site."""


def label_count(kind, labels):
    """The number of labels, as a constant where the kind fixes it."""


@inline_overload(label_count)
def _label_count_overload(kind, labels):
    count = lane_rule_of(kind).label_count
    if count is None:
        return lambda kind, labels: labels
    return lambda kind, labels: count


def can_overwrite(kind):
    """Whether a message may be written over the costs it is computed from."""


@inline_overload(can_overwrite)
def _can_overwrite_overload(kind):
    return (lambda kind: True) if lane_rule_of(kind).can_overwrite else (lambda kind: False)


@inline_helper
def scan_labels(kind, weight, edge, own_first, low, h, base, x, labels):
    """`argmin_given` for any kind: one loop over all labels. O(L)."""
    prepared = prepare(kind, edge, own_first, x, labels)
    best = add_edge_cost(kind, load(h, base), weight, 0, own_first, prepared, labels)
    label = broadcast(np.int32(0))
    for t in range(1, labels):
        cost = add_edge_cost(kind, load(h, base + t * LANES), weight, t, own_first, prepared, labels)
        label = where(cost < best, broadcast(np.int32(t)), label)
        best = minimum(cost, best)
    return label


def neighbour_label(kind, edge, own_first, x, labels):
    """`prepare` for kinds that need nothing but the neighbour's label."""
    return x


@dataclasses.dataclass(frozen=True)
class GraphRule:
    """The rule of a pairwise kind for graphs, on one edge at a time and in float64.

    Kernels of graphs are compiled once for all kinds and compare `graph.kind` with the code of each rule, its place in
    `treefield.kernels.rules.registry`. All parts are required. `link` is 2 * edge, plus 1 if the site itself is the
    edge's second.

    name           how `treefield.backends.graph.edges.EdgeLayout` names the kind
    edge_cost      (graph, edge, a, b): w V(a, b)
    absorb         (graph, link, label, sign, rounder, h, at, count): add `sign` times what a neighbour of that label
                   costs each of the `count` labels to h[at:], up to a constant (Eq. 8); see `round_to_unit`
    send           (graph, link, h, at, count, low, out, others): out[s] = min over t of h[at + t] + cost(t, s) for each
                   of the neighbour's `others` labels (Eq. 5); `low` is min h. Infinity follows the `count` costs of h
                   up to a multiple of eight; `out` has room for the most labels and seven more
    argmin_given   (graph, link, h, at, count, low, label): the lowest s that minimises h[at + s] + cost(s, label)
    message_error  (positions): how far rounding can raise a message, relative to the largest cost of its edge, beyond
                   the few roundings of each number that the dual always subtracts; `positions` are the layout's
    """

    name: str
    edge_cost: Callable
    absorb: Callable
    send: Callable
    argmin_given: Callable
    message_error: Callable[[np.ndarray], float]


def link_cost_of(edge_cost):
    """The cost of an edge by a link and the label of the site that has it, made of the cost by edge."""
    edge_cost = inline_helper(edge_cost)

    @inline_helper
    def link_cost(graph, link, own, other):
        return edge_cost(graph, link >> 1, other, own) if link & 1 else edge_cost(graph, link >> 1, own, other)

    return link_cost


def scan_graph_labels(edge_cost):
    """`argmin_given` of a graph rule by one loop over all labels, made of its `edge_cost`. O(L)."""
    link_cost = link_cost_of(edge_cost)

    @inline_helper
    def scan(graph, link, h, at, count, low, label):
        best, least_cost = np.int64(0), np.inf
        for s in range(count):
            value = h[at + s] + link_cost(graph, link, s, label)
            if value < least_cost:
                best, least_cost = s, value
        return best

    return scan


def round_to_unit(value, rounder):
    """`value` as a multiple of the unit whose `rounder` it is; unchanged where the rounder is None.

    The rounder is so large that adding it leaves no room for a fraction of the unit.
    """


@inline_overload(round_to_unit)
def _round_to_unit_overload(value, rounder):
    if isinstance(rounder, types.NoneType):
        return lambda value, rounder: value
    return lambda value, rounder: (value + rounder) - rounder

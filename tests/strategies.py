"""Random small models for property tests: the treefield objects and the explicit tables of `naive`.

Arrays come from a numpy Generator seeded by hypothesis: draws stay cheap, and any failure can be rebuilt from its seed.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import naive

ALL_KINDS = (
    "potts",
    "potts-signed",
    "linear",
    "linear-signed",
    "quadratic",
    "quadratic-signed",
    "table",
    "edge-tables",
    "function",
)
# Each pair of kind and dtype is compiled by itself, some in both arithmetics: few pairs, but each kind and each dtype.
KIND_DTYPES = {
    "potts": ("float32",),
    "potts-signed": ("float64",),
    "linear": ("float32",),
    "linear-signed": ("float64",),
    "quadratic": ("float64",),
    "quadratic-signed": ("float64",),
    "table": ("uint16",),
    "edge-tables": ("float64",),
    "function": ("float64",),
}
KEPT_DTYPES = ("float32", "float64", "uint8", "uint16")
CONVERTED_DTYPES = ("int32", "int64", "bool", "float16")
ALL_DTYPES = KEPT_DTYPES + CONVERTED_DTYPES
MAX_LABELLINGS = 20000  # what brute force may enumerate


@dataclass(frozen=True, eq=False)
class Case:
    """One model twice: what a user would give to treefield, and its explicit `tables` for `naive`."""

    kind: str
    unary: np.ndarray
    pairwise: Any
    weights: tuple | None
    tables: list
    integer: bool  # every cost is a whole number: energies are exact, labels must agree, ties included

    def mrf(self):
        import treefield as tf

        return tf.GridMRF(self.unary, self.pairwise, weights=self.weights)


@st.composite
def grid_models(draw, max_sites=8, max_labels=4, integer=None, kinds=ALL_KINDS, dtypes=None, forbidden=False):
    """A `Case` small enough for brute force. `integer=None`: whole numbers in half of the draws."""
    kind = draw(st.sampled_from(kinds))
    dtypes = dtypes or KIND_DTYPES[kind]
    if forbidden:
        dtypes = [dtype for dtype in dtypes if _can_forbid(kind, dtype)]
    dtype = draw(st.sampled_from(dtypes))
    labels = draw(st.sampled_from([*range(2, max_labels + 1), 1]))  # one label is the rare case
    shape = draw(_shapes(max_sites, labels))
    integer = draw(st.sampled_from((True, False))) if integer is None else integer
    seed = draw(st.integers(0, 2**32 - 1))
    return random_case(seed, kind, shape, labels, dtype, integer, forbidden)


def random_case(seed, kind, shape, labels, dtype="float32", integer=True, forbidden=False):
    """The `Case` of this seed. `forbidden` keeps one label free of +inf, so that the least energy is finite."""
    if forbidden and not _can_forbid(kind, dtype):
        raise ValueError(f"a {kind} model of {dtype} has no place for +inf: give a float dtype or a table kind")
    rng = np.random.default_rng(seed)
    free = int(rng.integers(labels)) if forbidden else None
    unary = _unary(rng, (*shape, labels), np.dtype(dtype), integer)
    if forbidden and unary.dtype.kind == "f":
        mask = rng.random(unary.shape) < 0.2
        mask[..., free] = False
        unary[mask] = np.inf
    pairwise, weights, tables = _PAIRWISE[kind.removesuffix("-signed")](rng, kind, shape, labels, integer, free)
    return Case(kind, unary, pairwise, weights, tables, integer)


def _can_forbid(kind, dtype):
    return np.dtype(dtype).kind == "f" or kind in ("table", "edge-tables")


def _shapes(max_sites, labels):
    """Grid shapes, 2-D as often as 3-D; most have a cycle, which shapes such as 1xN have not."""
    most = max(n for n in range(1, max_sites + 1) if n == 1 or labels**n <= MAX_LABELLINGS)
    choices = []
    for dimensions in (2, 3):
        shapes = [s for s in itertools.product(range(1, most + 1), repeat=dimensions) if math.prod(s) <= most]
        shapes.sort(key=math.prod)
        cyclic = [s for s in shapes if sum(n > 1 for n in s) > 1]
        choices += [st.sampled_from(shapes), st.sampled_from(cyclic or shapes)]
    return st.one_of(choices)


# --- arrays ---------------------------------------------------------------------------------------------------------


def _numbers(rng, low, high, integer, size=None):
    numbers = rng.integers(low, high, size, endpoint=True) if integer else rng.uniform(low, high, size)
    return numbers if size is not None else np.asarray(numbers).item()


def _unary(rng, size, dtype, integer):
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind == "f":
        high = rng.choice((2, 20))  # few values, many ties
        return _numbers(rng, -high, high, integer, size).astype(dtype)
    high = rng.choice((3, 20, min(1000, np.iinfo(dtype).max)))
    low = 0 if dtype.kind == "u" else rng.choice((0, -high))
    # Half of the int64 draws are beyond 2^24, where float32 would not be exact.
    offset = 2**25 if dtype == np.int64 and rng.random() < 0.5 else 0
    return (rng.integers(low, high, size, endpoint=True) + offset).astype(dtype)


def _weights(rng, shape, integer, low):
    """None, or a scalar or an array per axis; some of them 0."""
    if rng.random() < 0.3:
        return None
    weights = []
    for axis in range(len(shape)):
        weight = _numbers(rng, low, 3, integer, naive.edge_shape(shape, axis))
        weight[rng.random(weight.shape) < 0.15] = 0
        weights.append(weight if rng.random() < 0.7 else _numbers(rng, low, 3, integer))
    return tuple(weights)


def _values(rng, kind, labels, integer):
    """Positions of the labels: None (0..L-1), sorted with unequal steps, or (but for "linear", to save kernels: the
    others go by their tables in any case) in any order."""
    which = rng.choice(("none", "sorted", "unsorted")[: 2 if kind == "linear" else 3])
    if which == "none":
        return None
    values = np.cumsum(_numbers(rng, 1, 3, integer, labels)) - 2
    return values if which == "sorted" else rng.permutation(values)


def _short(numbers):
    return np.round(64 * np.asarray(numbers, np.float64)) / 64


# --- pairwise kinds: (rng, kind, shape, labels, integer, free) -> (pairwise, weights, tables) -----------------------
# `free` is the label that is never forbidden, None where nothing is.


def _potts(rng, kind, shape, labels, integer, free):
    import treefield as tf

    low = -1 if kind.endswith("-signed") else 0
    weight, weights = _numbers(rng, 6 * low, 6, integer), _weights(rng, shape, integer, 3 * low)
    if kind == "potts":  # float32 holds these, which saves kernels: the other kinds have those that it does not
        weight = _short(weight)
        weights = None if weights is None else tuple(_short(each) for each in weights)
    return tf.Potts(weight), weights, naive.explicit_tables(shape, weight * naive.potts(labels), weights)


def _truncated(rng, kind, shape, labels, integer, free):
    import treefield as tf

    low = -1 if kind.endswith("-signed") else 0
    weight, weights = _numbers(rng, 6 * low, 6, integer), _weights(rng, shape, integer, 3 * low)
    cutoff = rng.choice((1, 2, 3, 5, math.inf) if integer else (0.4, 1.5, 2, 4.7, math.inf)).item()
    values = _values(rng, kind, labels, integer)
    if kind.startswith("linear"):
        pairwise, table = tf.TruncatedLinear, naive.truncated_linear
    else:
        pairwise, table = tf.TruncatedQuadratic, naive.truncated_quadratic
    tables = naive.explicit_tables(shape, weight * table(labels, cutoff, values), weights)
    return pairwise(weight, cutoff, values=values), weights, tables


def _table(rng, kind, shape, labels, integer, free):
    import treefield as tf

    V = _forbid(rng, _numbers(rng, -5, 9, integer, (labels, labels)), free)
    weights = _weights(rng, shape, integer, -3 if free is None else 0)  # a negative weight would turn +inf into -inf
    return tf.Table(V), weights, naive.explicit_tables(shape, V, weights)


def _edge_tables(rng, kind, shape, labels, integer, free):
    import treefield as tf

    sizes = [(*naive.edge_shape(shape, axis), labels, labels) for axis in range(len(shape))]
    tables = [_forbid(rng, _numbers(rng, -5, 9, integer, size), free) for size in sizes]
    return tf.EdgeTables(tables), None, [np.array(table, np.float64) for table in tables]


def _function(rng, kind, shape, labels, integer, free):
    cost = ((_slopes, _uphill) if integer else (_root, _skewed))[rng.integers(2)]
    weights = _weights(rng, shape, integer, -3)
    table = [[cost(p, q) for q in range(labels)] for p in range(labels)]
    return cost, weights, naive.explicit_tables(shape, table, weights)


def _forbid(rng, V, free):
    if free is None:
        return V
    V = V.astype(np.float64)
    mask = rng.random(V.shape) < 0.2
    mask[..., free, free] = False
    V[mask] = np.inf
    return V


# Few functions, of module level: each is compiled at most once in a test run.
def _slopes(p, q):
    return 2 * abs(p - q) + (p - q)


def _uphill(p, q):
    return 4 * (p < q) - 2 * (p == q)


def _root(p, q):
    return 1.7 * abs(p - q) ** 0.5


def _skewed(p, q):
    return 0.3 * abs(p - q) - 0.45 * (p > q)


_PAIRWISE = {
    "potts": _potts,
    "linear": _truncated,
    "quadratic": _truncated,
    "table": _table,
    "edge-tables": _edge_tables,
    "function": _function,
}

"""Random models for tests of lower bounds, and their least energies, exactly.

A kind here leads to one message rule. Each pair of rule and arithmetic is compiled by itself: `ARITHMETICS` are few
pairs, but each rule is there, and each arithmetic several times.
"""

import functools
import itertools
import math

import numpy as np

import naive
import treefield as tf
from strategies import Case
from treefield.backends.grid.fixed_point import fixed_point
from treefield.kernels.rules.quadratic import WindowRule, spread_rule

ARITHMETICS = {
    "potts": ("int16", "float32"),
    "potts-signed": ("float32",),
    "linear": ("int16", "float64"),
    "linear-window": ("float32",),
    "quadratic": ("int16", "float64"),
    "envelope": ("float64",),
    "table": ("float64",),
    "binary": ("int16",),
    "edge-tables": ("float64",),
    "spread": ("int16", "float64"),
}
KINDS = tuple(ARITHMETICS)
PAIRS = [(kind, arithmetic) for kind in KINDS for arithmetic in ARITHMETICS[kind]]
_RULES = {
    "potts": ("PottsRule",),
    "potts-signed": ("SignedPottsRule",),
    "linear": ("LinearRule",),
    "linear-window": ("LinearWindowRule",),
    "quadratic": ("WindowRule",),
    "envelope": ("EnvelopeRule",),
    "table": ("TableRule",),
    "binary": ("BinaryRule",),
    "edge-tables": ("EdgeTablesRule", "CappedEdgeTablesRule"),
    "spread": ("SpreadRule",),
}
_SHAPES = [(2, 3), (3, 3), (4, 2), (2, 4), (2, 2), (1, 6), (5, 1), (2, 2, 2), (2, 1, 3), (1, 3, 2), (3, 2, 1), (1, 1)]
_MAX_LABELLINGS = 5000
_SIGNED = ("potts-signed", "table", "binary", "edge-tables")
_FORBIDDING = ("table", "binary", "edge-tables")  # which can forbid pairs


class SpreadQuadratic(tf.TruncatedQuadratic):
    """A quadratic cost that spreads even if its labels are few enough for a window."""

    def rule(self, n_labels, dtype, weights):
        made = super().rule(n_labels, dtype, weights)
        return spread_rule(made.truncated, made.costs) if isinstance(made, WindowRule) else made


def holds(mrf, arithmetic):
    return not fixed_point(mrf.backend, arithmetic)[1]


# --- least energies -------------------------------------------------------------------------------------------------


def least_energy(case):
    """The minimum, and how much more it may really be where terms or their sum are rounded: nothing if they are whole
    numbers."""
    *shape, labels = case.unary.shape
    sites = np.arange(math.prod(shape)).reshape(shape)
    x = _labellings(sites.size, labels)
    terms = [costs[x[:, i]] for i, costs in enumerate(case.unary.reshape(-1, labels).astype(np.float64))]
    for axis, tables in enumerate(case.tables):
        first, second = (np.take(sites, range(k, shape[axis] - 1 + k), axis).reshape(-1) for k in (0, 1))
        tables = tables.reshape(-1, labels, labels)
        terms += [table[x[:, i], x[:, j]] for table, i, j in zip(tables, first, second, strict=True)]
    terms = np.array(terms)
    best = terms[:, terms.sum(axis=0).argmin()]
    if np.isinf(best).any():
        return math.inf, 0.0
    slack = 0.0 if case.integer else len(best) * np.finfo(np.float64).eps * float(np.abs(best).sum())
    return math.fsum(best), slack


@functools.cache
def _labellings(sites, labels):
    return np.array(list(itertools.product(range(labels), repeat=sites)), np.int64)


def least_energy_by_rows(case):
    """The minimum of a tall, narrow 2-D model, by dynamic programming over all labellings of a row."""
    (rows, columns, labels), (down, across) = case.unary.shape, case.tables
    states, column = _labellings(columns, labels), np.arange(columns)
    total = 0.0
    for row in range(rows):
        if row > 0:
            step = down[row - 1][column, states[:, None], states[None]].sum(axis=-1)  # [above, below]
            total = (total[:, None] + step).min(axis=0)
        total = total + case.unary[row][column, states].sum(axis=-1)
        total = total + across[row][column[:-1], states[:, :-1], states[:, 1:]].sum(axis=-1)
    return float(total.min())


# --- models ---------------------------------------------------------------------------------------------------------


def random_model(kind, seed, shape=None, labels=None, integer=None, odd=True):
    """A `Case` whose messages are made by the rule of that kind; small enough for brute force unless `shape` is given.

    `odd` lets in forbidden costs, offsets, and costs and weights of very different sizes.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    while True:
        case = _draw(rng, kind, shape, labels, integer, odd)
        if type(case.mrf().backend.rule(np.float64)).__name__ in _RULES[kind]:
            return case


def _draw(rng, kind, shape, labels, integer, odd):
    labels = 2 if kind == "binary" else int(rng.choice([3, 3, 4, 5, 1])) if labels is None else labels
    if shape is None:
        shape = _SHAPES[rng.choice([i for i, s in enumerate(_SHAPES) if labels ** math.prod(s) <= _MAX_LABELLINGS])]
    integer = bool(rng.random() < 0.5) if integer is None else integer
    scale = 10.0 ** rng.integers(-6, 7) if odd and not integer else 1.0
    free = int(rng.integers(labels)) if odd and rng.random() < 0.25 else None
    negative = kind in _SIGNED and rng.random() < 0.7
    pairwise, table = _pairwise(rng, kind, shape, labels, integer, scale, None if negative else free, negative, odd)
    if kind == "edge-tables":
        weights, tables = None, table
    else:
        weights = _weights(rng, shape, integer, odd, negative)
        tables = [pairwise.weight * table for table in naive.explicit_tables(shape, table, weights)]
    unary = _unary(rng, (*shape, labels), integer, scale, free, odd)
    return Case(kind, unary.astype("float32" if kind == "potts" else "float64"), pairwise, weights, tables, integer)


def _numbers(rng, low, high, integer, size=None):
    return rng.integers(low, high, size, endpoint=True).astype(float) if integer else rng.uniform(low, high, size)


def _unary(rng, size, integer, scale, free, odd):
    high = rng.choice((2, 9, 30))
    unary = scale * _numbers(rng, -high, high, integer, size)
    if odd and rng.random() < 0.4:
        unary += _numbers(rng, -(10**6), 10**6, integer) * (1.0 if integer else scale * rng.choice((1e-6, 1.0)))
    if free is not None:
        forbidden = rng.random(size) < 0.3
        forbidden[..., free] = rng.random(size[:-1]) < 0.02  # rarely no label is left
        unary[forbidden] = np.inf
    return unary


def _weights(rng, shape, integer, odd, negative):
    """None, or numbers and arrays, some of them 0; of very different sizes where that is `odd`."""
    if rng.random() < 0.3:
        return None
    low, whole, weights = -3 if negative else 0, integer or rng.random() < 0.5, []
    for axis in range(len(shape)):
        weight = _numbers(rng, low, 3, whole, naive.edge_shape(shape, axis))
        weight[rng.random(weight.shape) < 0.15] = 0
        if odd and not integer and rng.random() < 0.2:
            weight *= 10.0 ** rng.integers(-5, 6, weight.shape)
        weights.append(weight if rng.random() < 0.7 else float(_numbers(rng, low, 3, whole)))
    return weights


def _pairwise(rng, kind, shape, labels, integer, scale, free, negative, odd):
    """A pairwise cost and its table, without the weight; for "edge-tables" those of all edges."""
    weight = float(rng.choice((1, 2, 5, 20))) if integer else scale * rng.uniform(0.1, 6)
    if negative and rng.random() < 0.5:
        weight = -weight
    if kind == "edge-tables":
        sizes = [(*naive.edge_shape(shape, axis), labels, labels) for axis in range(len(shape))]
        tables = [_table(rng, size, integer, scale, free) for size in sizes]
        return tf.EdgeTables(tables), tables
    if kind.startswith("potts") or (kind == "binary" and rng.random() < 0.5):
        return tf.Potts(weight), naive.potts(labels)
    if kind == "binary" or (kind == "table" and rng.random() < 0.6):
        table = _table(rng, (labels, labels), integer, scale, free)
        return tf.Table(table), table
    linear = kind.startswith("linear") or (kind == "table" and rng.random() < 0.5)
    values = _values(rng, kind, labels, integer, odd)
    reach = float(np.ptp(values)) if values is not None else labels - 1.0
    cutoff = float(rng.choice((1, 2, 3, 5, math.inf) if integer else (0.25, 0.4, 1.5, 3.75, 4.7, reach, math.inf)))
    if linear:
        return tf.TruncatedLinear(weight, cutoff, values), naive.truncated_linear(labels, cutoff, values)
    quadratic = SpreadQuadratic if kind == "spread" else tf.TruncatedQuadratic
    return quadratic(weight, cutoff, values), naive.truncated_quadratic(labels, cutoff, values)


def _values(rng, kind, labels, integer, odd):
    """Positions: None, evenly or unevenly spaced, for "table" in any order; some far from 0, where they are rounded."""
    how = rng.choice(("none", "even", "uneven"))
    if how == "none" and kind != "envelope":
        return None
    whole = integer or rng.random() < 0.5
    if how == "even" and kind != "envelope":
        values = np.arange(labels) * _numbers(rng, 1, 4, whole)
    else:
        values = np.cumsum(_numbers(rng, 0, 6, whole, labels))
    if odd and rng.random() < 0.3:
        values = values + (float(rng.integers(-(10**9), 10**9)) if integer else rng.choice((0.1, -1e3, 1e6, 1e9)))
    if odd and not integer and rng.random() < 0.1:
        values[0] -= 1e8
    return rng.permutation(values) if kind == "table" else values


def _table(rng, size, integer, scale, free):
    table = _numbers(rng, -5, 9, integer or rng.random() < 0.3, size) * (scale if rng.random() < 0.7 else 1.0)
    if rng.random() < 0.3:
        table += 1000.0 if integer else 1234.5678 * scale
    if free is not None:
        forbidden = rng.random(size) < 0.25
        forbidden[..., free, free] = False
        table[forbidden] = np.inf
    return table

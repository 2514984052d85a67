"""Random small graphs for property tests: the arguments of a user, and the `Model` of `naive_graph`.

Arrays come from a numpy Generator seeded by hypothesis, as in `strategies`. Kernels are compiled for each pair of
dtypes, of unary costs and of tables: the unary costs of random graphs are float64, those of grids as graphs float32.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import naive
import naive_graph
import treefield as tf

KINDS = ("potts", "linear", "linear-values", "quadratic", "table", "asymmetric", "rectangle", "tables", "spins")
MOST = 600  # labellings that brute force enumerates
_SHAPES = ("any", "sparse", "tree", "dense", "ring")


@dataclass(frozen=True, eq=False)
class Case:
    """One model twice. `integer`: every cost is a whole number, so that energies are exact."""

    kind: str
    unaries: list
    edges: list
    pairwise: Any
    weights: Any
    offset: float
    model: naive_graph.Model
    integer: bool

    def mrf(self):
        return tf.GraphMRF(self.unaries, self.edges, self.pairwise, weights=self.weights, offset=self.offset)

    @property
    def merged(self):
        """The naive model as the MRF has it: forbidden costs are counted after merging."""
        return naive_graph.merged(self.model)


@st.composite
def graphs(draw, kinds=KINDS, shapes=_SHAPES, forbidden=None, integer=None, most=MOST, clean=None):
    """A `Case` small enough for brute force. None: in half of the draws. `clean` graphs have no parallel edges and
    none from a site to itself."""

    def either(given):
        return draw(st.booleans()) if given is None else given

    kind, shape = draw(st.sampled_from(kinds)), draw(st.sampled_from(shapes))
    seed = draw(st.integers(0, 2**32 - 1))
    return random_graph(seed, kind, shape, either(forbidden), either(integer), most, clean=either(clean))


def random_graph(seed, kind="potts", shape="any", forbidden=False, integer=True, most=MOST, *, sites=None, clean=True):
    """The `Case` of this seed; each site has a label, and each pair of these a cost, that is not forbidden.

    `sites` is the number of sites, by default few enough for brute force.
    """
    rng = np.random.default_rng(seed)
    counts = _counts(rng, kind, most, sites)
    edges = _edges(rng, kind, shape, counts, clean)
    alike = kind in ("table", "asymmetric", "spins")
    free = np.full(len(counts), rng.integers(counts.min())) if alike else rng.integers(counts)
    if kind == "rectangle":
        free = np.where(np.arange(len(counts)) % 2, free[1 % len(free)], free[0])
    unaries = [_numbers(rng, integer, count) for count in counts]
    if forbidden:
        unaries = [_forbid(rng, costs, (free[i],)) for i, costs in enumerate(unaries)]
    forbid_pairs = forbidden and kind in ("table", "asymmetric", "rectangle", "tables", "spins")
    pairwise, tables = _pairwise(rng, kind, counts, edges, free if forbid_pairs else None, integer)
    weights = None
    if rng.random() < 0.7:
        weights = _numbers(rng, integer, len(edges), 0 if forbid_pairs else -3, 3)
        weights[rng.random(len(edges)) < 0.1] = 0
    factors = np.ones(len(edges)) if weights is None else weights
    # no edge where the weight is 0, whatever the table forbids
    explicit = [(w * table if w else 0 * _finite(table)).tolist() for w, table in zip(factors, tables, strict=True)]
    offset = float(_numbers(rng, integer, 1)[0]) if rng.random() < 0.5 else 0.0
    model = naive_graph.Model([costs.tolist() for costs in unaries], edges, explicit, offset)
    given = np.array(edges, np.int64).reshape(-1, 2)
    return Case(kind, unaries, given, pairwise, weights, offset, model, integer)


def random_labels(case, seed):
    rng = np.random.default_rng(seed)
    return rng.integers([len(costs) for costs in case.unaries], dtype=np.int32)


def grid_graph(shape, labels=2, seed=0, pairwise=None):
    """A grid of random integer costs as a graph."""
    unary = np.random.default_rng(seed).integers(0, 20, (*shape, labels))
    return tf.GridMRF(unary, tf.Potts(5) if pairwise is None else pairwise).to_graph()


def spin_glass(size, degree=4, seed=0):
    """Two labels at each site, couplings of either sign."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(size, size=(size * degree // 2, 2))
    weights = rng.integers(-5, 6, len(edges))
    return tf.GraphMRF(rng.integers(-3, 4, (size, 2)), edges, tf.Potts(1), weights=weights)


# --- parts ----------------------------------------------------------------------------------------------------------


def _numbers(rng, integer, size, low=-5, high=9):
    high = rng.choice((2, high))  # few values, many ties
    return rng.integers(low, high, size, endpoint=True).astype(float) if integer else rng.uniform(low, high, size)


def _counts(rng, kind, most, sites):
    """How many labels the sites have: as many sites as brute force can do, or fewer."""
    wanted = sites or rng.integers(1, 10)
    if kind == "spins":
        counts = np.full(wanted, 2)
    elif kind in ("table", "asymmetric"):
        counts = np.full(wanted, rng.integers(2, 6))
    elif kind == "rectangle":
        counts = rng.choice(np.arange(1, 6), 2, replace=False)[np.arange(wanted) % 2]
    else:
        counts = rng.integers(1, 6, wanted)
    fitting = np.cumprod(counts.astype(float)) <= most
    return counts if sites else counts[: max(1, int(fitting.sum()))]


def _edges(rng, kind, shape, counts, clean):
    size = len(counts)
    if shape == "tree":
        edges = [(i, int(rng.integers(i))) for i in range(1, size) if rng.random() < 0.9]
    elif shape == "ring":
        edges = [(i, (i + 1) % size) for i in range(size)]
    elif shape == "dense":
        edges = [(i, j) for i in range(size) for j in range(i)]
    else:
        number = rng.integers(0, (size if shape == "sparse" else 3 * size) + 1)
        edges = rng.integers(size, size=(number, 2)).tolist()
    if kind == "rectangle":  # even sites come first and have other labels than odd ones
        edges = [(i, j) if i % 2 == 0 else (j, i) for i, j in edges if i % 2 != j % 2]
        return list(dict.fromkeys(edges)) if clean else edges
    names = rng.permutation(size).tolist()
    edges = [(names[i], names[j])[:: rng.choice((-1, 1))] for i, j in edges]
    if clean:
        seen = {frozenset(edge): edge for edge in edges if edge[0] != edge[1]}
        return list(seen.values())
    if size > 1 and edges and shape != "tree":
        edges += [edges[0], edges[0][::-1], (names[0], names[0])]
    return edges


def _pairwise(rng, kind, counts, edges, free, integer):
    """The pairwise argument for treefield, and each edge's table, without weights."""
    labels = int(counts.max())
    if kind == "spins":
        kind = rng.choice(("potts", "table", "asymmetric", "tables") if free is None else ("asymmetric", "tables"))
    if kind == "tables":
        tables = [_numbers(rng, integer, (counts[i], counts[j])) for i, j in edges]
        if free is not None:
            tables = [_forbid(rng, table, (free[i], free[j])) for (i, j), table in zip(edges, tables, strict=True)]
        return tables, tables
    if kind in ("table", "asymmetric", "rectangle"):
        size = (counts[0], counts[1 % len(counts)]) if kind == "rectangle" else (labels, labels)
        table = _numbers(rng, integer, size)
        if free is not None:
            table = _forbid(rng, table, (free[0], free[1 % len(free)]))
        table = np.minimum(table, table.T) if kind == "table" else table
        return (table if kind == "rectangle" or rng.random() < 0.5 else tf.Table(table)), [table] * len(edges)
    weight = float(_numbers(rng, integer, 1, -4, 4)[0])
    cutoff = float(rng.choice((1, 2, 3, np.inf)))
    values = None
    if kind == "linear-values":
        values = np.cumsum(rng.integers(0, 4, labels))
        values = values if rng.random() < 0.5 else rng.permutation(values)
    if kind == "potts":
        pairwise, whole = tf.Potts(weight), weight * naive.potts(labels)
    elif kind == "quadratic":
        pairwise = tf.TruncatedQuadratic(weight, cutoff)
        whole = weight * naive.truncated_quadratic(labels, cutoff)
    else:
        pairwise = tf.TruncatedLinear(weight, cutoff, values=values)
        whole = weight * naive.truncated_linear(labels, cutoff, values)
    return pairwise, [whole[: counts[i], : counts[j]] for i, j in edges]


def _forbid(rng, costs, free):
    costs = costs.copy()
    mask = rng.random(costs.shape) < 0.25
    mask[free] = False
    costs[mask] = np.inf
    return costs


def _finite(table):
    return np.where(np.isinf(table), 0, table)

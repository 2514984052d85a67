"""Small random models, each with its exact energies: what `fuzz_bounds` compares lower bounds with.

A seed determines a model. The truth is computed in rational numbers from the arguments that a user would give, by brute
force, without any table or energy of treefield.
"""

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import naive_lattice
import treefield as tf
from exact_energies import Truth, edge_terms, exact

COSTS = ("potts", "linear", "quadratic", "table", "tables", "function")
# A lattice is a grid with diagonal or periodic edges.
KINDS = tuple(f"{family}-{cost}" for family in ("grid", "lattice", "graph") for cost in COSTS)
DTYPES = ("bool", "uint8", "uint16", "int32", "int64", "float16", "float32", "float64")
MOST_LABELLINGS = 4096
_SPREADS = ((0, 0), (0, 0), (-6, 6), (0, 12), (-12, 12), (-12, 12))  # powers of ten of the weights
_SHAPES_2D = [(2, 3), (3, 3), (4, 2), (2, 4), (2, 2), (1, 6), (5, 1), (1, 1), (1, 3), (3, 1), (2, 5), (3, 4), (4, 4)]
_SHAPES_3D = [(2, 2, 2), (2, 1, 3), (1, 3, 2), (3, 2, 1), (1, 1, 4), (3, 2, 2), (2, 2, 1), (3, 1, 3)]


# --- models ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call of treefield that can be made and printed."""

    name: str
    args: tuple
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        args = [arg.make() if isinstance(arg, Call) else arg for arg in self.args]
        return getattr(tf, self.name)(*args, **self.options)

    def __str__(self) -> str:
        parts = [_source(arg) for arg in self.args] + [f"{name}={_source(v)}" for name, v in self.options.items()]
        return f"tf.{self.name}({', '.join(parts)})"


@dataclass(frozen=True)
class Lookup:
    """A pairwise cost as a Python function."""

    costs: list

    def __call__(self, a: int, b: int) -> float:
        return self.costs[a][b]

    def __str__(self) -> str:
        return f"lambda a, b: {self.costs}[a][b]"


def _source(value: Any) -> str:
    if isinstance(value, np.ndarray):
        dtype = f"np.{value.dtype.name.replace('bool', 'bool_')}"
        return f"np.array({value.tolist()}, {dtype})" if value.size else f"np.zeros({value.shape}, {dtype})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_source, value))}]"
    return str(value) if isinstance(value, Call | Lookup) else repr(value)


@dataclass(frozen=True)
class Model:
    """A model as a user would build it, with its true energies."""

    seed: int
    kind: str
    dtype: str  # of the unary costs
    call: Call
    truth: Truth

    def __str__(self) -> str:
        return f"import numpy as np, treefield as tf\nfrom numpy import inf, nan\nmrf = {self.call}"


def random_model(seed: int) -> Model:
    """The model of a seed."""
    kind = kind_of(seed)
    family, cost = kind.split("-")
    draw = _Draw(seed, cost)
    call, truth = draw.graph() if family == "graph" else draw.grid(plain=family == "grid")
    return Model(seed, kind, draw.dtype, call, truth)


def kind_of(seed: int) -> str:
    """The kind of the model of a seed."""
    return KINDS[seed % len(KINDS)]


class _Draw:
    """The random choices of one model."""

    def __init__(self, seed: int, cost: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.cost = cost
        # products: some of them are whole numbers in float64, but not exactly, as in 0.1 * 10
        self.style = self.pick("whole", "whole", "products", "tenths", "real", "real")
        self.is_whole = self.style in ("whole", "products")
        self.has_odd_costs = self.chance(0.5)  # if not, only the weights differ much in size
        self.scale = (
            10.0 ** self.pick(-12, -12, -6, -3, 3, 6, -150, 290) if not self.is_whole and self.rarely(0.7) else 1.0
        )
        low, high = self.pick(*_SPREADS)
        self.spread = (max(low, 0), max(high, 0)) if self.is_whole and self.chance(0.6) else (low, high)
        self.dtype = self.pick(*DTYPES, "float64", "float64", "float32")
        self.forbids = self.chance(0.4)
        self.forbids_pairs = self.forbids and cost in ("table", "tables", "function") and self.chance(0.8)
        self.is_signed = self.chance(0.5) and not self.forbids_pairs
        self.is_feasible = self.chance(0.8)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def rarely(self, p: float) -> bool:
        """The same for what makes costs odd."""
        return self.chance(p) and self.has_odd_costs

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def numbers(self, size: Any, low: int, high: int, style: str) -> np.ndarray:
        if style == "real":
            return np.asarray(self.rng.uniform(low, high, size))
        step = 10 if style == "tenths" else 1
        return np.asarray(self.rng.integers(low * step, high * step, size, endpoint=True)) / step

    # Costs

    def unary(self, size: tuple[int, ...]) -> np.ndarray:
        """Costs of the labels of some sites."""
        kind, high = np.dtype(self.dtype).kind, self.pick(2, 9, 30)
        if kind == "b":
            return self.rng.random(size) < 0.5
        if kind in "ui":
            if self.rarely(0.7):
                high = min(np.iinfo(self.dtype).max, self.pick(255, 65535, 2**26, 2**40, 2**53, 2**54))
            return self.rng.integers(-high if kind == "i" else 0, high, size, endpoint=True).astype(self.dtype)
        costs = self.numbers(size, -high, high, "whole" if self.is_whole else self.style) * self.scale
        if self.rarely(0.4):
            costs = costs + self.pick(1e6, 1e9, 1e15, -1e6, -1e15)
        return _cast(costs, self.dtype)

    def forbid(self, costs: np.ndarray, kept: Any) -> np.ndarray:
        """Some of the costs +inf; the one at `kept` is not if the model is feasible."""
        banned = self.rng.random(costs.shape) < (0.3 if self.is_feasible else 0.6)
        if self.is_feasible:
            banned[kept] = False
        return np.where(banned, costs.dtype.type(math.inf), costs)

    def table(self, size: tuple[int, int], kept: tuple[int, int]) -> np.ndarray:
        costs = self.numbers(size, -5, 9, "tenths" if self.style == "products" else self.style)
        costs = costs * (self.scale if self.chance(0.7) else 1.0)
        if self.rarely(0.3):
            costs = costs + self.pick(1e3, 1e6, 1e9, 1e15, 1234.5678)
        if size[0] == size[1] and self.chance(0.4):
            costs = np.triu(costs) + np.triu(costs, 1).T
        if self.rarely(0.2):
            costs = costs * 10.0 ** self.rng.integers(0, 9, size)
        if self.forbids_pairs:
            return self.forbid(costs, kept)
        can_be_integers = self.style == "whole" and np.abs(costs).max() < 2**62
        return _cast(costs, self.pick("float64", "float64", "float32", "int64" if can_be_integers else "float64"))

    def factors(self, size: Any) -> np.ndarray:
        """Weights of edges."""
        low, high = self.spread
        exponents = self.numbers(size, low, high, "whole" if self.is_whole else "real")
        style = "whole" if self.style == "products" else self.style
        weights = self.numbers(size, -3 if self.is_signed else 1, 3, style) * 10.0**exponents
        weights = np.where(self.rng.random(size) < self.pick(0.0, 0.1, 0.4), 0.0, weights)
        return weights * 10 if self.style == "products" else weights

    def own_weight(self) -> float:
        """The weight of a pairwise cost."""
        style = "tenths" if self.style == "products" else self.style
        weight = float(self.numbers(None, self.pick(0, 1, 1), 6, style)) * (self.scale if self.chance(0.7) else 1.0)
        if self.rarely(0.4):
            weight *= 10.0 ** (self.pick(0, 3, 12) if self.is_whole else self.rng.uniform(-12, 12))
        return -weight if self.is_signed and self.chance(0.3) else weight

    def shared(self, size: tuple[int, int], kept: tuple[int, int]) -> tuple[Any, Fraction, np.ndarray]:
        """A pairwise cost of all edges, its weight, and its exact table without it."""
        if self.cost in ("table", "function"):
            costs = self.table(size, kept)
            given = Lookup(costs.tolist()) if self.cost == "function" else costs
            if self.cost == "table" and size[0] == size[1]:
                given = Call("Table", (costs,))
            return given, Fraction(1), exact(costs)
        weight, labels = self.own_weight(), max(size)
        if self.cost == "potts":
            return Call("Potts", (weight,)), Fraction(weight), exact(1 - np.eye(labels))
        values = self.values(labels)
        positions = exact(np.arange(labels) if values is None else values)
        distances = abs(np.subtract.outer(positions, positions)) ** (2 if self.cost == "quadratic" else 1)
        reach = float(distances.max())
        cutoff = float(self.pick(math.inf, math.inf, 1, 2, 0, 0.1, 3.75, reach, 0.7 * reach, 0.3 * reach))
        table = distances if cutoff == math.inf else np.minimum(distances, Fraction(cutoff))
        name = "TruncatedLinear" if self.cost == "linear" else "TruncatedQuadratic"
        return Call(name, (weight, cutoff), {} if values is None else {"values": values}), Fraction(weight), table

    def values(self, labels: int) -> np.ndarray | None:
        """Positions of the labels."""
        how = self.pick("none", "none", "even", "uneven", "unsorted")
        style = "whole" if self.is_whole or self.chance(0.3) else self.style
        if how == "none":
            return None
        if how == "even":
            values = np.arange(labels) * float(self.numbers(None, 1, 4, style))
        else:
            values = np.cumsum(self.numbers(labels, 0, 6, style))
        if self.rarely(0.4):
            values = values * 10.0 ** self.pick(2, 4, *(() if self.is_whole else (-6, -3)))
        if self.rarely(0.5):
            values = values + self.pick(1e3, -1e6, 1e9, *(() if self.is_whole else (0.1, 1 / 3)))
        if self.rarely(0.2):
            values[0] -= 1e8
        return self.rng.permutation(values) if how == "unsorted" else values

    # Grids

    def grid(self, plain: bool) -> tuple[Call, Truth]:
        labels = self.pick(1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5)
        shape, mask = self.sites(labels)
        connectivity, periodic = (1, (False,) * len(shape)) if plain else self.neighbours(shape)
        edge_shapes = naive_lattice.edge_shapes(shape, connectivity, periodic)
        starts = np.cumsum([0, *map(math.prod, edge_shapes)]).tolist()
        numbers = [start + np.arange(math.prod(s)).reshape(s) for start, s in zip(starts, edge_shapes, strict=False)]
        edges = naive_lattice.edges(shape, numbers, connectivity, periodic, mask)
        kept = self.rng.integers(labels, size=shape)  # a labelling that is allowed, if any
        if self.cost != "tables":
            kept[...] = kept.flat[0]
        unary = self.unary((*shape, labels))
        if self.forbids and unary.dtype.kind == "f" and self.chance(0.7):
            unary = self.forbid(unary, (*np.indices(shape), kept))
        weights = self.grid_weights(edge_shapes)
        if self.cost == "tables":
            ends = {int(number): (int(kept[i]), int(kept[j])) for i, j, number in edges}
            given = [self.edge_tables(ends, n, labels) for n in numbers]
            pairwise, own = Call("EdgeTables", (given,)), Fraction(1)
            tables = [table for array in given for table in exact(array).reshape(-1, labels, labels)]
        else:
            pairwise, own, table = self.shared((labels, labels), (kept.flat[0],) * 2)
            tables = [table] * starts[-1]
        truth = _grid_truth(unary, mask, edges, _factors(weights, edge_shapes, own), tables)
        if mask is not None and unary.dtype.kind == "f":
            unary[~mask] = self.pick(math.nan, math.inf, -math.inf, 7.0)
        options = {"weights": weights, "mask": mask, "connectivity": 2 if connectivity == 2 else None}
        options["periodic"] = (all(periodic) or periodic) if any(periodic) else None
        return Call("GridMRF", (unary, pairwise), {k: v for k, v in options.items() if v is not None}), truth

    def sites(self, labels: int) -> tuple[tuple[int, ...], np.ndarray | None]:
        """The shape of a grid, and its mask, if any."""
        shapes = _SHAPES_2D if self.chance(0.6) else _SHAPES_3D
        if self.chance(0.25):
            shape = self.pick(*shapes)
            return shape, self.mask(shape, labels)
        return self.pick(*(s for s in shapes if labels ** math.prod(s) <= MOST_LABELLINGS)), None

    def mask(self, shape: tuple[int, ...], labels: int) -> np.ndarray:
        mask = self.rng.random(shape) < self.pick(0.5, 0.7, 0.9)
        mask.flat[self.rng.integers(mask.size)] = True
        while labels ** int(mask.sum()) > MOST_LABELLINGS:
            mask.flat[self.rng.choice(np.flatnonzero(mask))] = False
        return mask

    def neighbours(self, shape: tuple[int, ...]) -> tuple[int, tuple[bool, ...]]:
        """Connectivity and periodic axes, not both plain."""
        periodic = tuple(n >= 3 and self.chance(0.4) for n in shape)
        return (1 if any(periodic) and self.chance(0.5) else 2), periodic

    def grid_weights(self, edge_shapes: list[tuple[int, ...]]) -> list | None:
        if self.chance(0.25):
            return None
        weights = []
        for shape in edge_shapes:
            factors = self.factors(shape if self.chance(0.7) else ())
            if factors.ndim == 0:
                weights.append(float(factors))
            else:
                weights.append(_cast(factors, self.pick("float64", "float64", "float32")))
        return weights

    def edge_tables(self, ends: dict[int, tuple[int, int]], numbers: np.ndarray, labels: int) -> np.ndarray:
        """The tables of the edges of one direction."""
        size = (labels, labels)
        tables = [self.table(size, ends.get(number, (0, 0))) for number in numbers.reshape(-1).tolist()]
        return np.array(tables).reshape(*numbers.shape, *size)

    # Graphs

    def graph(self) -> tuple[Call, Truth]:
        counts, is_bipartite = self.label_counts()
        edges = self.edges(counts, is_bipartite)
        kept = [int(self.rng.integers(count)) for count in counts]  # a labelling that is allowed, if any
        if self.cost != "tables":
            same = [int(self.rng.integers(min(counts))) for _ in range(2)]
            kept = [same[site % 2 if is_bipartite else 0] for site in range(len(counts))]
        unaries = [self.unary((count,)) for count in counts]
        if self.forbids and unaries[0].dtype.kind == "f" and self.chance(0.7):
            unaries = [self.forbid(costs, label) for costs, label in zip(unaries, kept, strict=True)]
        weights = None if self.chance(0.25) else self.factors(len(edges))
        if self.cost == "tables":
            own = Fraction(1)
            pairwise = [self.table((counts[i], counts[j]), (kept[i], kept[j])) for i, j in edges]
            for k in range(1, len(edges)):
                if edges[k] == edges[k - 1] and self.chance(0.5):
                    pairwise[k] = pairwise[k - 1]
            tables = [exact(table) for table in pairwise]
            if pairwise and len(set(counts)) == 1 and self.chance(0.2):
                pairwise = np.array(pairwise)
        else:
            size = (counts[0], counts[1]) if is_bipartite else (max(counts), max(counts))
            pairwise, own, table = self.shared(size, (kept[0], kept[int(is_bipartite)]))
            tables = [table[: counts[i], : counts[j]] for i, j in edges]
        if weights is not None and not self.forbids_pairs and self.chance(0.4):
            self.cancel(edges, weights)
        if weights is not None and self.chance(0.05):
            weights = np.asarray(weights.flat[0] if len(edges) else 1.0)
        offset = float(self.pick(0.0, 0.0, 0.1, 7.0, 1e-12, -1e6, 1e15)) if self.chance(0.4) else 0.0
        factors = np.broadcast_to(1.0 if weights is None else weights, len(edges)).tolist()
        terms = [((site,), exact(costs)) for site, costs in enumerate(unaries)]
        terms += edge_terms(edges, [own * Fraction(factor) for factor in factors], tables)
        if offset:
            terms.append(((), exact(offset)))
        given = np.array(unaries) if len(set(counts)) == 1 and self.chance(0.7) else unaries
        joined = np.array(edges, np.int64).reshape(-1, 2)
        options = {"weights": weights} if weights is not None else {}
        options |= {"offset": offset} if offset else {}
        return Call("GraphMRF", (given, joined, pairwise), options), Truth(counts, terms)

    def label_counts(self) -> tuple[list[int], bool]:
        """The number of labels of each site, and whether edges join even sites to odd ones only."""
        wanted = int(self.rng.integers(1, 10))
        is_bipartite = self.cost == "table" and self.chance(0.3) and wanted > 1
        if is_bipartite:
            counts = self.rng.choice(np.arange(1, 5), 2, replace=False)[np.arange(wanted) % 2]
        elif self.cost == "table" or self.chance(0.4):
            counts = np.full(wanted, self.pick(1, 2, 2, 3, 4, 5))
        else:
            counts = self.rng.integers(1, 6, wanted)
        fitting = int((np.cumprod(counts.astype(float)) <= MOST_LABELLINGS).sum())
        return counts[:fitting].tolist(), is_bipartite

    def edges(self, counts: list[int], is_bipartite: bool) -> list[tuple[int, int]]:
        size = len(counts)
        pairs = list(itertools.combinations(range(size), 2))
        how = self.pick("tree", "tree", "ring", "sparse", "dense", "any")
        if how == "tree":
            edges = [(i, int(self.rng.integers(i))) for i in range(1, size)]
        elif how == "ring":
            edges = [(i, (i + 1) % size) for i in range(size)]
        elif how == "dense":
            edges = pairs
        else:
            number = int(self.rng.integers(0, (size if how == "sparse" else 3 * size) + 1))
            edges = [pairs[k] for k in self.rng.integers(len(pairs), size=number)] if pairs else []
        if how != "tree" or self.chance(0.3):
            edges = [edge for edge in edges for _ in range(self.pick(1, 1, 1, 2, 3))]
        edges = [edge[:: self.pick(1, -1)] for edge in edges]
        if is_bipartite:
            return [(i, j) if i % 2 == 0 else (j, i) for i, j in edges if i % 2 != j % 2]
        return edges + [(i, i) for i in range(size) if self.chance(0.05)]

    def cancel(self, edges: list[tuple[int, int]], weights: np.ndarray) -> None:
        """Let the weights of parallel edges nearly cancel, in place."""
        for group in {frozenset(edge) for edge in edges}:
            places = [k for k, edge in enumerate(edges) if frozenset(edge) == group]
            if len(places) > 1:
                large, small = self.pick(1e12, 1e6, 0.1, 3.0), self.pick(1e-3, 1.0, 0.1)
                weights[places] = self.rng.permutation([large, -large, *[small] * (len(places) - 2)])


def _cast(numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers in another dtype, clipped to what it holds."""
    if np.dtype(dtype).kind == "f":
        most = 0.9 * float(np.finfo(dtype).max)
        numbers = np.clip(numbers, -most, most)
    return numbers.astype(dtype)


def _factors(weights: list | None, edge_shapes: list[tuple[int, ...]], own: Fraction) -> list[Fraction]:
    """The weights of all edges of a grid, exactly, that of the pairwise cost included."""
    given = [1.0] * len(edge_shapes) if weights is None else weights
    arrays = [np.broadcast_to(weight, shape) for weight, shape in zip(given, edge_shapes, strict=True)]
    return [own * Fraction(weight) for array in arrays for weight in array.reshape(-1).tolist()]


def _grid_truth(
    unary: np.ndarray, mask: np.ndarray | None, edges: list, factors: list[Fraction], tables: list[np.ndarray]
) -> Truth:
    """The energies of a grid. An edge has two sites, as coordinates, and the number of its factor and table."""
    *shape, labels = unary.shape
    exists = [True] * math.prod(shape) if mask is None else mask.reshape(-1).tolist()
    costs = exact(unary.reshape(-1, labels))
    terms = [((site,), costs[site]) for site, is_there in enumerate(exists) if is_there]
    joined = [tuple(int(np.ravel_multi_index(site, shape)) for site in edge[:2]) for edge in edges]
    used = [int(number) for _, _, number in edges]
    terms += edge_terms(joined, [factors[n] for n in used], [tables[n] for n in used])
    return Truth([labels if is_there else 1 for is_there in exists], terms)

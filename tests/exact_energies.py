"""Exact energies of small models, in rational numbers. Nothing here imports treefield.

A finite float is an integer times a power of two, and so are sums and products of floats.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np


def exact(costs: Any) -> np.ndarray:
    """Numbers as an object array of Fractions, None where they are infinite."""
    array = np.asarray(costs)
    numbers = [None if v == math.inf else Fraction(v) for v in array.reshape(-1).tolist()]
    return _objects(numbers, array.shape)


def _objects(values: list, shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


class Truth:
    """Every energy of a model, as an integer multiple of 1 / `unit`, where it is not `forbidden`.

    A term is a tuple of sites and an object array of exact costs with an axis for each of them.
    """

    def __init__(self, counts: Sequence[int], terms: list[tuple[tuple[int, ...], np.ndarray]]) -> None:
        self.terms = terms
        finite = [[cost for cost in table.reshape(-1) if cost is not None] for _, table in terms]
        self.unit = max((cost.denominator for costs in finite for cost in costs), default=1)
        self.magnitude = sum((max(map(abs, costs), default=Fraction()) for costs in finite), Fraction())
        self.simple_bound = sum((min(costs, default=Fraction()) for costs in finite), Fraction())
        self._energies = np.zeros(counts, object)
        self._forbidden = np.zeros(counts, bool)
        for sites, table in terms:
            whole = [0 if cost is None else int(cost * self.unit) for cost in table.reshape(-1)]
            spot = [counts[k] if k in sites else 1 for k in range(len(counts))]
            self._energies += _along(_objects(whole, table.shape), sites).reshape(spot)
            self._forbidden |= _along(np.equal(table, None), sites).reshape(spot)
        allowed = self._energies[~self._forbidden]
        self.minimum = Fraction(allowed.min(), self.unit) if allowed.size else None  # None: infeasible

    def energy(self, x: np.ndarray) -> Fraction | None:
        """The energy of a labelling, None if it is forbidden."""
        place = tuple(x.reshape(-1).tolist())
        return None if self._forbidden[place] else Fraction(self._energies[place], self.unit)

    def magnitude_of(self, x: np.ndarray) -> Fraction:
        """The magnitudes of all costs of a labelling that is not forbidden, added up."""
        labels = x.reshape(-1).tolist()
        return sum((abs(table[tuple(labels[site] for site in sites)]) for sites, table in self.terms), Fraction())

    @property
    def is_forest(self) -> bool:
        """Whether the pairs of sites that edges join have no cycle."""
        root = list(range(self._energies.ndim))
        for first, second in {tuple(sorted(set(sites))) for sites, _ in self.terms if len(set(sites)) == 2}:
            a, b = root[first], root[second]
            if a == b:
                return False
            root = [b if r == a else r for r in root]
        return True


def _along(table: np.ndarray, sites: tuple[int, ...]) -> np.ndarray:
    """A table with its axes in the order of the sites, the diagonal if both are the same."""
    if len(sites) == 2 and sites[0] == sites[1]:
        return np.diagonal(table)
    return table.T if len(sites) == 2 and sites[0] > sites[1] else table


def edge_terms(edges: list, weights: list[Fraction], tables: list[np.ndarray]) -> list[tuple[tuple, np.ndarray]]:
    """The terms of edges; one of weight 0 is no edge, whatever its table forbids."""
    terms = []
    for (i, j), weight, table in zip(edges, weights, tables, strict=True):
        if weight != 0:
            costs = [None if cost is None else weight * cost for cost in table.reshape(-1)]
            terms.append(((i, j), _objects(costs, table.shape)))
    return terms

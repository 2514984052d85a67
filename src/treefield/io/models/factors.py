"""Factors of model files: costs of one, two or more sites, and how they become a `GraphMRF`.

A cost of three or more sites becomes an auxiliary site, numbered after those of the file. Its labels are the
assignments that are not forbidden, its unary costs are theirs, and an edge to each of the sites forbids labels that
disagree with them. The energies are those of the file, wherever the auxiliary sites agree with the others.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from treefield.io.limits import check_memory
from treefield.io.paths import as_text
from treefield.models.graph import GraphMRF
from treefield.models.pairwise import Potts
from treefield.models.quadratic_form import QuadraticForm

MOST_ASSIGNMENTS = 4096  # labels that an auxiliary site may have
MOST_SITES = 1000  # that one factor may have
_FREE_CELLS, _CELLS_PER_WORD = 2**24, 64  # costs that a file may claim: free of charge, and per word that it holds


@dataclasses.dataclass
class Factors:
    """Costs as a file lists them: for each a scope, the sites it depends on, and a table with an axis for each.

    `words` is how many words of the file have been read; they, and the size of the file `path`, bound the costs that
    may be made of them.
    """

    path: pathlib.Path
    label_counts: np.ndarray
    words: int = 0
    name: str = "factor"
    constant: float = 0.0
    scopes: list[tuple[int, ...]] = dataclasses.field(default_factory=list)
    tables: list[np.ndarray] = dataclasses.field(default_factory=list)
    larger: dict[tuple[int, ...], list[Any]] = dataclasses.field(default_factory=dict)
    _cells: int = 0
    _checked: int = 0

    def __post_init__(self) -> None:
        if len(self.label_counts) == 0:
            raise ValueError("it has no sites")

    def as_scope(self, scope: Sequence[int], where: str) -> tuple[int, ...]:
        """A scope without repeated sites, each of them there."""
        if len(scope) > MOST_SITES:
            raise ValueError(f"{self.name} {where} is of {len(scope)} sites, expected up to {MOST_SITES}")
        sites = tuple(map(int, scope))
        if len(set(sites)) < len(sites):
            twice = collections.Counter(sites).most_common(1)[0][0]
            raise ValueError(f"{self.name} {where} names site {twice} twice")
        if sites and not 0 <= min(sites) <= max(sites) < len(self.label_counts):
            raise ValueError(
                f"{self.name} {where} names site {max(sites)}, but sites are 0 to {len(self.label_counts) - 1}"
            )
        return sites

    def shape(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a table of these sites."""
        return tuple(int(self.label_counts[site]) for site in scope)

    def add(self, scope: tuple[int, ...], costs: np.ndarray) -> None:
        """Add a full table, in C order: costs, +inf where forbidden."""
        shape = self.shape(scope)
        table = costs if costs.shape == shape else costs.reshape(shape)  # a table that many share stays one
        if not scope:
            self._add_constant(float(table))
        elif len(scope) <= 2:
            self._count(table.size)
            self.scopes.append(scope)
            self.tables.append(table)
        else:
            allowed = np.flatnonzero(table < math.inf)
            self._add_larger(scope, allowed, table.reshape(-1)[allowed])

    def add_sparse(self, scope: tuple[int, ...], default: float, labels: np.ndarray, costs: np.ndarray) -> None:
        """Add a table that is `default` except for some rows of `labels`, each a label for each site.

        Of equal rows the last counts.
        """
        shape = self.shape(scope)
        if not scope:
            self._add_constant(default)
            return
        self._count(len(labels))  # functions may share them
        places = np.zeros(len(labels), object if math.prod(shape) >= 2**62 else np.int64)
        for axis, count in enumerate(shape):
            places = places * count + labels[:, axis]
        if len(scope) <= 2 or default < math.inf:
            if len(scope) > 2:
                self._check_assignments(scope, math.prod(shape))
            self._count(math.prod(shape))
            table = np.full(math.prod(shape), default)
            table[places.astype(np.int64)] = costs
            self.add(scope, table)
            return
        last = dict(zip(places.tolist(), costs.tolist(), strict=True))
        kept = sorted(place for place, cost in last.items() if cost < math.inf)
        self._add_larger(scope, np.array(kept, places.dtype), np.array([last[place] for place in kept], np.float64))

    def graph(self) -> GraphMRF:
        """The model."""
        self._count(int(self.label_counts.sum()))
        unaries = [np.zeros(count) for count in self.label_counts]
        edges, tables = [], []
        for scope, table in zip(self.scopes, self.tables, strict=True):
            if len(scope) == 1:
                unaries[scope[0]] += table
            else:
                edges.append(scope)
                tables.append(table)
        size = len(unaries)
        self._check_sums()
        for scope, (places, costs) in self.larger.items():
            self._join(len(unaries), scope, places, edges, tables)
            unaries.append(costs if len(costs) else np.array([math.inf]))
        weights = _potts_weights(tables)
        pairwise: Any = tables if weights is None else Potts(1)
        pairs = np.array(edges, np.int64).reshape(-1, 2)
        mrf = GraphMRF(unaries, pairs, pairwise, weights=weights, offset=self.constant)
        if len(unaries) > size:
            mrf.auxiliary = len(unaries) - size
        return mrf

    def _join(self, site: int, scope: tuple[int, ...], places: np.ndarray, edges: list, tables: list) -> None:
        """Edges from an auxiliary site to those of its scope."""
        rest = places if len(places) else np.zeros(1, np.int64)
        for other, count in reversed(list(zip(scope, self.shape(scope), strict=True))):
            labels = (rest % count).astype(np.int64)
            rest = rest // count
            table = np.full((len(labels), count), math.inf)
            table[np.arange(len(labels)), labels] = 0
            edges.append((site, other))
            tables.append(table)

    def _add_larger(self, scope: tuple[int, ...], places: np.ndarray, costs: np.ndarray) -> None:
        """Add costs of three or more sites, of which only those at `places` are allowed, to those of the same scope."""
        self._check_assignments(scope, len(places))
        order = np.argsort(scope, kind="stable")
        scope, shape = tuple(sorted(scope)), self.shape(scope)
        sorted_shape = tuple(shape[axis] for axis in order)
        if list(order) != list(range(len(order))):
            rest, columns = places, []
            for count in reversed(shape):
                columns.append(rest % count)
                rest = rest // count
            columns.reverse()
            places = np.zeros(len(places), places.dtype)
            for axis, count in zip(order, sorted_shape, strict=True):
                places = places * count + columns[axis]
            order = np.argsort(places, kind="stable")
            places, costs = places[order], costs[order]
        if scope in self.larger:
            old_places, old_costs = self.larger[scope]
            places, left, right = np.intersect1d(old_places, places, assume_unique=True, return_indices=True)
            costs = old_costs[left] + costs[right]
        self._count(len(places) * sum(shape))
        self.larger[scope] = [places, costs]

    def _check_assignments(self, scope: tuple[int, ...], count: int) -> None:
        if count > MOST_ASSIGNMENTS:
            sites = ", ".join(map(str, scope[:6])) + (", ..." if len(scope) > 6 else "")
            raise ValueError(
                f"its {self.name} of arity {len(scope)}, sites {sites}, has {count} assignments that are not "
                f"forbidden; one of three or more sites may have {MOST_ASSIGNMENTS}"
            )

    def _add_constant(self, value: float) -> None:
        if not math.isfinite(self.constant + value):
            raise ValueError(f"a {self.name} without sites costs {value}: no labelling is allowed")
        self.constant += value

    def _check_sums(self) -> None:
        if not math.isfinite(self.constant):
            raise ValueError("its costs are too large to be added")

    def _count(self, cells: int) -> None:
        """Refuse what a few words claim, before it is allocated."""
        self._cells += cells
        if self._cells <= _FREE_CELLS:
            return
        words = max(self.words, self.path.stat().st_size // 2)
        if self._cells > _FREE_CELLS + _CELLS_PER_WORD * words:
            raise ValueError(f"it claims tables of more than {self._cells} costs, far more than its {words} words tell")
        if self._cells > self._checked:
            check_memory(self.path, 16 * self._cells)
            self._checked = self._cells + _FREE_CELLS


def _potts_weights(tables: list[np.ndarray]) -> np.ndarray | None:
    """The weight of each edge if all are Potts: 0 for equal labels, the same for all that differ. None if not.

    Solvers are faster, and need less memory, where they know.
    """
    weights = np.empty(len(tables))
    known: dict[int, float] = {}
    for index, table in enumerate(tables):
        if id(table) not in known:
            if len(table) < 2 or table.shape[0] != table.shape[1] or not math.isfinite(table[0, 1]):
                return None
            if (table != np.where(np.eye(len(table), dtype=bool), 0.0, table[0, 1])).any():
                return None
            known[id(table)] = float(table[0, 1])
        weights[index] = known[id(table)]
    return weights if weights.all() else None


def count_own_sites(mrf: GraphMRF) -> int:
    """How many sites are no auxiliary ones."""
    return mrf.size - mrf.auxiliary


def as_writable_form(mrf: object, vartype: str, path: pathlib.Path) -> QuadraticForm:
    """A model of two labels as the formats of spin glasses, max-cut and QUBO hold it, or an error."""
    graph = as_writable_graph(mrf, path)
    try:
        return QuadraticForm.from_graph(graph, vartype)
    except ValueError as error:
        raise ValueError(f"cannot write {as_text(path)}: {error}") from None


def as_writable_graph(mrf: object, path: pathlib.Path) -> GraphMRF:
    """`mrf` if it is a graph model without auxiliary sites, or an error."""
    if not isinstance(mrf, GraphMRF):
        raise TypeError(f"mrf must be a GraphMRF, got {type(mrf).__name__}; save_model writes grids")
    if mrf.auxiliary:
        raise ValueError(
            f"cannot write {as_text(path)}: the model has {mrf.auxiliary} auxiliary sites, which stand for costs of "
            "three and more sites; save_model writes it as .npz"
        )
    return mrf

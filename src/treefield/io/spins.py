"""Models of two labels as fields and couplings, which the formats of spin glasses, max-cut and QUBO share."""

from __future__ import annotations

import dataclasses
import decimal
import math
from typing import Any

import numpy as np

from treefield.io.factors import refuse_auxiliary
from treefield.models.graph import GraphMRF
from treefield.models.pairwise import Table

VARTYPES = ("SPIN", "BINARY")
_FREE_SITES, _SITES_PER_WORD = 2**20, 64
_PAIR = {"SPIN": np.array([[1.0, -1.0], [-1.0, 1.0]]), "BINARY": np.array([[0.0, 0.0], [0.0, 1.0]])}
_FIRST = {"SPIN": -1.0, "BINARY": 0.0}  # what the first label stands for; the second stands for 1


@dataclasses.dataclass
class Quadratic:
    """sum of linear[i] v_i + sum of quadratic[e] v_i v_j over edges + offset, v being -1 and 1, or 0 and 1."""

    vartype: str
    linear: np.ndarray
    edges: np.ndarray
    quadratic: np.ndarray
    offset: float = 0.0

    def graph(self) -> GraphMRF:
        """The model, label 0 for the lower of the two values."""
        if not (np.isfinite(self.linear).all() and np.isfinite(self.quadratic).all() and math.isfinite(self.offset)):
            raise ValueError("it holds numbers that are not finite")
        unary = np.stack([_FIRST[self.vartype] * self.linear, self.linear], axis=1) + 0.0
        return GraphMRF(unary, self.edges, Table(_PAIR[self.vartype]), weights=self.quadratic, offset=self.offset)


def check_sites(size: int, words: int) -> int:
    """Refuse a number of sites that a few words claim, before anything is allocated."""
    if size < 1:
        raise ValueError("it has no sites")
    if size > _FREE_SITES + _SITES_PER_WORD * words:
        raise ValueError(f"it claims {size} sites, far more than its {words} words tell")
    return size


def quadratic_of(mrf: Any, vartype: str, path: Any) -> Quadratic:
    """A model of two labels as linear and quadratic terms, or an error."""
    refuse_auxiliary(mrf, path)
    if (mrf.label_counts != 2).any():
        site = int(np.argmax(mrf.label_counts != 2))
        raise ValueError(
            f"cannot write {path}: site {site} has {mrf.label_counts[site]} labels, but the format is for two"
        )
    unary = np.array(mrf.unaries)
    tables = np.array([mrf.edge_costs(edge) for edge in range(len(mrf.edges))]).reshape(-1, 2, 2)
    if not (np.isfinite(unary).all() and np.isfinite(tables).all()):
        raise ValueError(f"cannot write {path}: the format holds no forbidden (infinite) costs")
    a, b, c, d = tables.reshape(-1, 4).T
    first, second = mrf.edges.T if len(mrf.edges) else np.zeros((2, 0), np.int64)
    if vartype == "SPIN":
        linear = (unary[:, 1] - unary[:, 0]) / 2
        np.add.at(linear, first, ((c + d) - (a + b)) / 4)
        np.add.at(linear, second, ((b + d) - (a + c)) / 4)
        quadratic = ((a + d) - (b + c)) / 4
        offset = mrf.offset + ((unary[:, 0] + unary[:, 1]) / 2).sum() + ((a + d) + (b + c)).sum() / 4
    else:
        linear = unary[:, 1] - unary[:, 0]
        np.add.at(linear, first, c - a)
        np.add.at(linear, second, b - a)
        quadratic = (a + d) - (b + c)
        offset = mrf.offset + unary[:, 0].sum() + a.sum()
    return Quadratic(vartype, linear + 0.0, mrf.edges, quadratic + 0.0, float(offset) + 0.0)


def plain(value: float) -> str:
    """A float as the shortest decimal that gives it back, without an exponent: some programs read none."""
    if abs(value) < 1e15 and value == int(value):
        return str(int(value))
    return format(decimal.Decimal(repr(value)), "f")

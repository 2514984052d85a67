"""Models of two labels as linear and quadratic terms over spins or bits: Ising models, max-cut and QUBO."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from treefield.models.graph import GraphMRF
from treefield.models.pairwise import Table

VARTYPES = ("SPIN", "BINARY")
_LOWER_VALUE = {"SPIN": -1.0, "BINARY": 0.0}  # of label 0; label 1 has the value 1
_PRODUCTS = {"SPIN": Table([[1.0, -1.0], [-1.0, 1.0]]), "BINARY": Table([[0.0, 0.0], [0.0, 1.0]])}


def product_table(vartype: str) -> Table:
    """The product v_i v_j of two variables as a table of their labels."""
    return _PRODUCTS[vartype]


def linear_unary(linear: np.ndarray, vartype: str) -> np.ndarray:
    """The term linear[i] v_i as unary costs: an array of one more axis, for the two labels."""
    return np.stack([_LOWER_VALUE[vartype] * linear, linear], axis=-1) + 0.0  # no -0.0


@dataclasses.dataclass
class QuadraticForm:
    """offset + sum of linear[i] v_i over sites + sum of quadratic[e] v_i v_j over edges.

    Each v is -1 or 1 for the vartype "SPIN", and 0 or 1 for "BINARY".
    """

    vartype: str
    linear: np.ndarray
    edges: np.ndarray
    quadratic: np.ndarray
    offset: float = 0.0

    @classmethod
    def from_graph(cls, mrf: GraphMRF, vartype: str) -> QuadraticForm:
        """The form with the energies of a model; raise ValueError for other than two labels, or forbidden costs."""
        if (mrf.label_counts != 2).any():
            site = int(np.argmax(mrf.label_counts != 2))
            raise ValueError(f"site {site} has {mrf.label_counts[site]} labels, but spins and bits have two")
        unary = np.array(mrf.unaries)
        tables = np.array([mrf.edge_costs(edge) for edge in range(len(mrf.edges))]).reshape(-1, 2, 2)
        if not (np.isfinite(unary).all() and np.isfinite(tables).all()):
            raise ValueError("spins and bits have no forbidden (infinite) costs; make them finite and large")
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
        return cls(vartype, linear + 0.0, mrf.edges, quadratic + 0.0, float(offset) + 0.0)

    def to_graph(self) -> GraphMRF:
        """The model with these energies; label 0 is the lower of a variable's two values."""
        if not (np.isfinite(self.linear).all() and np.isfinite(self.quadratic).all() and math.isfinite(self.offset)):
            raise ValueError("it holds NaN or infinity; every bias and the offset must be finite")
        unary = linear_unary(self.linear, self.vartype)
        return GraphMRF(unary, self.edges, product_table(self.vartype), weights=self.quadratic, offset=self.offset)

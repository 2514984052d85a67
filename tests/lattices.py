"""Random grids with any neighbours: the treefield model and the explicit edges of `naive_lattice`."""

import math

import numpy as np

import naive_lattice
import treefield as tf


class Case:
    """One model twice. Costs are whole numbers, so that energies are exact, and labels must agree, ties included."""

    def __init__(self, seed, shape, kind="table", labels=3, connectivity=2, periodic=None, masked=False, uniform=False):
        rng = np.random.default_rng(seed)
        self.unary = rng.integers(0, 9, (*shape, labels)).astype(np.float32 if kind == "potts" else np.float64)
        self.mask = rng.random(shape) < 0.7 if masked else None
        shapes = naive_lattice.edge_shapes(shape, connectivity, periodic)
        low = 0 if kind == "potts" else -3
        weights = [rng.integers(low, 4, () if uniform else s).astype(np.float64) for s in shapes]
        if kind == "edge-tables":
            tables = [rng.integers(-3, 4, (*s, labels, labels)).astype(np.float64) for s in shapes]
            pairwise = tf.EdgeTables(tables)
        else:
            table = 1 - np.eye(labels) if kind == "potts" else rng.integers(-3, 4, (labels, labels)).astype(np.float64)
            pairwise = tf.Potts(1) if kind == "potts" else tf.Table(table)
            tables = [np.broadcast_to(table, (*s, labels, labels)) for s in shapes]
        full = [np.broadcast_to(w, s)[..., None, None] * t for w, s, t in zip(weights, shapes, tables, strict=True)]
        lattice = {"connectivity": connectivity, "periodic": False if periodic is None else periodic}
        self.edges = naive_lattice.edges(shape, full, connectivity, periodic, self.mask)
        given = self.unary.copy()
        if masked:
            given[~self.mask] = rng.choice([math.nan, math.inf, -math.inf, 7.0], (*shape, labels))[~self.mask]
            self.unary[~self.mask] = 0
        self.mrf = tf.GridMRF(given, pairwise, weights=weights, mask=self.mask, **lattice)
        self.rng = rng

    def random(self):
        return self.rng.integers(self.mrf.n_labels, size=self.mrf.shape, dtype=np.int32)

    def energy(self, x):
        return naive_lattice.energy(self.unary, self.edges, x, self.mask)

    def least(self):
        return naive_lattice.least_energy(self.unary, self.edges, self.mask)

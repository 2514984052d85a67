"""Grids with any neighbours, the obvious slow way: every edge by itself, in a list.

Nothing here imports treefield. A naive model is a `unary`, array (*grid_shape, L), and `edges`: pairs of sites (tuples
of coordinates), each with its table [label of the first, label of the second], weight included.
"""

import itertools
import math

import numpy as np

import naive

STEPS = {
    (2, 1): [(1, 0), (0, 1)],
    (2, 2): [(1, 0), (0, 1), (1, 1), (1, -1)],
    (3, 1): [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
    (3, 2): [
        *[(1, 0, 0), (0, 1, 0), (0, 0, 1)],
        *[(1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)],
        *[(1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)],
    ],
}


def edge_shapes(shape, connectivity=1, periodic=None):
    """The shape of the edges of each direction."""
    periodic = periodic or (False,) * len(shape)
    sizes = list(zip(shape, periodic, strict=True))
    steps = STEPS[len(shape), connectivity]
    return [tuple(n if ring or s == 0 else n - 1 for s, (n, ring) in zip(step, sizes, strict=True)) for step in steps]


def edges(shape, tables, connectivity=1, periodic=None, mask=None):
    """All edges; `tables` has an array (*edge_shape, L, L) for each direction."""
    periodic = periodic or (False,) * len(shape)
    found = []
    for number, step in enumerate(STEPS[len(shape), connectivity]):
        for i in np.ndindex(*shape):
            j = tuple(a + s for a, s in zip(i, step, strict=True))
            if not all(0 <= b < n or ring for b, n, ring in zip(j, shape, periodic, strict=True)):
                continue
            # an entry has the number of the end from which a step forwards leads to the other
            place = tuple((a if s >= 0 else b) % n for a, b, s, n in zip(i, j, step, shape, strict=True))
            j = tuple(b % n for b, n in zip(j, shape, strict=True))
            if mask is None or (mask[i] and mask[j]):
                found.append((i, j, tables[number][place]))
    return found


def energy(unary, edges, x, mask=None):
    """The sum of all costs of a labelling."""
    sites = [i for i in np.ndindex(*x.shape) if mask is None or mask[i]]
    return math.fsum([*(unary[i][x[i]] for i in sites), *(table[x[i], x[j]] for i, j, table in edges)])


def least_energy(unary, edges, mask=None):
    """By enumeration of the labels of all sites that exist."""
    *shape, labels = unary.shape
    sites = [i for i in np.ndindex(*shape) if mask is None or mask[i]]
    place = {site: k for k, site in enumerate(sites)}
    choices = np.array(list(itertools.product(range(labels), repeat=len(sites))))
    energies = sum(unary[site][choices[:, k]] for site, k in place.items())
    for i, j, table in edges:
        energies = energies + table[choices[:, place[i]], choices[:, place[j]]]
    return float(energies.min())


def neighbours_of(edges):
    """For each site its neighbours, with tables [own label, label of the neighbour]."""
    around = {}
    for i, j, table in edges:
        around.setdefault(i, {})[j] = table
        around.setdefault(j, {})[i] = table.T
    return around


def sweep(unary, edges, x, schedule):
    """T-ICM: one pass over every chain, all of a step from the same labelling; ties as in `naive`."""
    around = neighbours_of(edges)
    x = x.copy()
    for step in schedule:
        old = x.copy()
        for chain in step:
            costs = [_absorbed(unary, around, old, i, set(chain)) for i in chain]
            no_edge = np.zeros(2 * unary.shape[-1:])
            between = [around.get(i, {}).get(j, no_edge) for i, j in itertools.pairwise(chain)]
            x[tuple(np.transpose(chain))] = naive._min_sum(costs, between)
    return x


def icm_sweep(unary, edges, x, schedule):
    """ICM: the chains of a step advance together, one site each at a time."""
    around = neighbours_of(edges)
    x = x.copy()
    for step in schedule:
        for sites in itertools.zip_longest(*step):
            for i in sites:
                if i is not None:
                    x[i] = _absorbed(unary, around, x, i, ()).argmin()
    return x


def _absorbed(unary, around, x, i, inside):
    cost = unary[i].astype(np.float64)
    for j, table in around.get(i, {}).items():
        if j not in inside:
            cost = cost + table[:, x[j]]
    return cost

"""The obvious slow version of every kernel, which the fast one must equal on random input.

Nothing here imports treefield: what is shared cannot be tested. A naive model is two things:

- `unary`: array (*grid_shape, L), grid 2-D or 3-D;
- `tables`: one float64 array per axis, (*edge_shape, L, L). `tables[a][i][p, q]` is the full cost, weight included, of
  the edge from site i with label p to its neighbour at +1 along axis a with label q.

+inf is a forbidden cost. A site is a tuple of coordinates, a chain a list of sites, each next to the one before.
A schedule is a list of steps; a step is a list of chains that never touch and are solved from the same labelling.
Among labels of equal cost the lowest wins.
"""

import itertools
import math

import numpy as np

# --- models ---------------------------------------------------------------------------------------------------------


def edge_shape(shape, axis):
    """Shape of the array of edges along `axis`: one fewer than sites."""
    axis %= len(shape)
    return tuple(n - (a == axis) for a, n in enumerate(shape))


def explicit_tables(shape, table, weights=None):
    """One table per edge from a shared one. Weight 0 means no edge, so it also lifts what the table forbids."""
    if weights is None:
        weights = (1.0,) * len(shape)
    tables = []
    for axis, weight in enumerate(weights):
        weight = np.broadcast_to(np.asarray(weight, np.float64), edge_shape(shape, axis))[..., None, None]
        present = weight != 0
        tables.append(np.where(present, np.where(present, weight, 1.0) * np.asarray(table, np.float64), 0.0))
    return tables


def potts(L):
    return 1.0 - np.eye(L)


def truncated_linear(L, cutoff, values=None):
    return np.minimum(np.abs(_differences(L, values)), cutoff)


def truncated_quadratic(L, cutoff, values=None):
    return np.minimum(_differences(L, values) ** 2, cutoff)


def _differences(L, values):
    values = np.arange(L) if values is None else values
    values = np.asarray(values, np.float64)
    return values[:, None] - values[None, :]


def neighbours(shape, i):
    """The sites that share an edge with site i."""
    for axis, n in enumerate(shape):
        for coordinate in (i[axis] - 1, i[axis] + 1):
            if 0 <= coordinate < n:
                yield (*i[:axis], coordinate, *i[axis + 1 :])


def edge_table(tables, i, j):
    """The table of the edge between i and j, indexed [label of i, label of j] whichever comes first in the grid."""
    axis = next(a for a in range(len(i)) if i[a] != j[a])
    return tables[axis][i] if i < j else tables[axis][j].T


# --- energy ---------------------------------------------------------------------------------------------------------


def energy(unary, tables, x):
    """Sum of all costs of labelling x; inf if one of them is forbidden."""
    infinite, finite = conditional_energy(unary, tables, x, list(np.ndindex(*x.shape)))
    return math.inf if infinite else finite


def conditional_energy(unary, tables, x, sites):
    """The costs that involve at least one of `sites`, as the pair (number of infinite costs, sum of the finite ones).

    Pairs compare lexicographically, so that of two forbidden labellings the one that is less forbidden is the lower.
    """
    inside = set(sites)
    costs = [float(unary[i][x[i]]) for i in inside]
    for i in inside:
        for j in neighbours(x.shape, i):
            if j not in inside or i < j:  # an edge inside is met from both ends: count it once
                costs.append(float(edge_table(tables, i, j)[x[i], x[j]]))
    finite = [cost for cost in costs if math.isfinite(cost)]
    return len(costs) - len(finite), math.fsum(finite)


# --- exact search by enumeration ------------------------------------------------------------------------------------


def brute_force(unary, tables):
    """The least energy and the list of all labellings that reach it (within 1e-9 relative), lowest labels first."""
    *shape, L = unary.shape
    x = np.zeros(shape, np.int32)
    sites = list(np.ndindex(*shape))
    energies = _enumerate(unary, tables, x, sites)
    least = float(energies.min())
    reached = np.flatnonzero(energies <= least + 1e-9 * max(1.0, abs(least)))
    return least, list(_digits(reached, L, len(sites)).reshape(-1, *shape))


def solve_tree_brute(unary, tables, x, sites):
    """The least energy over all labels of `sites`, the others fixed, and the lowest labels that reach it."""
    energies = _enumerate(unary, tables, x, sites)
    best = int(energies.argmin())
    return float(energies[best]), _digits(np.array([best]), unary.shape[-1], len(sites))[0]


def _enumerate(unary, tables, x, sites, chunk=65536):
    """Energy of x for every choice of labels of `sites`; choice c gives them the digits of c in base L."""
    L = unary.shape[-1]
    energies = np.zeros(L ** len(sites))
    for start in range(0, len(energies), chunk):
        total = energies[start : start + chunk]
        choices = _digits(np.arange(start, start + len(total)), L, len(sites))
        labels = {i: x[i] for i in np.ndindex(*x.shape)}
        labels |= {i: choices[:, k] for k, i in enumerate(sites)}
        for i in labels:
            total += unary[i][labels[i]]
            for j in neighbours(x.shape, i):
                if i < j:
                    total += edge_table(tables, i, j)[labels[i], labels[j]]
    return energies


def _digits(numbers, base, count):
    """(len(numbers), count) int32, most significant first: counting up is lexicographic order of labels."""
    digits = np.empty((len(numbers), count), np.int32)
    for k in reversed(range(count)):
        numbers, digits[:, k] = np.divmod(numbers, base)
    return digits


# --- trees and schedules --------------------------------------------------------------------------------------------


def lines(shape, axis):
    """All lines along `axis`, in raster order of their other coordinates."""
    axis %= len(shape)
    starts = [i for i in np.ndindex(*shape) if i[axis] == 0]
    return [[(*i[:axis], k, *i[axis + 1 :]) for k in range(shape[axis])] for i in starts]


def rows_columns(shape):
    """One line per step: the paper's order, rows first."""
    return [[line] for axis in _axes(shape) for line in lines(shape, axis)]


def alternating(shape):
    """Even lines, then odd lines of each axis, by the sum of their other coordinates: lines that touch differ in it."""
    schedule = []
    for axis in _axes(shape):
        for parity in (0, 1):
            # A line starts at coordinate 0 of its own axis, so the sum of its first site is that of the others.
            schedule.append([line for line in lines(shape, axis) if sum(line[0]) % 2 == parity])
    return [step for step in schedule if step]


def bands(shape, count):
    """Each axis cut into at most `count` bands that advance together, one line of each band per step."""
    schedule = []
    for axis in _axes(shape):
        every = lines(shape, axis)
        cross = [a for a in range(len(shape)) if a != axis]
        cut = max(cross, key=lambda a: shape[a])  # max keeps the first of equals
        length = shape[cut]
        B = max(1, min(count, length // 2))
        K = math.ceil(length / B)
        other = [a for a in cross if a != cut]  # none in 2-D
        for k in range(K):
            starts = [b * K + k for b in range(B)]
            for m in np.ndindex(*(shape[a] for a in other)):
                step = [line for line in every if line[0][cut] in starts and tuple(line[0][a] for a in other) == m]
                schedule.append(step)
    return schedule


def combs(shape):
    """Four trees that cover a 2-D grid: every second line and the border line that joins them."""
    sites = list(np.ndindex(*shape))
    return [
        [i for i in sites if i[axis] % 2 == parity or i[1 - axis] == 0]  # axis 0: the index of a row
        for axis in (0, 1)
        for parity in (0, 1)
    ]


def is_induced_forest(shape, sites):
    """True if the edges of the grid between `sites` close no cycle."""
    parent = {i: i for i in sites}

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for i in parent:
        for j in neighbours(shape, i):
            if j in parent and i < j:
                if root(i) == root(j):
                    return False
                parent[root(i)] = root(j)
    return True


def _axes(shape):
    return range(len(shape) - 1, -1, -1)


# --- solvers --------------------------------------------------------------------------------------------------------


def solve_chain(unary, tables, x, chain):
    """Labels of `chain` that minimise the energy while the rest of x is fixed (Eq. 9); rooted at its middle, the lowest
    among equals."""
    costs = [_absorb(unary, tables, x, i, inside=set(chain)) for i in chain]
    return _min_sum(costs, [edge_table(tables, i, j) for i, j in itertools.pairwise(chain)])


def sweep(unary, tables, x, schedule):
    """T-ICM: one pass over every chain. New labels are taken where the chain's conditional energy does not rise."""
    x = x.copy()
    for step in schedule:
        old = x.copy()
        for chain in step:
            new = old.copy()
            new[tuple(np.transpose(chain))] = solve_chain(unary, tables, old, chain)
            if conditional_energy(unary, tables, new, chain) <= conditional_energy(unary, tables, old, chain):
                for i in chain:
                    x[i] = new[i]
    return x


def icm_sweep(unary, tables, x, schedule):
    """ICM (Eq. 4): the chains of a step advance together, one site each at a time.

    The sites are visited once if `schedule` holds the steps of one axis only.
    """
    x = x.copy()
    for step in schedule:
        for sites in itertools.zip_longest(*step):
            for i in sites:
                if i is not None:
                    x[i] = _absorb(unary, tables, x, i).argmin()
    return x


def scan_line(unary, tables, nu, axis):
    """Each line along `axis` solved alone with nu * unary. What the unary forbids stays forbidden, even for nu = 0."""
    unary = np.asarray(unary, np.float64)
    unary = np.where(np.isinf(unary), unary, nu * np.where(np.isinf(unary), 0.0, unary))
    x = np.zeros(unary.shape[:-1], np.int32)
    for line in lines(x.shape, axis):
        between = [edge_table(tables, i, j) for i, j in itertools.pairwise(line)]
        x[tuple(np.transpose(line))] = _min_sum([unary[i] for i in line], between)
    return x


def _absorb(unary, tables, x, i, inside=()):
    """Cost of each label of site i, with the edges to its neighbours that are not inside the tree (Eq. 8)."""
    cost = unary[i].astype(np.float64)
    for j in neighbours(x.shape, i):
        if j not in inside:
            cost += edge_table(tables, i, j)[:, x[j]]
    return cost


def _min_sum(costs, between):
    """Minimiser of a chain rooted at its middle: messages from both ends inwards (Eq. 5), then labels outwards."""
    middle = len(costs) // 2
    left, from_left = _inward(costs[:middle], between[:middle])
    back = [table.T for table in between[middle:][::-1]]
    right, from_right = _inward(costs[:middle:-1], back)
    root = (costs[middle] + from_left + from_right).argmin()
    return np.array([*_outward(left, between[:middle], root)[::-1], root, *_outward(right, back, root)], np.int32)


def _inward(costs, between):
    """Costs of a branch's sites with their messages, and the message that leaves it."""
    h, message = [], 0.0
    for cost, table in zip(costs, between, strict=True):
        h.append(cost + message)
        message = (h[-1][:, None] + table).min(axis=0)
    return h, message


def _outward(h, between, label):
    """Labels of a branch from the root's neighbour on; the lowest among equals."""
    labels = []
    for cost, table in zip(h[::-1], between[::-1], strict=True):
        label = (cost + table[:, label]).argmin()
        labels.append(label)
    return labels

"""Exact search on any induced forest of a grid: sites of equal height go together, eight at a time."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.grid.energy import edge_weight, neighbour
from treefield.kernels.rules.rule import add_edge_cost, argmin_given, edge_cost, label_count, message, prepare
from treefield.kernels.simd.jit import helper, inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, broadcast, cast, load, minimum, store, where


class GridForest(NamedTuple):
    """The sites of a forest in groups of eight, children before parents.

    Flat arrays [group][lane] but for the last two:

    sites      the site (an arbitrary one in lanes not in use)
    parents    where the parent stands: its group * 8 + its lane
    trees      number of the tree that the site belongs to
    directions [group] the way to the parent (see `neighbour`), the same for the whole group; -1 for roots
    counts     [group] how many lanes are in use
    """

    sites: np.ndarray
    parents: np.ndarray
    trees: np.ndarray
    directions: np.ndarray
    counts: np.ndarray


class GridForestScratch(NamedTuple):
    """Workspace of the search on a forest.

    The unary costs, and all costs, [group][label][lane], a message [label][lane], minima and labels [group][lane],
    per-site membership, the energy change per tree, and eight neighbours, edges, weights and changes.
    """

    unary: np.ndarray
    h: np.ndarray
    message: np.ndarray
    lows: np.ndarray
    new: np.ndarray
    member: np.ndarray
    changes: np.ndarray
    neighbour_labels: np.ndarray
    edges: np.ndarray
    weights: np.ndarray
    change: np.ndarray


@kernel
def plan_grid_forest(sites, grid, index, parents, directions, heights, trees, queue):
    """Root each tree of the forest on `sites`; returns the number of trees, -1 if there is a cycle.

    Fills the arrays, one entry per site.

    `index` gives each site of the grid its place in `sites` (-1 if it is not there), `queue` is workspace. Edges of
    weight 0 do not count. O(directions) per site.
    """
    count = 0
    for i in range(len(sites)):
        trees[i] = -1
        heights[i] = 0
    for root in range(len(sites)):
        if trees[root] >= 0:
            continue
        trees[root] = count
        parents[root] = -1
        directions[root] = -1
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for d in range(2 * len(grid.shape)):
                site, edge = neighbour(grid, sites[i], d)
                if site < 0 or index[site] < 0 or edge_weight(grid, d // 2, edge) == 0:
                    continue
                j = index[site]
                if j == parents[i]:
                    continue
                if trees[j] >= 0:
                    return -1
                trees[j] = count
                parents[j] = i
                directions[j] = d ^ 1
                queue[tail] = j
                tail += 1
        for k in range(tail - 1, 0, -1):
            i = queue[k]
            heights[parents[i]] = max(heights[parents[i]], heights[i] + 1)
        count += 1
    return count


@helper
def _load_neighbours(x, forest, group, grid, direction, scratch, inside):
    """The labels, edges and weights of a group's neighbours in one direction.

    The weight is 0 beyond the border, and within the forest unless `inside`.
    """
    for k in range(LANES):
        scratch.neighbour_labels[k] = 0
        scratch.edges[k] = 0
        scratch.weights[k] = 0
        if k < forest.counts[group]:
            site, edge = neighbour(grid, forest.sites[group * LANES + k], direction)
            if site >= 0 and (inside or not scratch.member[site]):
                scratch.neighbour_labels[k] = x[site]
                scratch.edges[k] = edge
                scratch.weights[k] = edge_weight(grid, direction // 2, edge)
    return load(scratch.neighbour_labels, 0), load(scratch.edges, 0), load(scratch.weights, 0)


@kernel
def pack_forest(unary, forest, labels, forbidden_cost, out):
    """Lay the natural unary [site][label] out as [group][label][lane]. O(L) per site.

    Forbidden costs are cut to `forbidden_cost`.
    """
    for group in range(len(forest.counts)):
        for k in range(LANES):
            site = forest.sites[group * LANES + k] * labels
            for s in range(labels):
                cost = unary[site + s]
                out[(group * labels + s) * LANES + k] = forbidden_cost if cost > forbidden_cost else cost


@inline_helper
def _upward(x, forest, grid, kind, labels, scratch):
    h, out = scratch.h, scratch.message
    for i in range(len(h)):
        h[i] = scratch.unary[i]
    for group in range(len(forest.counts)):
        row = group * labels * LANES
        for d in range(2 * len(grid.shape)):
            neighbour_labels, edge, weight = _load_neighbours(x, forest, group, grid, d, scratch, False)
            own_first = d % 2 == 1
            prepared = prepare(kind, edge, own_first, neighbour_labels, labels)
            for s in range(labels):
                i = row + s * LANES
                store(h, i, add_edge_cost(kind, load(h, i), cast(weight, h), s, own_first, prepared, labels))
        low = load(h, row)
        for s in range(1, labels):
            low = minimum(load(h, row + s * LANES), low)
        store(scratch.lows, group * LANES, low)
        direction = forest.directions[group]
        if direction < 0:
            label = broadcast(np.int32(0))
            for s in range(labels - 1, -1, -1):
                label = where(load(h, row + s * LANES) == low, broadcast(np.int32(s)), label)
            store(scratch.new, group * LANES, label)
            continue
        _, edge, weight = _load_neighbours(x, forest, group, grid, direction, scratch, True)
        message(kind, cast(weight, h), edge, direction % 2 == 1, low, h, row, out, 0, labels)
        for k in range(forest.counts[group]):
            parent = forest.parents[group * LANES + k]
            at = parent // LANES * labels * LANES + parent % LANES
            for s in range(labels):
                h[at + s * LANES] += out[s * LANES + k]


@inline_helper
def _downward(x, forest, grid, kind, labels, scratch):
    h, new = scratch.h, scratch.new
    for group in range(len(forest.counts) - 1, -1, -1):
        direction = forest.directions[group]
        if direction < 0:
            continue
        _, edge, weight = _load_neighbours(x, forest, group, grid, direction, scratch, True)
        for k in range(LANES):
            scratch.neighbour_labels[k] = new[forest.parents[group * LANES + k]]
        low = load(scratch.lows, group * LANES)
        toward = load(scratch.neighbour_labels, 0)
        label = argmin_given(
            kind, cast(weight, h), edge, direction % 2 == 1, low, h, group * labels * LANES, toward, labels
        )
        store(new, group * LANES, label)


@inline_helper
def _sum_changes(x, forest, grid, kind, labels, scratch):
    """Sum what each tree's new labels change, in float64."""
    new = scratch.new
    for tree in range(len(scratch.changes)):
        scratch.changes[tree] = 0
    for group in range(len(forest.counts)):
        for k in range(LANES):
            scratch.neighbour_labels[k] = x[forest.sites[group * LANES + k]]
        old = load(scratch.neighbour_labels, 0)
        label = load(new, group * LANES)
        change = broadcast(0.0)
        for d in range(2 * len(grid.shape)):
            neighbour_labels, edge, weight = _load_neighbours(
                x, forest, group, grid, d, scratch, d == forest.directions[group]
            )
            weight = cast(weight, np.float64)
            after = neighbour_labels
            if d == forest.directions[group]:
                for k in range(LANES):
                    scratch.neighbour_labels[k] = new[forest.parents[group * LANES + k]]
                after = load(scratch.neighbour_labels, 0)
            if d % 2 == 1:
                change += edge_cost(kind, weight, edge, label, after, labels) - edge_cost(
                    kind, weight, edge, old, neighbour_labels, labels
                )
            else:
                change += edge_cost(kind, weight, edge, after, label, labels) - edge_cost(
                    kind, weight, edge, neighbour_labels, old, labels
                )
        store(scratch.change, 0, change)
        for k in range(forest.counts[group]):
            site = forest.sites[group * LANES + k]
            row = group * labels * LANES + k
            unary = np.float64(scratch.unary[row + new[group * LANES + k] * LANES]) - np.float64(
                scratch.unary[row + x[site] * LANES]
            )
            scratch.changes[forest.trees[group * LANES + k]] += scratch.change[k] + unary


@kernel
def solve_forest(x, labels, forest, grid, kind, scratch, check):
    """Solve every tree of the forest exactly, given the sites around it; returns the change of energy.

    The flat labelling is changed in place.

    With `check` a tree takes its new labels only if that does not raise the energy, in float64. One message and
    O(directions x L) per site.
    """
    labels = label_count(kind, labels)
    _upward(x, forest, grid, kind, labels, scratch)
    _downward(x, forest, grid, kind, labels, scratch)
    _sum_changes(x, forest, grid, kind, labels, scratch)
    total = 0.0
    for tree in range(len(scratch.changes)):
        if scratch.changes[tree] <= 0 or not check:
            total += scratch.changes[tree]
    for group in range(len(forest.counts)):
        for k in range(forest.counts[group]):
            if scratch.changes[forest.trees[group * LANES + k]] <= 0 or not check:
                x[forest.sites[group * LANES + k]] = scratch.new[group * LANES + k]
    return total

"""Exact search on graphs of small treewidth: one site after the other is eliminated.

The costs that a site is part of are added up to one table over its neighbours, and its best label for each of their
labellings is taken; what is left is a model of one site less, whose neighbours are all joined. The tables grow with the
graph's treewidth: which order keeps them small is found first, without any table.
"""

from __future__ import annotations

import math

import numpy as np

from treefield.backends.graph.costs import GraphCosts

_MOST_SITES = 4000
_FILL_SITES = 1000  # beyond this size, new edges are not counted when sites are ranked
_LARGEST = 2**22  # entries of one table


def elimination_order(graph: GraphCosts, max_entries: float) -> list[int] | None:
    """An order of elimination that picks a site with a small table each time; None if the tables are too large.

    They are if all together have more than `max_entries` entries, or one alone too many.
    """
    if graph.size > _MOST_SITES:
        return None
    around: list[set[int]] = [set() for _ in range(graph.size)]
    for first, second in graph.edges.tolist():
        around[first].add(second)
        around[second].add(first)
    sizes = np.log2(graph.label_counts).tolist()
    limit = math.log2(_LARGEST)

    def rank(site: int) -> tuple[float, int]:
        neighbours = around[site]
        size = sizes[site] + sum(sizes[other] for other in neighbours)
        if graph.size > _FILL_SITES or size > limit:
            return size, 0
        return size, sum(len(neighbours) - 1 - len(neighbours & around[other]) for other in neighbours)

    ranks = {site: rank(site) for site in range(graph.size)}
    order, total = [], 0.0
    while ranks:
        site = min(ranks, key=ranks.__getitem__)
        size = ranks.pop(site)[0]
        total += 2.0**size
        if size > limit or total > max_entries:
            return None
        neighbours = around[site]
        changed = set(neighbours)
        for other in neighbours:
            around[other] |= neighbours
            around[other] -= {site, other}
            if graph.size <= _FILL_SITES:
                changed |= around[other]
        for other in changed:
            ranks[other] = rank(other)
        order.append(site)
    return order


def eliminate(graph: GraphCosts, max_entries: float) -> np.ndarray | None:
    """The labelling of least energy; None if its tables would have more than `max_entries` entries in all."""
    order = elimination_order(graph, max_entries)
    return None if order is None else eliminate_in_order(graph, order)


def eliminate_in_order(graph: GraphCosts, order: list[int]) -> np.ndarray:
    """The labelling of least energy."""
    step = {site: number for number, site in enumerate(order)}
    tables: list[list[tuple[tuple[int, ...], np.ndarray]]] = [[] for _ in order]
    forbidden_cost = graph.forbidden_cost

    def add(scope: tuple[int, ...], table: np.ndarray) -> None:
        """Hand a table, its axes in the order of elimination, to the first of its sites."""
        tables[step[scope[0]]].append((scope, table))

    for site, costs in enumerate(graph.unaries):
        add((site,), np.minimum(costs, forbidden_cost))
    for edge, (first, second) in enumerate(graph.edges.tolist()):
        costs = np.minimum(graph.edge_costs(edge), forbidden_cost)
        add((first, second), costs) if step[first] < step[second] else add((second, first), costs.T)
    choices: list[tuple[tuple[int, ...], np.ndarray]] = []
    for site in order:
        own_tables = tables[step[site]]
        scope = tuple(sorted({other for sites, _ in own_tables for other in sites}, key=step.__getitem__))
        total = np.zeros([int(graph.label_counts[other]) for other in scope])
        for sites, table in own_tables:
            total += table.reshape([int(graph.label_counts[other]) if other in sites else 1 for other in scope])
        own_tables.clear()
        best = total.argmin(axis=0)
        choices.append((scope[1:], best.astype(np.min_scalar_type(len(total)))))
        if len(scope) > 1:
            add(scope[1:], total.min(axis=0))
    x = np.zeros(graph.size, np.int32)
    for site, (scope, best) in zip(reversed(order), reversed(choices), strict=True):
        x[site] = best[tuple(x[other] for other in scope)]
    return x

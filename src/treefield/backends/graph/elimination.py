"""Exact search on graphs of small treewidth: one site after the other is eliminated.

The costs that a site is part of are added up over the labellings of its neighbours, and its best label for each of them
is taken; what is left is a model of one site less, whose neighbours are all joined. The tables grow with the graph's
treewidth: which order keeps them small, and what time and memory they take, is found first, without any table.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.threads import Workers, share_of
from treefield.validation import label_dtype

if TYPE_CHECKING:
    from treefield.kernels.graph.elimination import Site

_MOST_SITES = 4000
_FILL_SITES = 1000  # beyond this size, new edges are not counted when sites are ranked
_LARGEST = 2.0**27  # entries of one table
_LOWS = 2**10  # labellings of the last neighbours: their costs stay in the first cache
_SERIAL_BELOW = 2**16  # labellings of the neighbours: with less, threads cost more than they bring
_ENTRY_BYTES = 8


class Plan(NamedTuple):
    """An order of elimination, each site's neighbours when it is eliminated, and what that takes.

    The neighbours are those that are eliminated later, the last one first.
    """

    order: list[int]
    scopes: list[list[int]]
    entries: float  # of all tables, each with the label of the site that is eliminated
    bytes: float


def elimination_order(graph: GraphCosts, max_entries: float) -> list[int] | None:
    """An order of elimination that picks a site with a small table each time; None if the tables are too large.

    They are if all together have more than `max_entries` entries, or one alone too many.
    """
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


def sweeping_order(graph: GraphCosts) -> list[int]:
    """An order that sweeps over the graph from one end to the other: good where it is long and narrow, or a grid."""
    first, second = graph.edges.T
    ones = np.ones(len(first), np.int8)
    neighbours = scipy.sparse.csr_array((ones, (first, second)), shape=(graph.size, graph.size))
    return scipy.sparse.csgraph.reverse_cuthill_mckee(neighbours + neighbours.T, symmetric_mode=True).tolist()


def plan_elimination(graph: GraphCosts, order: list[int], max_entries: float = math.inf) -> Plan | None:
    """The tables of an order, and the time and memory that they take; None if they have more entries than that."""
    step = np.empty(len(order), np.int64)
    step[order] = np.arange(len(order))
    scopes: list[set[int]] = [set() for _ in order]  # by step
    for first, second in graph.edges.tolist():
        early, late = (first, second) if step[first] < step[second] else (second, first)
        scopes[step[early]].add(late)
    sizes = np.log2(graph.label_counts)
    entries = kept = live = most = 0.0
    ends = np.zeros(len(order))  # entries that are no longer needed after a step
    for number, site in enumerate(order):
        scope = scopes[number]
        states = 2.0 ** float(sizes[list(scope)].sum()) if scope else 1.0
        entries += states * float(graph.label_counts[site])
        if entries > max_entries or states * float(graph.label_counts[site]) > _LARGEST:
            return None
        kept += states / 8 if graph.label_counts[site] == 2 else states
        live += states
        most = max(most, live)
        live -= ends[number]
        if scope:
            heir = min(scope, key=step.__getitem__)
            scopes[step[heir]] |= scope - {heir}
            ends[step[heir]] += states
    ordered = [sorted(scope, key=step.__getitem__, reverse=True) for scope in scopes]
    return Plan(order, ordered, entries, _ENTRY_BYTES * 2 * most + kept + 1000 * len(order))


def eliminate(
    graph: GraphCosts, max_entries: float, max_bytes: float = math.inf, threads: int = 1
) -> np.ndarray | None:
    """The labelling of least energy; None if the tables would have more entries, or take more memory, than that."""
    if graph.size > _MOST_SITES:
        return None
    orders = [elimination_order(graph, max_entries), sweeping_order(graph)]
    return run_best_plan(graph, [order for order in orders if order is not None], max_entries, max_bytes, threads)


def run_best_plan(
    graph: GraphCosts, orders: list[list[int]], max_entries: float, max_bytes: float, threads: int
) -> np.ndarray | None:
    """The labelling of least energy by the order with the smallest tables; None if these are larger than that."""
    plans = [plan_elimination(graph, order, max_entries) for order in orders]
    fitting = [plan for plan in plans if plan is not None and plan.bytes <= max_bytes]
    return run_plan(graph, min(fitting, key=lambda plan: plan.entries), threads) if fitting else None


def run_plan(graph: GraphCosts, plan: Plan, threads: int = 1) -> np.ndarray:
    """The labelling of least energy."""
    return _Elimination(graph, plan, threads).run()


class _Pool:
    """Room for tables, in one array that grows where the free parts are too small."""

    def __init__(self) -> None:
        self.array = np.empty(0)
        self._free: list[tuple[int, int]] = []  # start and size, in order

    def take(self, size: int) -> int:
        """The start of a part that is free."""
        fitting = [part for part in self._free if part[1] >= size]
        if not fitting:
            grown = np.empty(max(size, len(self.array)) + len(self.array))
            grown[: len(self.array)] = self.array
            self.give_back(len(self.array), len(grown) - len(self.array))
            self.array = grown
            return self.take(size)
        start, room = min(fitting, key=lambda part: part[1])
        self._free.remove((start, room))
        if room > size:
            self.give_back(start + size, room - size)
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free a part, and join it with the free ones next to it."""
        joined: list[tuple[int, int]] = []
        for part in sorted([*self._free, (start, size)]):
            if joined and sum(joined[-1]) == part[0]:
                joined[-1] = joined[-1][0], joined[-1][1] + part[1]
            else:
                joined.append(part)
        self._free = joined


class _Elimination:
    """The tables that wait for their next site, and the decisions so far."""

    def __init__(self, graph: GraphCosts, plan: Plan, threads: int) -> None:
        self._graph, self._plan, self._workers = graph, plan, Workers(threads)
        self._counts = graph.label_counts.tolist()
        self._waiting: list[list[tuple[int, list[int]]]] = [[] for _ in plan.order]  # by site: start, scope
        self._edges: list[list[tuple[int, int]]] = [[] for _ in plan.order]  # by site: edge, and which of its ends
        for edge, (first, second) in enumerate(graph.edges.tolist()):
            self._edges[first].append((edge, 0))
            self._edges[second].append((edge, 1))
        self._pool = _Pool()

    def run(self) -> np.ndarray:
        """Eliminate all sites, then give each its best label, the last one first."""
        decided = [
            self._eliminate(site, scope) for site, scope in zip(self._plan.order, self._plan.scopes, strict=True)
        ]
        x = np.zeros(len(self._counts), np.int32)
        for site, scope, decisions in zip(
            reversed(self._plan.order), reversed(self._plan.scopes), reversed(decided), strict=True
        ):
            state = 0
            for other in scope:
                state = state * self._counts[other] + int(x[other])
            states = math.prod(self._counts[other] for other in scope)
            if len(decisions) < states:
                x[site] = decisions[state >> 3] >> (state & 7) & 1
            else:
                x[site] = decisions[state]
        return x

    def _eliminate(self, site: int, scope: list[int]) -> np.ndarray:
        """Eliminate a site whose neighbours are in the scope; returns its decisions."""
        from treefield.kernels.graph.elimination import eliminate_site

        labels, split = self._counts[site], len(scope)
        states = math.prod(self._counts[other] for other in scope)
        most, lows = max(_LOWS, math.isqrt(states)), 1
        while split > 0 and lows * self._counts[scope[split - 1]] <= most:
            split -= 1
            lows *= self._counts[scope[split]]
        highs = states // lows
        costs = self._collect(site, scope, split)
        out = self._pool.take(states)
        are_bits = labels == 2 and lows % 8 == 0
        decisions = np.empty(states // 8 if are_bits else states, label_dtype(labels))
        numbers = np.arange(highs)

        def solve(thread: int, threads: int) -> None:
            part = share_of(numbers, thread, threads)
            if len(part):
                total = np.empty(labels * lows)
                first, end = int(part[0]), int(part[-1]) + 1
                eliminate_site(costs, first, end, highs, lows, labels, self._pool.array, out, total, decisions)

        self._workers.run(solve, highs if states >= _SERIAL_BELOW else 1)
        for start, others in self._waiting[site]:
            self._pool.give_back(start, labels * math.prod(self._counts[other] for other in others))
        self._waiting[site] = []
        if scope:
            self._waiting[scope[-1]].append((out, scope[:-1]))
        else:
            self._pool.give_back(out, states)
        return decisions

    def _collect(self, site: int, scope: list[int], split: int) -> Site:
        """The costs of a site; neighbours from `split` on are the last ones."""
        from treefield.kernels.graph.elimination import Site

        graph, labels = self._graph, self._counts[site]
        cap = graph.forbidden_cost
        own = np.minimum(graph.unary[graph.starts[site] : graph.starts[site + 1]].astype(np.float64), cap)
        tables = {}
        for edge, end in self._edges[site]:
            other = int(graph.edges[edge, 1 - end])
            if other in scope:
                costs = np.minimum(graph.edge_costs(edge), cap)
                tables[other] = costs if end == 0 else costs.T

        def tabulate(costs: np.ndarray, sites: list[int]) -> np.ndarray:
            for other in sites:
                table = tables.get(other, np.zeros((labels, self._counts[other])))
                costs = (costs[:, :, None] + table[:, None, :]).reshape(labels, -1)
            return costs.reshape(-1)

        def places(others: list[int], sites: list[int]) -> np.ndarray:
            strides, stride = {}, labels
            for other in reversed(others):
                strides[other] = stride
                stride *= self._counts[other]
            found = np.zeros(1, np.int64)
            for other in sites:
                found = (found[:, None] + np.arange(self._counts[other]) * strides.get(other, 0)).reshape(-1)
            return found

        waiting = self._waiting[site]
        low_places = [places(others, scope[split:]) for _, others in waiting]
        high_places = [places(others, scope[:split]) for _, others in waiting]
        lows = math.prod(self._counts[other] for other in scope[split:])
        return Site(
            low=tabulate(own[:, None], scope[split:]),
            high=tabulate(np.zeros((labels, 1)), scope[:split]),
            starts=np.array([start for start, _ in waiting], np.int64),
            low_places=np.concatenate(low_places) if waiting else np.zeros(0, np.int64),
            high_places=np.concatenate(high_places) if waiting else np.zeros(0, np.int64),
            is_contiguous=np.array([np.array_equal(part, np.arange(lows) * labels) for part in low_places], bool),
        )

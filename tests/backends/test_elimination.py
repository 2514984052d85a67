"""Elimination: exact on graphs of small treewidth, not tried on others."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from small_graphs import KINDS, graphs, grid_graph
from treefield.backends.graph import elimination
from treefield.backends.graph.elimination import eliminate_in_order, elimination_order


@pytest.mark.parametrize("kind", KINDS)
def test_eliminating_all_sites_is_exact(kind):
    @settings(max_examples=40)
    @given(graphs(kinds=[kind]), st.integers(0, 99))
    def check(case, seed):
        mrf = case.mrf()
        order = elimination_order(mrf.backend, math.inf)
        assert sorted(order) == list(range(mrf.size))
        least = naive_graph.minimum(case.merged)[0]
        # any order would do
        for sites in (order, np.random.default_rng(seed).permutation(mrf.size).tolist()):
            x = eliminate_in_order(mrf.backend, sites)
            rank = naive_graph.rank(case.merged, x.tolist())
            assert rank == (least[0], least[1] if case.integer else pytest.approx(least[1], rel=1e-9, abs=1e-9))

    check()


def test_long_narrow_graphs_are_eliminated():
    """Three rows are a chain of columns."""
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 9, (3, 60, 3))
    graph = tf.GridMRF(unary, tf.Potts(4)).to_graph()
    columns = list(itertools.product(range(3), repeat=3))
    own = [
        [sum(unary[i, j, a] for i, a in enumerate(c)) + 4 * (c[0] != c[1]) + 4 * (c[1] != c[2]) for c in columns]
        for j in range(60)
    ]
    between = [[4 * sum(a != b for a, b in zip(c, d, strict=True)) for d in columns] for c in columns]
    least = naive_graph.chain_minimum(own, [between] * 59)
    assert graph.energy(eliminate_in_order(graph.backend, elimination_order(graph.backend, 2.0**18))) == least
    res = tf.minimize(graph)
    assert res.method == "elimination" and res.fun == res.lower_bound == least


def test_no_elimination_order_is_found_where_tables_would_be_too_large(monkeypatch):
    dense = tf.GraphMRF(np.zeros((30, 3)), [(i, j) for i in range(30) for j in range(i)], tf.Potts(1))
    assert elimination_order(dense, math.inf) is None
    graph = grid_graph((4, 4), 3)
    assert elimination_order(graph.backend, 2.0**20) == elimination_order(graph.backend, math.inf) is not None
    monkeypatch.setattr(elimination, "_LARGEST", 3**4)
    assert elimination_order(graph.backend, math.inf) is None
    monkeypatch.setattr(elimination, "_MOST_SITES", 15)
    assert elimination_order(grid_graph((1, 16)), math.inf) is None


def test_elimination_keeps_to_the_limit_on_table_entries():
    """A chain of 10 sites of 3 labels: nine tables of two sites, and the last site's own."""
    chain = grid_graph((1, 10), 3)
    assert elimination_order(chain, 9 * 9 + 3 + 0.1) is not None
    assert elimination_order(chain, 9 * 9 + 3 - 0.1) is None


def test_fill_edges_are_not_counted_on_large_graphs(monkeypatch):
    monkeypatch.setattr(elimination, "_FILL_SITES", 5)
    graph = grid_graph((3, 12), 3)
    order = elimination_order(graph.backend, math.inf)
    assert sorted(order) == list(range(36))
    exact = graph.energy(eliminate_in_order(graph.backend, order))
    monkeypatch.undo()
    assert graph.energy(eliminate_in_order(graph.backend, elimination_order(graph.backend, math.inf))) == exact

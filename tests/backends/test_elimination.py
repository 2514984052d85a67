"""Elimination: exact on graphs of small treewidth, not tried on others."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_graph
import treefield as tf
from small_graphs import KINDS, graphs, grid_graph
from treefield.backends.graph import elimination
from treefield.backends.graph.elimination import elimination_order, plan_elimination, run_plan, sweeping_order


def eliminate_in_order(graph, order):
    return run_plan(graph, plan_elimination(graph, order))


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
    assert graph.backend.eliminate(math.inf, math.inf, 1) is None


def test_large_graphs_are_not_eliminated(monkeypatch):
    monkeypatch.setattr(elimination, "_MOST_SITES", 15)
    assert grid_graph((1, 16)).backend.eliminate(math.inf, math.inf, 1) is None
    assert grid_graph((1, 15)).backend.eliminate(math.inf, math.inf, 1) is not None


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


@pytest.mark.parametrize("labels", [2, 3, 300])
def test_sweeping_order_keeps_tables_of_grids_as_small_as_their_narrow_side(labels):
    shape = (5, 20) if labels < 300 else (1, 20)
    graph = grid_graph(shape, labels)
    plan = plan_elimination(graph.backend, sweeping_order(graph.backend))
    assert plan.entries <= graph.size * float(labels) ** (shape[0] + 2)


@pytest.mark.parametrize("shape", [(12, 14), (4, 40)], ids=str)
def test_threads_and_long_rows_of_decisions_change_nothing(shape, monkeypatch):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=naive.edge_shape(shape, axis)) for axis in range(2)]
    mrf = tf.GridMRF(rng.normal(size=(*shape, 2)), tf.Potts(1), weights=weights)
    x = mrf.backend.eliminate(2.0**30, math.inf, 1)
    monkeypatch.setattr(elimination, "_SERIAL_BELOW", 1)
    np.testing.assert_array_equal(mrf.backend.eliminate(2.0**30, math.inf, 3), x)
    for lows in (1, 4, 16):  # without bits, and with several numbers of high labellings
        monkeypatch.setattr(elimination, "_LOWS", lows)
        np.testing.assert_array_equal(mrf.backend.eliminate(2.0**30, math.inf, 2), x)
    res = tf.minimize(mrf, rng=0)
    assert res.method == "elimination" and res.fun == mrf.energy(x) and res.gap < 1e-9


def test_memory_of_elimination_is_as_predicted():
    mrf = tf.GridMRF(np.random.default_rng(0).normal(size=(14, 30, 2)), tf.Table([[0, 1], [2, 0]]))
    graph = mrf.to_graph().backend
    plan = plan_elimination(graph, sweeping_order(graph))
    run_plan(graph, plan)
    tracemalloc.start()
    run_plan(graph, plan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.2 * plan.bytes < peak <= plan.bytes
    assert graph.eliminate(math.inf, plan.bytes - 1, 1) is None

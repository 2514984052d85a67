"""Rows and columns of grids with eight neighbours, against the slow versions: every label, ties included."""

import numpy as np
import pytest

import naive
import naive_lattice
import treefield as tf
from lattices import Case
from treefield.trees import schedules, sets

SHAPES = [(1, 1), (1, 6), (6, 1), (2, 2), (3, 3), (5, 8), (20, 7), (7, 21)]
SCHEDULES = {
    "rows-columns": naive.rows_columns,
    "alternating": naive.alternating,
    "bands": lambda shape: naive.bands(shape, schedules.LANES),
}


def check_sweeps(case, trees, **options):
    """A few sweeps give the labels of the slow version, and the change of energy."""
    x = case.random()
    tree_set = case.mrf.tree_set(trees, **options)
    for _ in range(3):
        expected = naive_lattice.sweep(case.unary, case.edges, x, SCHEDULES[trees](x.shape))
        before = case.energy(x)
        assert tree_set.sweep(x) == case.energy(x) - before <= 0
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("trees", SCHEDULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sweeps_solve_every_line_exactly_given_its_eight_neighbours(shape, trees):
    check_sweeps(Case(1, shape, "potts", uniform=True), trees)
    check_sweeps(Case(2, shape, "potts", masked=shape != (1, 1)), trees)
    check_sweeps(Case(3, shape, "table"), trees)
    check_sweeps(Case(4, shape, "edge-tables"), trees)


@pytest.mark.parametrize("shape", [(1, 6), (2, 2), (5, 8), (20, 7)])
def test_little_memory_gives_the_same_labels(shape):
    check_sweeps(Case(5, shape, "table"), "bands", memory="low")
    check_sweeps(Case(6, shape, "table", uniform=True), "alternating", memory="low")
    check_sweeps(Case(7, shape, "table", masked=True), "rows-columns", memory="low")


def test_threads_give_the_same_labels(monkeypatch):
    monkeypatch.setattr(sets, "_SERIAL_BELOW", 0)
    monkeypatch.setattr(sets, "_SERIAL_STEPS", 0)
    check_sweeps(Case(8, (70, 60), "potts", uniform=True), "alternating", threads=2)
    case = Case(9, (150, 40), "potts")
    x = case.random()
    y = x.copy()
    assert case.mrf.tree_set(bands=24, threads=2).sweep(x) == case.mrf.tree_set(bands=24, threads=1).sweep(y)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_single_sites_take_their_best_label_in_raster_order_within_bands(shape):
    case = Case(10, shape, "table")
    x = case.random()
    depth = -(-shape[0] // max(1, min(schedules.LANES, shape[0] // 2)))
    rows = naive.bands(shape, schedules.LANES)[:depth]
    expected = naive_lattice.icm_sweep(case.unary, case.edges, x, rows)
    before = case.energy(x)
    assert case.mrf.tree_set("sites").sweep(x) == case.energy(x) - before <= 0
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("trees", ["bands", "rows-columns", "alternating", "forests", "random-forests", "sites"])
def test_random_orders_never_raise_the_energy_and_tell_the_change(trees):
    case, rng = Case(11, (9, 10), "table", masked=True), np.random.default_rng(0)
    tree_set = case.mrf.tree_set(trees, order="fixed" if trees == "sites" else "random")
    x = case.random()
    for sweep in range(6):
        before = case.energy(x)
        assert tree_set.sweep(x, rng, reverse=sweep % 2 == 1) == case.energy(x) - before <= 0


def test_your_own_trees_know_of_diagonals():
    case = Case(12, (4, 5), "table")
    x = case.random()
    before = case.energy(x)
    assert case.mrf.tree_set([np.arange(5), np.arange(10, 15)]).sweep(x) == case.energy(x) - before <= 0
    with pytest.raises(ValueError, match="has a cycle"):
        case.mrf.tree_set([np.array([0, 1, 5])])  # a corner: its two ends touch


@pytest.mark.parametrize(
    ("lattice", "options", "message"),
    [
        ({"connectivity": 2}, {"trees": "combs"}, "one of 'bands', .*'forests'.* 8 neighbours; got 'combs'"),
        ({"periodic": True}, {"trees": "bands"}, "one of 'forests', 'random-forests', 'sites'.*periodic along 0 and 1"),
        ({"periodic": (True, False)}, {"trees": "rows-columns"}, "4 neighbours, periodic along 0; got 'rows-columns'"),
        ({"periodic": True}, {"bands": 4}, 'bands and memory="low" go with rows and columns'),
        ({"periodic": True}, {"memory": "low"}, 'bands and memory="low" go with rows and columns'),
        ({"connectivity": 2}, {"trees": "forests", "bands": 4}, 'bands and memory="low" go with rows and columns'),
        ({"connectivity": 2}, {"trees": "sites", "order": "random"}, 'order="random" does not go with trees="sites"'),
    ],
)
def test_tree_sets_that_a_grid_does_not_have_are_refused(lattice, options, message):
    mrf = tf.GridMRF(np.zeros((4, 5, 2)), tf.Potts(1), **lattice)
    with pytest.raises(ValueError, match=message):
        mrf.tree_set(**options)
    with pytest.raises(ValueError, match=message):
        tf.t_icm(mrf, **options)

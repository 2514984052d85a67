"""Lines of grids with eight neighbours or periodic axes, against the slow versions: every label, ties included."""

import numpy as np
import pytest

import naive
import naive_lattice
import treefield as tf
from lattices import Case
from treefield.backends.grid import schedules
from treefield.backends.grid import tree_sets as sets

SHAPES = [(1, 1), (1, 6), (6, 1), (2, 2), (3, 3), (5, 8), (20, 7), (7, 21)]
SCHEDULES = {
    "rows-columns": naive.rows_columns,
    "alternating": naive.alternating,
    "bands": lambda shape: naive.bands(shape, schedules.LANES),
}


TORUS = {"connectivity": 2, "periodic": True}
LINES_ONLY = 'bands and memory="low" go with rows and columns'


def open_schedule(trees, shape, periodic):
    """Lines whose ends are joined lack their first site; where all are, that of all is one more chain."""
    schedule = []
    for step in SCHEDULES[trees](shape):
        closed = [axis for axis, ring in enumerate(periodic) if ring and len({i[axis] for i in step[0]}) == shape[axis]]
        schedule.append([chain[1:] if closed else chain for chain in step])
    return [*schedule, [[(0,) * len(shape)]]] if all(periodic) else schedule


def check_sweeps(case, trees, **options):
    """A few sweeps give the labels of the slow version, and the change of energy."""
    x = case.random()
    tree_set = case.mrf.backend.tree_set(trees, **options)
    for _ in range(3):
        schedule = open_schedule(trees, x.shape, case.mrf.periodic)
        expected = naive_lattice.sweep(case.unary, case.edges, x, schedule)
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
def test_lattice_lines_with_low_memory_give_the_same_labels(shape):
    check_sweeps(Case(5, shape, "table"), "bands", memory="low")
    check_sweeps(Case(6, shape, "table", uniform=True), "alternating", memory="low")
    check_sweeps(Case(7, shape, "table", masked=True), "rows-columns", memory="low")


# Even grids: their lines have the middle that those without the first site have, which decides ties; and no line is
# moved to another step to keep it from the last.
@pytest.mark.parametrize(
    ("shape", "trees"),
    [
        *[(shape, "rows-columns") for shape in [(4, 4), (6, 4), (20, 34), (4, 4, 6)]],
        *[(shape, trees) for shape in [(4, 8), (20, 40), (4, 4, 6)] for trees in ("bands", "alternating")],
    ],
)
def test_periodic_lines_are_solved_except_for_their_first_site(shape, trees):
    rings = [(True, True), (True, False), (False, True)] if len(shape) == 2 else [(True,) * 3, (False, True, True)]
    for periodic in rings:
        lattice = {"connectivity": 1, "periodic": periodic}
        check_sweeps(Case(13, shape, "potts", uniform=True, **lattice), trees)
        check_sweeps(Case(14, shape, "table", masked=True, **lattice), trees)
        check_sweeps(Case(15, shape, "edge-tables", **lattice), trees)
    check_sweeps(Case(16, shape, "table", connectivity=1, periodic=rings[0]), trees, memory="low")


@pytest.mark.parametrize("trees", SCHEDULES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 7), (9, 17), (33, 25), (3, 5, 3), (9, 3, 5)])
def test_periodic_lines_of_odd_grids_end_where_no_line_lowers_the_energy(shape, trees):
    case, rng = Case(17, shape, "table", connectivity=1, periodic=(True,) * len(shape)), np.random.default_rng(0)
    for order in ("fixed", "random"):
        tree_set, x = case.mrf.backend.tree_set(trees, order=order), case.random()
        before, sweeps = np.full_like(x, -1), 0
        while not np.array_equal(x, before):  # equal energies are not enough: ties may move on
            before, sweeps = x.copy(), sweeps + 1
            assert tree_set.sweep(x, rng, reverse=sweeps % 2 == 1) == case.energy(x) - case.energy(before) <= 0
            assert sweeps < 100
        for step in open_schedule("rows-columns", shape, case.mrf.periodic):
            assert case.energy(naive_lattice.sweep(case.unary, case.edges, x, [step])) == case.energy(x)


@pytest.mark.parametrize("n", range(3, 60))
def test_the_first_line_and_the_last_are_never_solved_together_where_they_are_joined(n):
    for axis, shape in enumerate([(3, n), (n, 3)]):
        plans = [schedules.alternating(shape, axis, (True, True))]
        plans += [schedules.bands(shape, axis, 3, count, (True, True)) for count in (None, 1, 5, 8, 20)]
        for plan in plans:
            assert sorted(plan.lines[plan.lines >= 0]) == list(range(n))
            for lines in plan.lines:
                assert not {0, n - 1} <= set(lines.tolist())


def test_lattice_lines_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(sets, "_SERIAL_BELOW", 0)
    monkeypatch.setattr(sets, "_SERIAL_STEPS", 0)
    check_sweeps(Case(8, (70, 60), "potts", uniform=True), "alternating", threads=2)
    case = Case(9, (150, 40), "potts")
    x = case.random()
    y = x.copy()
    two, one = (case.mrf.backend.tree_set(bands=24, threads=threads) for threads in (2, 1))
    assert two.sweep(x) == one.sweep(y)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_single_sites_take_their_best_label_in_raster_order_within_bands(shape):
    case = Case(10, shape, "table")
    x = case.random()
    depth = -(-shape[0] // max(1, min(schedules.LANES, shape[0] // 2)))
    rows = naive.bands(shape, schedules.LANES)[:depth]
    expected = naive_lattice.icm_sweep(case.unary, case.edges, x, rows)
    before = case.energy(x)
    assert case.mrf.backend.tree_set("sites").sweep(x) == case.energy(x) - before <= 0
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("trees", ["bands", "rows-columns", "alternating", "forests", "random-forests", "sites"])
def test_lattice_sweeps_in_random_order_never_raise_the_energy_and_return_the_change(trees):
    case, rng = Case(11, (9, 10), "table", masked=True), np.random.default_rng(0)
    tree_set = case.mrf.backend.tree_set(trees, order="fixed" if trees == "sites" else "random")
    x = case.random()
    for sweep in range(6):
        before = case.energy(x)
        assert tree_set.sweep(x, rng, reverse=sweep % 2 == 1) == case.energy(x) - before <= 0


def test_given_trees_of_a_lattice_include_diagonal_edges():
    case = Case(12, (4, 5), "table")
    x = case.random()
    before = case.energy(x)
    assert case.mrf.backend.tree_set([np.arange(5), np.arange(10, 15)]).sweep(x) == case.energy(x) - before <= 0
    with pytest.raises(ValueError, match="has a cycle"):
        case.mrf.backend.tree_set([np.array([0, 1, 5])])  # a corner: its two ends touch


@pytest.mark.parametrize(
    ("lattice", "options", "message"),
    [
        ({"connectivity": 2}, {"trees": "combs"}, "8 neighbours must be one of 'bands', .*'forests'.*got 'combs'"),
        (TORUS, {"trees": "bands"}, "8 neighbours, periodic along 0 and 1 must be one of 'trees', "),
        ({"periodic": (True, False)}, {"trees": "combs"}, "4 neighbours, periodic along 0 must be .*got 'combs'"),
        (TORUS, {"bands": 4}, LINES_ONLY),
        (TORUS, {"memory": "low"}, LINES_ONLY),
        (TORUS, {"trees": "ribbons", "width": 2}, "periodic along 0 and 1 must be one of .*got 'ribbons'"),
        (TORUS, {"trees": "trees", "width": 2}, 'width=2 goes with trees="wide"'),
        ({"periodic": True}, {"trees": "sites", "memory": "low"}, LINES_ONLY),
        ({"connectivity": 2}, {"trees": "forests", "bands": 4}, LINES_ONLY),
        ({"connectivity": 2}, {"trees": "sites", "order": "random"}, 'order="random" does not go with trees="sites"'),
    ],
)
def test_tree_sets_that_a_grid_does_not_have_are_refused(lattice, options, message):
    mrf = tf.GridMRF(np.zeros((4, 5, 2)), tf.Potts(1), **lattice)
    with pytest.raises(ValueError, match=message):
        mrf.backend.tree_set(**options)
    with pytest.raises(ValueError, match=message):
        tf.t_icm(mrf, **options)

"""Grids with all neighbours that touch, periodic axes and masks."""

import math

import numpy as np
import pytest

import naive_lattice
import treefield as tf
from lattices import Case
from small import check_raises
from treefield.backends.grid.lattice import directions

RINGS = [None, (True, False), (False, True), (True, True)]
RINGS_3D = [None, (False, True, False), (True, True, True)]
LATTICES = [((4, 3), connectivity, rings) for connectivity in (1, 2) for rings in RINGS]
LATTICES += [((3, 4, 3), connectivity, rings) for connectivity in (1, 2) for rings in RINGS_3D]
SMALL = [((3, 4), 2, None), ((3, 3), 1, (True, True)), ((3, 3), 2, (True, False)), ((2, 3, 2), 2, None)]


@pytest.mark.parametrize(("dimensions", "connectivity"), naive_lattice.STEPS)
def test_lattice_directions_come_in_a_fixed_order(dimensions, connectivity):
    assert directions(dimensions, connectivity) == naive_lattice.STEPS[dimensions, connectivity]


@pytest.mark.parametrize("kind", ["table", "edge-tables"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("shape", "connectivity", "periodic"), LATTICES)
def test_the_energy_of_a_lattice_is_the_sum_over_all_sites_and_edges(shape, connectivity, periodic, masked, kind):
    case = Case(1, shape, kind, connectivity=connectivity, periodic=periodic, masked=masked)
    for _ in range(5):
        x = case.random()
        assert case.mrf.energy(x) == case.energy(x)
        assert case.mrf.to_graph().energy(x.reshape(-1)) == case.energy(x)


@pytest.mark.parametrize(("shape", "connectivity", "periodic"), LATTICES)
def test_one_number_per_direction_is_a_weight_for_all_its_edges(shape, connectivity, periodic):
    case = Case(2, shape, connectivity=connectivity, periodic=periodic, uniform=True)
    x = case.random()
    assert case.mrf.energy(x) == case.energy(x)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("shape", "connectivity", "periodic"), LATTICES)
def test_components_of_a_lattice_add_up_and_can_be_taken_one_by_one(shape, connectivity, periodic, masked):
    case = Case(3, shape, connectivity=connectivity, periodic=periodic, masked=masked)
    for share in (0.1, 0.3):
        x = case.random()
        y = np.where(case.rng.random(shape) < share, case.random(), x)
        numbers, finite, forbidden = case.mrf.backend.components(x, y)
        assert numbers.shape == shape and not forbidden.any()
        for number, change in enumerate(finite):
            one = np.where(numbers == number, y, x)
            assert case.energy(one) - case.energy(x) == change
        merged = tf.merge(case.mrf, x, y)
        assert case.energy(merged) <= min(case.energy(x), case.energy(y))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("shape", "connectivity", "periodic"), LATTICES)
def test_sweeps_of_a_lattice_never_raise_the_energy_and_return_the_change(shape, connectivity, periodic, masked):
    case = Case(4, shape, connectivity=connectivity, periodic=periodic, masked=masked)
    trees, x = case.mrf.backend.tree_set(), case.random()
    for _ in range(3):
        before = case.energy(x)
        assert trees.sweep(x) == case.energy(x) - before <= 0


@pytest.mark.parametrize(("shape", "connectivity", "periodic"), SMALL)
def test_t_ils_finds_the_least_energy_of_small_grids(shape, connectivity, periodic):
    case = Case(5, shape, labels=2, connectivity=connectivity, periodic=periodic)
    res = tf.t_ils(case.mrf, maxiter=100, rng=0)
    assert res.x.shape == shape and res.fun == case.energy(res.x) == case.least()


@pytest.mark.parametrize(("shape", "connectivity", "periodic"), [((3, 4), 1, None), *SMALL])
def test_a_masked_grid_is_the_model_of_the_sites_that_are_left(shape, connectivity, periodic):
    case = Case(6, shape, labels=2, connectivity=connectivity, periodic=periodic, masked=True)
    number = {i: k for k, i in enumerate(zip(*np.nonzero(case.mask), strict=True))}
    pairs = [(number[i], number[j]) for i, j, _ in case.edges]
    graph = tf.GraphMRF(case.unary[case.mask], pairs, [table for _, _, table in case.edges])
    x = case.random()
    assert case.mrf.energy(x) == graph.energy(x[case.mask])
    assert tf.t_ils(case.mrf, maxiter=100, rng=0).fun == tf.t_ils(graph, maxiter=100, rng=0).fun == case.least()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("shape", "connectivity", "periodic"), SMALL)
def test_bounds_are_below_the_least_energy_and_minimize_finds_it(shape, connectivity, periodic, masked):
    case = Case(9, shape, labels=2, connectivity=connectivity, periodic=periodic, masked=masked)
    least = case.least()
    res = tf.minimize(case.mrf, maxiter=50, rng=0)
    assert res.x.shape == shape and res.fun == case.energy(res.x) == least and res.lower_bound <= least
    assert tf.trw(case.mrf, maxiter=10).lower_bound <= least
    low = tf.minimize(case.mrf, maxiter=20, rng=0, memory_limit="1 MB")
    assert low.fun == least


@pytest.mark.parametrize(("shape", "connectivity", "periodic"), SMALL)
@pytest.mark.parametrize("method", ["loopy_bp", "anneal", "genetic", "icm"])
def test_every_solver_takes_every_grid(shape, connectivity, periodic, method):
    case = Case(10, shape, labels=2, connectivity=connectivity, periodic=periodic)
    keywords = {} if method == "loopy_bp" else {"rng": 0}
    res = tf.minimize(case.mrf, method=method, maxiter=5, **keywords)
    assert res.x.shape == shape and res.fun == case.energy(res.x) >= case.least()


def test_a_ring_of_trees_is_solved_exactly_where_a_mask_cuts_it():
    case = Case(11, (3, 5), labels=2, connectivity=1, periodic=(False, True))
    with pytest.raises(ValueError, match="without cycles"):
        tf.tree_bp(case.mrf)
    mask = np.zeros((3, 5), bool)
    mask[1, 1:] = True  # what is left of one row is a chain
    cut = tf.GridMRF(case.unary, case.mrf.pairwise, weights=case.mrf.weights, periodic=(False, True), mask=mask)
    edges = [edge for edge in case.edges if mask[edge[0]] and mask[edge[1]]]
    assert tf.tree_bp(cut).fun == tf.minimize(cut).fun == naive_lattice.least_energy(case.unary, edges, mask)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize(
    "solve",
    [
        lambda mrf: tf.t_icm(mrf, rng=0),
        lambda mrf: tf.t_icm(mrf, rng=0, maxiter=0),
        lambda mrf: tf.t_icm(mrf, np.where(mrf.mask, 2, -1), maxiter=0),
        lambda mrf: tf.icm(mrf, "unary"),
        lambda mrf: tf.scan_line(mrf, 0.4),
        lambda mrf: tf.scan_line(mrf, 0),
        lambda mrf: tf.anneal(mrf, maxiter=3, rng=0),
        lambda mrf: tf.trw(mrf, maxiter=2),
        lambda mrf: tf.minimize(mrf, maxiter=2, rng=0),
        lambda mrf: tf.t_ils(mrf, jump=tf.moves.MixedJump(), accept=tf.moves.PerComponent(), maxiter=9, rng=0),
        lambda mrf: tf.t_ils(mrf, jump=tf.moves.MessageJump(), maxiter=9, rng=0),
    ],
)
def test_labels_of_masked_sites_are_0(connectivity, solve):
    case = Case(7, (7, 8), connectivity=connectivity, masked=True)
    res = solve(case.mrf)
    assert not res.x[~case.mask].any() and res.x.any() and res.x.dtype == np.int32
    assert res.fun == case.energy(res.x)


def test_merge_ignores_masked_sites():
    case = Case(8, (3, 4), connectivity=1, masked=True)
    merged = tf.merge(case.mrf, np.where(case.mask, 1, -1), np.where(case.mask, 2, 99))
    assert not merged[~case.mask].any()


def test_a_mask_does_not_change_the_given_arrays():
    unary, weights, mask = np.ones((3, 3, 2)), [np.ones((2, 3)), np.ones((3, 2))], np.eye(3, dtype=bool)
    given = [array.copy() for array in (unary, *weights, mask)]
    mrf = tf.GridMRF(unary, tf.Potts(1), weights=weights, mask=mask)
    for array, before in zip((unary, *weights, mask), given, strict=True):
        np.testing.assert_array_equal(array, before)
    mask[:] = True  # the model has its own
    assert mrf.energy(np.zeros((3, 3), int)) == 3
    np.testing.assert_array_equal(mrf.mask, np.eye(3, dtype=bool))
    assert tf.GridMRF(unary, tf.Potts(1), mask=np.ones((3, 3), bool)).mask is None


def test_forbidden_costs_count_only_where_there_are_sites_and_edges():
    unary = np.zeros((3, 3, 2))
    unary[1, 1] = math.inf
    mask = np.ones((3, 3), bool)
    mask[1, 1] = False
    for connectivity in (1, 2):
        mrf = tf.GridMRF(unary, tf.Table([[0, math.inf], [math.inf, 0]]), connectivity=connectivity, mask=mask)
        assert mrf.energy([[0, 0, 0], [0, 1, 0], [0, 0, 0]]) == 0
        assert mrf.energy([[1, 0, 0], [0, 1, 0], [0, 0, 0]]) == math.inf
        assert tf.t_icm(mrf, [[1, 0, 0], [0, 1, 0], [0, 0, 0]]).fun == 0


def test_messages_of_a_masked_grid_have_the_arithmetic_of_the_whole():
    unary, mask = np.zeros((3, 3, 2), np.float32), np.eye(3, dtype=bool)
    assert tf.GridMRF(unary, tf.Potts(0.1), mask=mask).backend.dtype == np.float32
    unary[0, 1] = math.inf
    assert tf.GridMRF(unary, tf.Potts(0.1), mask=mask).backend.dtype == np.float32


def test_the_repr_of_a_grid_names_its_neighbours_and_mask():
    unary, mask = np.zeros((3, 4, 2), np.uint8), np.arange(12).reshape(3, 4) > 4
    start = "GridMRF(shape=(3, 4), labels=2, dtype=uint8, pairwise=Potts(1)"
    assert repr(tf.GridMRF(unary, tf.Potts(1), mask=mask)) == f"{start}, 7 of 12 sites)"
    assert repr(tf.GridMRF(unary, tf.Potts(1), connectivity=2)) == f"{start}, 8 neighbours)"
    torus = tf.GridMRF(unary, tf.Potts(1), periodic=(False, True))
    assert repr(torus) == f"{start}, 4 neighbours, periodic along 1)"
    assert not torus.backend.lattice.has_axis_edges_only and torus.periodic == (False, True) and torus.connectivity == 1
    assert tf.GridMRF(unary, tf.Potts(1), mask=mask).backend.lattice.has_axis_edges_only


UNARY = np.zeros((3, 4, 2))


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"connectivity": 0}, ValueError, "connectivity must be 1 .* or 2 .*, got 0"),
        ({"connectivity": 8}, ValueError, "got 8"),
        ({"connectivity": True}, ValueError, "got True"),
        ({"connectivity": "2"}, ValueError, "got '2'"),
        ({"connectivity": None}, ValueError, "got None"),
        ({"connectivity": [1, 2]}, ValueError, "connectivity must be 1"),
        ({"periodic": 1}, TypeError, "periodic must be True or False, or one of these for each axis, got 1"),
        ({"periodic": None}, TypeError, "periodic must be True or False"),
        ({"periodic": (True,)}, ValueError, "periodic has 1 entries, but the grid has 2 axes"),
        ({"periodic": (True, False, True)}, ValueError, "periodic has 3 entries, but the grid has 2 axes"),
        ({"periodic": [[True, False]]}, TypeError, "periodic must be True or False"),
        ({"unary": UNARY[:2], "periodic": True}, ValueError, r"axis 0 has 2 sites, too few .*periodic=\(True, False\)"),
        ({"unary": UNARY[:, :1], "periodic": (False, True)}, ValueError, "axis 1 has 1 sites, too few"),
        ({"mask": np.ones((3, 4))}, TypeError, "mask must be an array of bool.*got dtype float64"),
        ({"mask": "all"}, TypeError, "mask must be an array of bool"),
        ({"mask": np.ones((4, 3), bool)}, ValueError, r"mask has shape \(4, 3\), expected \(3, 4\)"),
        ({"mask": True}, ValueError, r"mask has shape \(\), expected \(3, 4\)"),
        ({"mask": np.zeros((3, 4), bool)}, ValueError, "mask is False everywhere"),
        (
            {"connectivity": 2, "weights": (1, 1)},
            ValueError,
            r"has 2 entries.*per direction, \(1, 0\).*\(2, 3\), \(2, 3\)",
        ),
        ({"weights": (1, 1, 1, 1)}, ValueError, "weights has 4 entries, but one number or array per axis"),
        (
            {"connectivity": 2, "weights": (1, 1, np.ones((3, 4)), 1)},
            ValueError,
            r"weights\[2\].*expected a number or \(2, 3\)",
        ),
        (
            {"periodic": True, "weights": (np.ones((2, 4)), 1)},
            ValueError,
            r"weights\[0\].*expected a number or \(3, 4\)",
        ),
        ({"connectivity": 2, "weights": (1, 1, 1, math.nan)}, ValueError, r"weights\[3\] holds NaN"),
        (
            {"connectivity": 2, "pairwise": tf.EdgeTables([np.zeros((2, 4, 2, 2)), np.zeros((3, 3, 2, 2))])},
            ValueError,
            "EdgeTables has 2 arrays, expected one for each of the grid's 4 directions",
        ),
        (
            {"periodic": True, "pairwise": tf.EdgeTables([np.zeros((2, 4, 2, 2)), np.zeros((3, 3, 2, 2))])},
            ValueError,
            r"tables\[0\] has shape \(2, 4, 2, 2\), expected \(3, 4, 2, 2\)",
        ),
    ],
)
def test_bad_connectivity_periodic_and_mask_are_refused(keywords, error, message):
    keywords = {"unary": UNARY, "pairwise": tf.Potts(1)} | keywords
    check_raises(lambda: tf.GridMRF(**keywords), error, message)

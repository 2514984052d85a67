"""Ribbons: several lines of a grid solved exactly together, against enumeration of each ribbon."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_ribbons
import treefield as tf
from lattices import Case
from ribbon_sweeps import check_sweep, eliminated, from_lattice, from_strategy, random_labels, widths
from strategies import ALL_KINDS, grid_models, random_case
from treefield.backends.grid import ribbon_layouts

BOTH = (True, True)


def check_every_width(example, seed, *, reverse=False):
    """Two sweeps with each width, the second with borders that move."""
    for width in widths(example):
        trees, x = example.mrf.backend.tree_set("ribbons", width=width), example.random(seed)
        check_sweep(example, trees, x, reverse=reverse)
        check_sweep(example, trees, x, np.random.default_rng(seed + width), reverse=reverse)
        check_sweep(example, trees, example.random(seed + 1), np.random.default_rng(seed), reverse=reverse)


# --- each ribbon against enumeration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("forbidden", [False, True], ids=["", "forbidden costs"])
def test_sweep_gives_every_ribbon_its_best_labels(kind, forbidden):
    if forbidden and kind == "function":
        return  # as a table

    @settings(max_examples=18)
    @given(grid_models(kinds=[kind], forbidden=forbidden), st.integers(0, 99), st.booleans())
    def check(case, seed, reverse):
        check_every_width(from_strategy(case), seed, reverse=reverse)

    check()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("kind", ["potts", "table", "edge-tables"])
@pytest.mark.parametrize("labels", [2, 3])
def test_sweep_gives_every_ribbon_its_best_labels_in_each_dtype(kind, labels, dtype):
    for seed, integer in enumerate((True, False)):
        for shape in [(3, 4), (4, 3), (2, 6)] if labels == 2 else [(3, 3), (2, 4)]:
            check_every_width(from_strategy(random_case(seed, kind, shape, labels, dtype, integer)), seed)


KINDS = ["potts", "table", "edge-tables"]


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (5, 2), (1, 7), (7, 1), (2, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_ribbons_with_eight_neighbours_are_exact(kind, shape):
    for seed, (labels, masked) in enumerate(itertools.product((2, 3), (False, True))):
        if labels ** math.prod(shape) < 20_000:
            check_every_width(from_lattice(Case(seed, shape, kind, labels, masked=masked)), seed)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (3, 3), (5, 3), (2, 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_ribbons_of_periodic_grids_are_exact_but_for_one_column(kind, shape):
    rings = [ring for ring in itertools.product((False, True), repeat=2) if any(ring)]
    for seed, periodic in enumerate(rings):
        if any(n < 3 and ring for n, ring in zip(shape, periodic, strict=True)):
            continue
        case = Case(seed, shape, kind, 2, connectivity=1, periodic=periodic, masked=seed == 1, uniform=seed == 2)
        check_every_width(from_lattice(case), seed, reverse=seed == 0)
    if math.prod(shape) <= 9:
        check_every_width(from_lattice(Case(5, shape, kind, 3, connectivity=1, periodic=BOTH)), 5)


@pytest.mark.parametrize(
    ("shape", "periodic"),
    [
        ((2, 3, 2), (False, False, False)),
        ((1, 3, 4), (False, False, False)),
        ((4, 1, 3), (False, False, False)),
        ((2, 2, 3), (False, False, False)),
        ((3, 2, 2), (True, False, False)),
        ((2, 2, 3), (False, False, True)),
        ((3, 3, 1), (True, True, False)),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bars_of_3d_grids_are_exact(kind, shape, periodic):
    for seed, masked in enumerate((False, True)):
        case = Case(seed, shape, kind, 2, connectivity=1, periodic=periodic, masked=masked)
        check_every_width(from_lattice(case), seed, reverse=masked)


def test_bars_of_a_torus_with_three_axes_are_exact_for_every_width():
    """Odd and even numbers of bars around each axis; a third colour keeps the last from the first."""
    case = Case(0, (3, 3, 3), "table", 2, connectivity=1, periodic=(True, True, True))
    example = from_lattice(case)
    for width in (1, 2, 4):
        for seed in range(3):
            trees = example.mrf.backend.tree_set("ribbons", width=width)
            check_sweep(example, trees, example.random(seed), np.random.default_rng(seed))


LONG = {
    "four neighbours": {"connectivity": 1},
    "eight neighbours": {"connectivity": 2},
    "masked": {"connectivity": 2, "masked": True},
    "same weights": {"connectivity": 1, "uniform": True},
    "periodic along": {"connectivity": 1, "periodic": (False, True)},
    "periodic across": {"connectivity": 1, "periodic": (True, False)},
    "periodic": {"connectivity": 1, "periodic": BOTH, "masked": True},
}


@pytest.mark.parametrize("lattice", LONG)
@pytest.mark.parametrize("kind", KINDS)
def test_many_and_long_ribbons_are_exact(kind, lattice):
    """More than one group of eight ribbons, and lines longer than the columns that are collected together."""
    for seed, (labels, shape, width) in enumerate([(2, (4, 37), 2), (3, (35, 3), 2), (2, (33, 4), 3)]):
        case = Case(seed, shape, kind, labels, **LONG[lattice])
        example, rng = from_lattice(case), np.random.default_rng(seed)
        trees, x = case.mrf.backend.tree_set("ribbons", width=width), example.random(seed)
        check_sweep(example, trees, x, reverse=seed % 2 == 1)
        check_sweep(example, trees, x, rng)


@pytest.mark.parametrize(
    ("shape", "width", "sizes"),
    [
        ((9, 8), 3, [(3,), (3,)]),
        ((6, 6, 6), 4, [(2, 2)] * 3),
        ((6, 6, 6), 6, [(2, 3)] * 3),
        ((6, 6, 6), 9, [(3, 3)] * 3),
        ((2, 9, 9), 8, [(2, 4), (2, 4), (2, 4)]),
        ((9, 9, 2), 8, [(2, 4), (4, 2), (4, 2)]),
        ((1, 9, 9), 5, [(1, 5), (1, 5), (2, 2)]),
    ],
)
def test_bars_are_as_square_as_their_width_allows(shape, width, sizes):
    """`sizes` by the axis along which the ribbons run, the last axis first."""
    trees = tf.GridMRF(np.zeros((*shape, 2)), tf.Potts(1)).backend.tree_set("ribbons", width=width)
    assert [bar.axis for bar in trees._bars] == list(range(len(shape)))[::-1]
    assert [bar.sizes for bar in trees._bars] == sizes


@pytest.mark.parametrize(("shape", "axis"), [((2, 9), 1), ((9, 2), 0), ((1, 1), 1), ((2, 9, 2), 1)])
def test_a_grid_that_is_one_ribbon_is_solved_along_one_axis_only(shape, axis):
    """A width that fits along any axis may be wider than the grid is along another."""
    mrf = tf.GridMRF(np.zeros((*shape, 2)), tf.Potts(1))
    for width in range(4 if len(shape) == 3 else min(shape), max(shape)):
        assert [bar.axis for bar in mrf.backend.tree_set("ribbons", width=width)._bars] == [axis]


def test_borders_and_the_fixed_column_take_every_place():
    mrf = tf.GridMRF(np.zeros((5, 7, 2)), tf.Potts(1), periodic=(True, False))
    trees, rng = mrf.backend.tree_set("ribbons", width=3), np.random.default_rng(0)
    rows, columns = trees._bars
    assert (rows.axis, columns.axis) == (1, 0)
    assert {trees._offsets(rows, rng) for _ in range(200)} == {(k,) for k in range(1, 6)}
    assert {trees._offsets(columns, rng) for _ in range(200)} == {(k,) for k in range(1, 4)}
    starts, solve = set(), trees._solve

    def watched(flat, turns, check):
        starts.update((turn.bar.axis, turn.start) for turn in turns)
        return solve(flat, turns, check)

    trees._solve = watched
    for _ in range(60):
        trees.sweep(np.zeros((5, 7), np.int32), rng)
    assert starts == {(1, 0), *((0, k) for k in range(5))}


@pytest.mark.parametrize("ring", [False, True])
def test_ribbons_of_one_phase_never_touch(ring):
    for n in range(3, 30):
        for size in range(1, n + (not ring)):
            for offset in range(1, (n if ring else size) + 1):
                found = naive_ribbons.parts(n, size, offset, ring)
                coordinates, colours = ribbon_layouts._cut(n, size, offset, ring=ring)
                assert [row[row >= 0].tolist() for row in coordinates] == [part for part, _ in found]
                assert colours.tolist() == [colour for _, colour in found]
                colour_of = {k: (number, colour) for number, (part, colour) in enumerate(found) for k in part}
                for k in range(n if ring else n - 1):
                    (one, colour), (other, next_colour) = colour_of[k], colour_of[(k + 1) % n]
                    assert one == other or colour != next_colour


# --- ribbons as wide as the grid --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("memory", ["auto", "low"])
@pytest.mark.parametrize(
    ("shape", "labels", "pairwise"),
    [
        ((6, 40), 2, tf.Potts(2)),
        ((40, 6), 2, tf.Potts(-1.5)),
        ((4, 12), 3, tf.Potts(1.5)),
        ((4, 12), 3, tf.Table([[0, 2, 1], [1, 0, 3], [4, 0.5, 1]])),
    ],
    ids=str,
)
def test_a_ribbon_as_wide_as_the_grid_is_the_optimum_after_one_sweep(shape, labels, pairwise, memory, dtype):
    rng = np.random.default_rng(0)
    costs = rng.integers(0, 6, (*shape, labels)) if dtype == np.uint8 else rng.uniform(0, 5, (*shape, labels))
    weights = [rng.integers(-2, 4, (shape[0] - 1, shape[1])) / 2, rng.integers(-2, 4, (shape[0], shape[1] - 1)) / 2]
    mrf = tf.GridMRF(costs.astype(dtype), pairwise, weights=weights)
    least = eliminated(mrf)
    trees = mrf.backend.tree_set("ribbons", width=min(shape), memory=memory)
    for seed in range(3):
        x = random_labels(mrf, seed)
        change = trees.sweep(x, np.random.default_rng(seed))
        assert mrf.energy(x) == pytest.approx(least, rel=1e-6)
        assert change == pytest.approx(least - mrf.energy(random_labels(mrf, seed)), rel=1e-6)
        assert trees.sweep(x) == 0


def test_a_ribbon_as_wide_as_a_grid_with_eight_neighbours_is_the_optimum():
    for labels, shape in ((2, (5, 20)), (3, (9, 3))):
        mrf = Case(labels, shape, "table", labels).mrf
        x = random_labels(mrf)
        mrf.backend.tree_set("ribbons", width=min(shape)).sweep(x)
        assert mrf.energy(x) == eliminated(mrf)


@pytest.mark.parametrize("shape", [(1, 30), (30, 1)])
def test_ribbons_of_a_chain_equal_tree_bp(shape):
    mrf = tf.GridMRF(np.random.default_rng(0).random((*shape, 3)), tf.Potts(0.2))
    expected = tf.tree_bp(mrf)
    for width in (None, 1):
        res = tf.t_icm(mrf, rng=0, trees="ribbons", width=width)
        np.testing.assert_array_equal(res.x, expected.x)
        assert res.fun == expected.fun == mrf.energy(res.x)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(3, 5000), (5000, 3)])
def test_float32_costs_of_a_long_ribbon_lead_to_the_optimum_of_float64(shape, dtype):
    """The costs of states are taken relative to the least, so that sums do not grow along the ribbon."""
    rng = np.random.default_rng(0)
    costs = rng.integers(0, 200, (*shape, 2)).astype(dtype)
    energies = []
    for unary in (costs, costs.astype(np.float64)):
        mrf = tf.GridMRF(unary, tf.Potts(50))
        for memory in ("auto", "low"):
            x = random_labels(mrf)
            mrf.backend.tree_set("ribbons", width=3, memory=memory).sweep(x)
            energies.append(mrf.energy(x))
    assert len(set(energies)) == 1


# --- one line ---------------------------------------------------------------------------------------------------------


def test_ribbons_of_width_one_have_the_local_minima_of_rows_and_columns():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = 2 + seed % 2
        weights = [rng.uniform(-1, 2, (7, 11)), rng.uniform(-1, 2, (8, 10))]
        mrf = tf.GridMRF(rng.uniform(0, 3, (8, 11, labels)), tf.Potts(1.0), weights=weights)
        for name, other in itertools.permutations(("ribbons", "rows-columns")):
            x = random_labels(mrf, seed)
            first, second = (
                mrf.backend.tree_set(trees, width=1 if trees == "ribbons" else None) for trees in (name, other)
            )
            while first.sweep(x) < 0:
                pass
            y = x.copy()
            assert second.sweep(y) == 0
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1)])
def test_ribbons_of_width_one_equal_rows_and_columns_on_a_single_line(shape):
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.random((*shape, 3)), tf.Table(rng.random((3, 3))))
    x = random_labels(mrf)
    y = x.copy()
    mrf.backend.tree_set("ribbons", width=1).sweep(x)
    mrf.backend.tree_set("rows-columns").sweep(y)
    np.testing.assert_array_equal(x, y)


# --- energies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("pairs", [False, True], ids=["labels", "labels and pairs"])
def test_forbidden_costs_are_left_and_never_taken(labels, pairs):
    rng = np.random.default_rng(labels)
    for seed in range(10):
        unary = rng.uniform(0, 3, (7, 9, labels))
        unary[..., 1:][rng.random((7, 9, labels - 1)) < 0.3] = math.inf
        table = 1.0 - np.eye(labels)
        if pairs:
            table[1, 0] = math.inf
        mrf = tf.GridMRF(unary, tf.Table(table))
        trees, x = mrf.backend.tree_set("ribbons", width=3), random_labels(mrf, seed)
        before = mrf.energy(x)
        for sweep in range(20):
            change = trees.sweep(x, rng, reverse=sweep % 2 == 1)
            after = mrf.energy(x)
            assert change <= 0 and after <= before
            assert change == pytest.approx(after - before, rel=1e-9, abs=1e-9) or math.isinf(before)
            before = after
        assert math.isfinite(after)


def test_sweep_without_check_gives_the_same_labels_where_costs_are_exact():
    mrf = Case(3, (12, 14), "table", 3, connectivity=1).mrf
    x = random_labels(mrf)
    y = x.copy()
    trees = mrf.backend.tree_set("ribbons", width=2)
    for seed in range(3):
        first = trees.sweep(x, np.random.default_rng(seed))
        second = trees.sweep(y, np.random.default_rng(seed), check=False)
        assert first == second <= 0
        np.testing.assert_array_equal(x, y)


def test_only_check_keeps_rounded_costs_of_states_from_raising_the_energy():
    checked, unchecked = [], []
    for seed in range(20):
        unary = 2.0**23 + np.random.default_rng(seed).uniform(0, 6, (6, 40, 3))
        mrf = tf.GridMRF(unary.astype(np.float32), tf.Potts(0.4))
        assert mrf.backend.dtype == np.float32
        x = tf.t_icm(mrf, rng=seed).x
        for changes, check in ((checked, True), (unchecked, False)):
            y = x.copy()
            for _ in range(3):
                before = mrf.energy(y)
                changes.append(mrf.backend.tree_set("ribbons", width=2).sweep(y, check=check))
                assert changes[-1] == pytest.approx(mrf.energy(y) - before, abs=1e-3)
    assert max(checked) <= 0 < max(unchecked)


@pytest.mark.parametrize("width", [None, 1, 3])
def test_t_icm_with_ribbons_returns_the_energy_of_its_labels(width):
    mrf = tf.GridMRF(np.random.default_rng(0).random((13, 17, 3), np.float32), tf.Potts(0.4))
    res = tf.t_icm(mrf, "unary", rng=0, trees="ribbons", width=width)
    assert res.fun == mrf.energy(res.x)
    assert np.all(np.diff(res.trace["energy"]) <= 0)
    assert res.fun <= tf.t_icm(mrf, "unary", rng=0).fun


def test_wider_ribbons_find_lower_energies():
    mrf = tf.GridMRF(np.random.default_rng(0).random((40, 40, 2)), tf.Potts(0.6))
    found = [tf.t_icm(mrf, "unary", rng=0, trees="ribbons", width=width).fun for width in (1, 3, 8)]
    assert found == sorted(found, reverse=True) and len(set(found)) == 3

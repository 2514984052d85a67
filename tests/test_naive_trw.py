"""The slow TRW-S itself against brute force: other tests trust its bounds, so that these must be bounds."""

import numpy as np
import pytest

import naive
import treefield as tf
from naive_trw import NaiveTRW, tables_of
from strategies import ALL_KINDS, KIND_DTYPES, random_case

GRIDS = [((2, 3), 3), ((3, 3), 2), ((4, 2), 3), ((2, 2, 2), 2), ((2, 1, 3), 3), ((1, 1), 3), ((2, 2), 1)]
CHAINS = [(1, 7), (7, 1), (1, 6, 1)]


def cases(kind, grids, seeds=4):
    """Models of one kind, of whole numbers in half of the cases: those have ties."""
    for shape, labels in grids:
        for seed in range(seeds):
            dtype = KIND_DTYPES[kind][seed % len(KIND_DTYPES[kind])]
            yield random_case(seed, kind, shape, labels, dtype, integer=seed % 2 == 0)


def slack(value, relative=1e-9):
    """The possible effect of rounding on sums of about this size."""
    return relative * max(1.0, abs(value))


def check_bounds(case, iterations):
    """No bound is above the minimum, or below the one before. Returns the minimum, the last bound and labelling."""
    minimum, _ = naive.brute_force(case.unary, case.tables)
    trw, before = NaiveTRW(case.mrf(), case.tables), -np.inf
    for _ in range(iterations):
        bound, x = trw.iterate()
        assert bound <= minimum + slack(minimum)
        assert bound >= before - slack(bound)
        before = bound
    return minimum, bound, x


def reaches(mrf, minimum, iterations):
    """Whether the bound comes within rounding of the minimum; the last steps are slow, so this allows for 1e-6."""
    trw = NaiveTRW(mrf)
    bounds = (trw.iterate()[0] for _ in range(iterations))
    return any(abs(bound - minimum) <= slack(minimum, 1e-6) for bound in bounds)


def submodular(seed, shape):
    """Two labels that like to be equal; every third model hides it behind costs of a single label, put into tables
    that are then asymmetric and partly negative."""
    rng = np.random.default_rng(seed)
    unary = rng.uniform(-3, 3, (*shape, 2)) if seed % 2 else rng.integers(-3, 4, (*shape, 2))
    weights = [rng.uniform(0, 3, naive.edge_shape(shape, axis)) for axis in range(len(shape))]
    if seed % 3:
        return tf.GridMRF(unary, tf.Potts(1), weights=weights)
    tables = naive.explicit_tables(shape, naive.potts(2), weights)
    for table in tables:
        table += rng.uniform(-2, 2, (*table.shape[:-1], 1)) + rng.uniform(-2, 2, (*table.shape[:-2], 1, 2))
    return tf.GridMRF(unary, tf.EdgeTables(tables))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_tables_of_naive_trw_are_those_of_the_model(kind):
    for case in cases(kind, GRIDS):
        for found, expected in zip(tables_of(case.mrf()), case.tables, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_bound_of_naive_trw_never_exceeds_the_minimum_and_never_falls(kind):
    for case in cases(kind, GRIDS):
        check_bounds(case, iterations=12)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_naive_trw_solves_chains_in_two_iterations(kind):
    for case in cases(kind, [(shape, 3) for shape in CHAINS]):
        minimum, bound, _ = check_bounds(case, iterations=1)
        assert abs(bound - minimum) <= slack(minimum)
        x = check_bounds(case, iterations=2)[2]  # the first pass forth has no messages from the sites after
        assert abs(naive.energy(case.unary, case.tables, x) - minimum) <= slack(minimum)


@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (2, 2, 3)])
def test_naive_trw_solves_submodular_binary_models(shape):
    """There the relaxation that TRW-S climbs is tight, and with two labels it cannot get stuck below."""
    for seed in range(12):
        mrf = submodular(seed, shape)
        minimum, _ = naive.brute_force(mrf.unary, tables_of(mrf))
        assert reaches(mrf, minimum, iterations=200), seed


def test_naive_trw_keeps_the_gap_of_a_frustrated_cycle():
    """Three edges like equal labels, the fourth unequal ones: the minimum is 0, but each edge by itself can have what
    it likes, which is the value of the relaxation."""
    mrf = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1), weights=([[1, 1]], [[1], [-1]]))
    assert naive.brute_force(mrf.unary, tables_of(mrf))[0] == 0
    trw = NaiveTRW(mrf)
    assert [trw.iterate()[0] for _ in range(5)] == [-1] * 5


def test_naive_trw_on_a_3d_plane_or_line_equals_the_2d_grid():
    """Axes of length 1 have no edges, wherever they are."""
    for seed in range(4):
        flat = random_case(seed, "table", (3, 4), 3, "float64")
        expected = NaiveTRW(flat.mrf())
        others = [
            NaiveTRW(tf.GridMRF(np.expand_dims(flat.unary, axis), flat.pairwise, weights=_with_axis(flat, axis)))
            for axis in range(3)
        ]
        for _ in range(4):
            bound, x = expected.iterate()
            for axis, other in enumerate(others):
                found, y = other.iterate()
                assert found == pytest.approx(bound, rel=1e-12)
                np.testing.assert_array_equal(y, np.expand_dims(x, axis))


def _with_axis(case, axis):
    if case.weights is None:
        return None
    weights = [np.expand_dims(weight, axis) if np.ndim(weight) else weight for weight in case.weights]
    return [*weights[:axis], 1.0, *weights[axis:]]


def test_naive_trw_on_a_3d_grid_beats_the_bound_of_separate_costs():
    for case in cases("edge-tables", [((2, 3, 2), 2)], seeds=6):
        minimum, bound, _ = check_bounds(case, iterations=30)
        alone = case.unary.min(axis=-1).sum() + sum(table.min(axis=(-2, -1)).sum() for table in case.tables)
        assert alone < bound and minimum - bound < 0.1 * (minimum - alone)


def test_naive_trw_counts_edges_of_weight_0():
    trw = NaiveTRW(tf.GridMRF(np.zeros((2, 3, 3, 2)), tf.Potts(1), weights=(0, 0, 0)))
    assert trw.gamma((0, 0, 0)) == trw.gamma((1, 2, 2)) == trw.gamma((0, 1, 1)) == 1 / 3
    assert trw.gamma((0, 0, 2)) == trw.gamma((0, 2, 0)) == trw.gamma((1, 1, 0)) == 1 / 2
    assert NaiveTRW(tf.GridMRF(np.zeros((1, 1, 2)), tf.Potts(1))).gamma((0, 0)) == 1


def test_messages_of_naive_trw_stay_within_the_costs_of_their_edge():
    """Whatever the number of iterations: nothing drifts."""
    for case in cases("edge-tables", [((3, 3), 3)]):
        trw = NaiveTRW(case.mrf())
        for _ in range(50):
            trw.iterate()
        for (i, j), message in trw.messages.items():
            table = naive.edge_table(case.tables, i, j)
            assert table.min() - 1e-9 <= message.min() and message.max() <= table.max() + 1e-9


def test_naive_trw_refuses_forbidden_costs():
    with pytest.raises(ValueError, match="forbidden"):
        NaiveTRW(tf.GridMRF(np.zeros((2, 2, 2)), tf.Table([[0, np.inf], [1, 0]])))
    with pytest.raises(ValueError, match="forbidden"):
        NaiveTRW(tf.GridMRF(np.full((2, 2, 2), np.inf), tf.Potts(1)))

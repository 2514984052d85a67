"""The fast kernels against the obvious slow versions: with whole-number costs every label must agree, ties included."""

import numpy as np
import pytest

import naive
import treefield as tf
from strategies import ALL_KINDS, KIND_DTYPES, random_case

SHAPES = [(1, 1), (1, 9), (9, 1), (2, 2), (5, 7), (19, 23), (40, 3), (3, 17, 2), (4, 5, 6), (1, 6, 1)]
ICM_KINDS = ("potts-signed", "quadratic", "table", "edge-tables")  # ICM has no messages: few kinds say all
SCHEDULES = {
    "rows-columns": naive.rows_columns,
    "alternating": naive.alternating,
    "bands": lambda shape: naive.bands(shape, 8),
}


def start(case, seed=7):
    return np.random.default_rng(seed).integers(case.unary.shape[-1], size=case.unary.shape[:-1])


def cases(shapes=SHAPES, label_numbers=(1, 2, 3, 5), kinds=ALL_KINDS):
    for number, shape in enumerate(shapes):
        for labels in label_numbers:
            for kind in kinds:
                dtype = KIND_DTYPES[kind][number % len(KIND_DTYPES[kind])]
                yield random_case(1000 * number + labels, kind, shape, labels, dtype)


@pytest.mark.parametrize("trees", SCHEDULES)
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_sweep_gives_the_labels_of_the_naive_one(kind, trees):
    for case in cases(kinds=[kind]):
        mrf, x = case.mrf(), start(case)
        for _ in range(2):
            expected = naive.sweep(case.unary, case.tables, x, SCHEDULES[trees](mrf.shape))
            found = tf.t_icm(mrf, x, trees=trees, maxiter=1, threads=1)
            np.testing.assert_array_equal(
                found.x, expected, err_msg=f"{case.kind} {case.unary.shape} {case.unary.dtype}"
            )
            assert found.fun == naive.energy(case.unary, case.tables, expected) == found.trace["energy"][-1]
            x = expected


def row_steps(shape):
    """How many steps of a banded schedule are those of the last axis."""
    cross = shape[:-1]
    number = max(1, min(8, max(cross) // 2))
    return -(-max(cross) // number) * (np.prod(cross) // max(cross))


def test_an_icm_sweep_gives_the_labels_of_the_naive_one():
    for case in cases(shapes=[(1, 1), (1, 9), (9, 1), (19, 23), (3, 17, 2)], label_numbers=(1, 2, 4), kinds=ICM_KINDS):
        mrf, x = case.mrf(), start(case)
        steps = naive.bands(mrf.shape, 8)[: row_steps(mrf.shape)]
        expected = naive.icm_sweep(case.unary, case.tables, x, steps)
        found = tf.icm(mrf, x, maxiter=1)
        np.testing.assert_array_equal(found.x, expected, err_msg=f"{case.kind} {case.unary.shape}")
        assert found.fun == naive.energy(case.unary, case.tables, expected)


@pytest.mark.parametrize("kind", ["potts", "potts-signed", "linear", "quadratic", "table", "edge-tables"])
def test_many_labels_agree_with_the_naive_sweep(kind):
    case = random_case(5, kind, (6, 20), 37, "float32")
    x = start(case)
    expected = naive.sweep(case.unary, case.tables, x, naive.bands((6, 20), 8))
    np.testing.assert_array_equal(tf.t_icm(case.mrf(), x, maxiter=1).x, expected)


@pytest.mark.parametrize("weight", [0.0, 0.01, 3.0])
def test_quadratic_costs_of_many_labels_agree_with_the_table(weight):
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 2000, (4, 30, 250)).astype(np.uint16)
    x = rng.integers(250, size=(4, 30))
    uneven = np.cumsum(rng.integers(0, 3, 250))
    for cutoff, values, name in [(np.inf, None, "Spread"), (50000.0, None, "Spread"), (np.inf, uneven, "Envelope")]:
        pairwise = tf.TruncatedQuadratic(weight, cutoff, values=values)
        by_rule = tf.t_icm(tf.GridMRF(unary, pairwise), x, maxiter=3)
        by_table = tf.t_icm(tf.GridMRF(unary, tf.Table(weight * pairwise.table(250))), x, maxiter=3)
        assert type(tf.GridMRF(unary, pairwise).backend.rule()).__name__ == f"{name}Rule"
        assert by_rule.fun == pytest.approx(by_table.fun, rel=1e-6)


def test_a_sweep_with_low_memory_gives_the_same_labels():
    for kind in ("potts", "table", "edge-tables", "linear"):
        for shape in ((19, 23), (5, 6, 7)):
            case = random_case(3, kind, shape, 4, KIND_DTYPES[kind][0])
            fast = tf.t_icm(case.mrf(), start(case), maxiter=3)
            low = tf.t_icm(case.mrf(), start(case), maxiter=3, memory="low")
            np.testing.assert_array_equal(fast.x, low.x)


@pytest.mark.parametrize("trees", ["bands", "alternating"])
@pytest.mark.parametrize("order", ["fixed", "random"])
@pytest.mark.parametrize("shape", [(300, 260), (40, 60, 40)])
def test_a_sweep_does_not_depend_on_the_number_of_threads(trees, order, shape):
    case = random_case(1, "potts", shape, 4, "uint8")
    runs = [tf.t_icm(case.mrf(), trees=trees, order=order, maxiter=3, rng=5, threads=threads) for threads in (1, 2, 5)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.x, runs[0].x)
        np.testing.assert_array_equal(run.trace["energy"], runs[0].trace["energy"])


def test_many_bands_agree_with_the_naive_sweep():
    case = random_case(2, "potts", (70, 50), 3, "uint8")
    x = start(case)
    for bands in (1, 3, 8, 11, 24, 1000):
        expected = naive.sweep(case.unary, case.tables, x, naive.bands((70, 50), bands))
        np.testing.assert_array_equal(tf.t_icm(case.mrf(), x, bands=bands, maxiter=1).x, expected)

"""merge: the best choice of components, against brute force over all choices."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_search
import treefield as tf
from strategies import grid_models, random_case

KINDS = ("potts", "table", "edge-tables", "quadratic")


def rank(case, x):
    """Forbidden costs first, then the finite energy."""
    return naive.conditional_energy(case.unary, case.tables, x, list(np.ndindex(x.shape)))


@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_merge_takes_the_best_components_on_grids(kind, forbidden):
    @settings(max_examples=60)
    @given(grid_models(kinds=[kind], forbidden=forbidden), st.integers(0, 10**6))
    def check(case, seed):
        mrf = case.mrf()
        x, y = np.random.default_rng(seed).integers(mrf.n_labels, size=(2, *mrf.shape))
        found = rank(case, tf.merge(mrf, x, y))
        components = naive_search.components(x, y)
        choices = []
        for chosen in itertools.product((False, True), repeat=len(components)):
            z = x.copy()
            for component, take in zip(components, chosen, strict=True):
                for i in component if take else ():
                    z[i] = y[i]
            choices.append(rank(case, z))
        best = min(choices)
        assert found[0] == best[0] and found[1] == pytest.approx(best[1], rel=1e-9, abs=1e-9)

    check()


def test_components_of_a_grid_equal_those_of_flood_filling():
    rng = np.random.default_rng(0)
    for shape in [(1, 1), (1, 30), (30, 1), (20, 30), (6, 7, 8)]:
        for share in (0.0, 0.3, 0.6, 1.0):
            mrf = tf.GridMRF(np.zeros((*shape, 3), np.float32), tf.Potts(1))
            x = rng.integers(3, size=shape).astype(np.int32)
            y = np.where(rng.random(shape) < share, rng.integers(3, size=shape), x).astype(np.int32)
            numbers, finite, _ = mrf.backend.components(x, y)
            expected = naive_search.numbered(shape, naive_search.components(x, y))
            np.testing.assert_array_equal(numbers, expected)
            assert len(finite) == expected.max() + 1
            assert finite.sum() == mrf.energy(y) - mrf.energy(x)


def test_merge_is_no_worse_than_either_and_ties_go_to_y():
    case = random_case(0, "potts", (40, 50), 4, "float32", integer=False)
    mrf = case.mrf()
    runs = [tf.t_icm(mrf, rng=seed).x for seed in range(2)]
    merged = tf.merge(mrf, *runs)
    assert mrf.energy(merged) < min(map(mrf.energy, runs))
    flat = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(0))
    np.testing.assert_array_equal(tf.merge(flat, [[0, 0], [0, 0]], [[1, 0], [0, 1]]), [[1, 0], [0, 1]])


def test_merge_checks_its_labellings():
    mrf = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1))
    with pytest.raises(ValueError, match=r"y has shape \(1, 2\)"):
        tf.merge(mrf, np.zeros((2, 2), int), np.zeros((1, 2), int))
    with pytest.raises(TypeError, match="mrf must be a model"):
        tf.merge(None, [[0]], [[0]])

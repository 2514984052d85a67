"""Gibbs sampling on the checkerboard: the right probabilities, and the energy it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naive_search
import treefield as tf
from strategies import KIND_DTYPES, grid_models, random_case
from treefield.backends.grid.sampler import Checkerboard

KINDS = ("potts", "table", "edge-tables")  # the message rules of all others are those of T-ICM too
TEMPERATURES = (0, 1e-40, 0.5, 5.0, 1e300, math.inf)
WIDE = [(3, 40), (4, 33), (1, 17), (16, 1), (2, 3, 35)]  # more than one group of eight, all its lanes and not
SURE = 1e-6  # how improbable a result must be to be called wrong


def random_x(mrf, seed):
    return np.random.default_rng(seed).integers(mrf.n_labels, size=mrf.shape).astype(np.int32)


def check_change(mrf, x, temperature, seed):
    before = mrf.energy(x)
    change = Checkerboard(mrf.backend).sample(x, temperature, np.random.default_rng(seed))
    assert before + change == pytest.approx(mrf.energy(x), rel=1e-12, abs=1e-10)


def check_frequencies(counts, probabilities):
    """Whether counts are as probable as they should be: what must not happen did not, and the rest by chi-square."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    assert not counts[probabilities == 0].any()
    expected = counts.sum() * probabilities
    rare = expected < 8
    observed = [*counts[~rare], counts[rare].sum()]
    wanted = np.array([*expected[~rare], expected[rare].sum()])
    degrees = len(wanted) - 1 - (wanted[-1] == 0)
    distance = sum((observed[i] - wanted[i]) ** 2 / wanted[i] for i in range(len(wanted)) if wanted[i])
    assert degrees == 0 or stats.chi2.sf(distance, degrees) > SURE


@pytest.mark.parametrize("kind", KINDS)
def test_checkerboard_sampling_returns_the_change_of_energy(kind):
    @settings(max_examples=40)
    @given(grid_models(kinds=[kind], dtypes=KIND_DTYPES[kind][:1]), st.integers(0, 99), st.sampled_from(TEMPERATURES))
    def check(case, seed, temperature):
        mrf = case.mrf()
        check_change(mrf, random_x(mrf, seed), temperature, seed)

    check()
    for seed, shape in enumerate(WIDE):
        mrf = random_case(seed, kind, shape, 3, KIND_DTYPES[kind][0], integer=False).mrf()
        check_change(mrf, random_x(mrf, seed), 5.0, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_temperature_zero_is_icm_on_the_checkerboard(kind):
    def check_icm(case, seed):
        mrf = case.mrf()
        x = random_x(mrf, seed)
        expected = naive_search.gibbs_sweep(case.unary, case.tables, x, 0, np.random.default_rng(0))
        Checkerboard(mrf.backend).sample(x, 0, np.random.default_rng(seed))
        np.testing.assert_array_equal(x, expected)

    @settings(max_examples=40)
    @given(grid_models(kinds=[kind], integer=True), st.integers(0, 99))
    def check(case, seed):
        check_icm(case, seed)

    check()
    for seed, shape in enumerate(WIDE):
        check_icm(random_case(seed, kind, shape, 3, KIND_DTYPES[kind][0]), seed)


@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sampling_sweep_has_the_exact_transition_probabilities(kind, labels, forbidden):
    dtype = KIND_DTYPES[kind][0]
    case = random_case(labels, kind, (2, 2), labels, dtype, integer=False, forbidden=forbidden)
    mrf = case.mrf()
    board, x, rng = Checkerboard(mrf.backend), random_x(mrf, 0), np.random.default_rng(1)
    counts = np.zeros(labels**4)
    for _ in range(4000):
        y = x.copy()
        board.sample(y, 4.0, rng)
        counts[np.ravel_multi_index(y.reshape(-1), 4 * (labels,))] += 1
    check_frequencies(counts, naive_search.sweep_probabilities(case.unary, case.tables, x, 4.0))


@pytest.mark.parametrize("shape", [(3, 37), (2, 3, 18)])
@pytest.mark.parametrize("labels", [2, 5])
def test_every_lane_of_the_sampler_draws_the_same_distribution(shape, labels):
    case = random_case(3, "table", shape, labels, "float64", integer=False)
    mrf = case.mrf()
    board, x, rng = Checkerboard(mrf.backend), random_x(mrf, 0), np.random.default_rng(1)
    counts = np.zeros((*shape, labels))
    for _ in range(3000):
        y = x.copy()
        board.sample(y, 6.0, rng)
        np.put_along_axis(counts, y[..., None], np.take_along_axis(counts, y[..., None], -1) + 1, -1)
    for i in naive_search.checkerboard(shape)[0]:  # the even sites see the x that is known
        check_frequencies(counts[i], naive_search.conditional(case.unary, case.tables, x, i, 6.0))


def test_sampled_labellings_follow_the_boltzmann_distribution():
    case = random_case(5, "potts", (2, 2), 3, "float32", integer=False)
    mrf = case.mrf()
    board, rng = Checkerboard(mrf.backend), np.random.default_rng(0)
    expected = naive_search.boltzmann(case.unary, case.tables, 8.0)
    x, sweeps = random_x(mrf, 0), 40_000
    counts = np.zeros(3**4)
    for _ in range(sweeps):
        board.sample(x, 8.0, rng)
        counts[np.ravel_multi_index(x.reshape(-1), 4 * (3,))] += 1
    assert np.abs(counts / sweeps - expected).sum() / 2 < 0.03  # the total variation; sweeps are not independent


@pytest.mark.parametrize("kind", KINDS)
def test_checkerboard_sampling_never_takes_forbidden_labels(kind):
    @settings(max_examples=40)
    @given(grid_models(kinds=[kind], forbidden=True), st.integers(0, 99), st.sampled_from(TEMPERATURES))
    def check(case, seed, temperature):
        mrf = case.mrf()
        x, rng = random_x(mrf, seed), np.random.default_rng(seed)
        finite = math.isfinite(mrf.energy(x))
        board = Checkerboard(mrf.backend)
        board.sample(x, temperature, rng)
        for i in naive_search.checkerboard(mrf.shape)[1]:  # the last drawn: the sites around are still the same
            allowed = naive_search.allowed(case.unary, case.tables, x, i)
            assert x[i] in allowed or not allowed
        if finite:
            assert math.isfinite(mrf.energy(x))

    check()


def test_checkerboard_sampling_survives_a_site_with_all_labels_forbidden():
    unary = np.full((2, 9, 3), np.inf)
    mrf = tf.GridMRF(unary, tf.Potts(1.0))
    x = random_x(mrf, 0)
    for temperature in TEMPERATURES:
        assert math.isfinite(Checkerboard(mrf.backend).sample(x, temperature, np.random.default_rng(0)))
        assert x.min() >= 0 and x.max() < 3


@pytest.mark.parametrize("labels", [2, 4])
def test_checkerboard_sampling_follows_the_seed(labels):
    mrf = tf.GridMRF(np.random.default_rng(0).random((20, 30, labels)), tf.Potts(0.3))

    def run(seed):
        board, x, rng = Checkerboard(mrf.backend), random_x(mrf, 0), np.random.default_rng(seed)
        return [board.sample(x, 1.0, rng) for _ in range(3)], x

    (first, x), (second, y), (other, z) = run(0), run(0), run(1)
    assert first == second and np.array_equal(x, y)
    assert first != other and not np.array_equal(x, z)


@pytest.mark.parametrize("labels", [2, 3])
def test_sampled_neighbours_and_successive_sweeps_are_not_correlated(labels):
    """Without costs all labels are equally probable, and nothing but the random numbers could relate them."""
    mrf = tf.GridMRF(np.zeros((64, 80, labels), np.float32), tf.Table(np.zeros((labels, labels))))
    board, rng, x = Checkerboard(mrf.backend), np.random.default_rng(0), np.zeros((64, 80), np.int32)
    sweeps = []
    for _ in range(100):
        board.sample(x, 1.0, rng)
        sweeps.append(x.copy())
    y = (np.array(sweeps) - (labels - 1) / 2) / math.sqrt((labels**2 - 1) / 12)
    assert abs(y.mean()) * math.sqrt(y.size) < 4
    for a, b in ((y[1:], y[:-1]), (y[:, 1:], y[:, :-1]), (y[:, :, 1:], y[:, :, :-1]), (y[:, :, 2:], y[:, :, :-2])):
        assert abs((a * b).mean()) * math.sqrt(a.size) < 4


def test_checkerboard_sampling_accepts_one_site_and_one_label():
    rng = np.random.default_rng(0)
    for unary, pairwise in (
        (np.array([[[3.0, 1.0, 2.0]]]), tf.EdgeTables([np.zeros((0, 1, 3, 3)), np.zeros((1, 0, 3, 3))])),
        (np.zeros((3, 20, 1)), tf.Potts(1.0)),
    ):
        mrf = tf.GridMRF(unary, pairwise)
        x = np.zeros(mrf.shape, np.int32)
        assert Checkerboard(mrf.backend).sample(x, 0, rng) == mrf.energy(x) - unary[..., 0].sum()


def test_checkerboard_sampling_accepts_300_labels():
    unary = np.random.default_rng(0).random((3, 20, 300))
    mrf = tf.GridMRF(unary, tf.Potts(0.0))
    x = np.zeros(mrf.shape, np.int32)
    Checkerboard(mrf.backend).sample(x, 0, np.random.default_rng(0))
    np.testing.assert_array_equal(x, unary.argmin(axis=-1))


@pytest.mark.parametrize(("temperature", "error"), [(-1.0, ValueError), (math.nan, ValueError), ("hot", TypeError)])
def test_checkerboard_sampling_refuses_a_bad_temperature(temperature, error):
    mrf = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1.0))
    x = np.zeros((2, 2), np.int32)
    with pytest.raises(error, match="temperature must be"):
        Checkerboard(mrf.backend).sample(x, temperature, np.random.default_rng(0))

"""Loopy belief propagation against an obvious version of it, and where it is known to be exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_messages
import treefield as tf
from strategies import KIND_DTYPES, grid_models, random_case

KINDS = ("potts", "edge-tables")
UPDATES = {"parallel": naive_messages.parallel_messages, "sequential": naive_messages.sequential_messages}
SHAPES = [(1, 1), (1, 9), (9, 1), (2, 17), (10, 3), (2, 3, 9)]


def check_against_naive(case, schedule, damping, iterations=3):
    """Labels after each of a few iterations; whole numbers and halves are exact, so that ties are too."""
    mrf = case.mrf()
    beliefs, x = mrf.backend.beliefs(), np.zeros(mrf.shape, np.int32)
    messages = naive_messages.no_messages(case.unary)
    update = beliefs.update_all if schedule == "parallel" else beliefs.update_in_turn
    for _ in range(iterations):
        before = messages
        messages = UPDATES[schedule](case.unary, case.tables, messages, damping)
        change = update(damping)
        if schedule == "parallel":
            assert change == max((np.abs(messages[edge] - before[edge]).max() for edge in messages), default=0)
        beliefs.decode(x)
        np.testing.assert_array_equal(x, naive_messages.decoded(case.unary, messages))
        beliefs.decode_in_turn(x)
        np.testing.assert_array_equal(x, naive_messages.decoded_in_turn(case.unary, case.tables, messages))


@pytest.mark.parametrize("schedule", UPDATES)
@pytest.mark.parametrize("kind", KINDS)
def test_loopy_bp_messages_equal_the_naive_ones(kind, schedule):
    @settings(max_examples=30)
    @given(grid_models(kinds=[kind], dtypes=KIND_DTYPES[kind][:1], integer=True), st.sampled_from((0.0, 0.5)))
    def check(case, damping):
        check_against_naive(case, schedule, damping)

    check()
    for seed, shape in enumerate(SHAPES):
        check_against_naive(random_case(seed, kind, shape, 3, KIND_DTYPES[kind][0]), schedule, 0.5)


@pytest.mark.parametrize("schedule", UPDATES)
def test_loopy_bp_is_exact_on_a_tree(schedule):
    for seed in range(5):
        mrf = random_case(seed, "edge-tables", (1, 12), 4, "float64", integer=False).mrf()
        res = tf.loopy_bp(mrf, schedule=schedule, maxiter=30)
        assert res.fun == pytest.approx(tf.tree_bp(mrf).fun) and "converged" in res.message


def test_loopy_bp_returns_the_best_labelling_and_its_trace():
    mrf = tf.GridMRF(np.random.default_rng(0).random((12, 14, 3)), tf.Potts(2.0))
    x0 = tf.t_icm(mrf, rng=0).x
    res = tf.loopy_bp(mrf, x0, maxiter=7)
    assert res.fun == mrf.energy(res.x) <= mrf.energy(x0) == res.trace["energy"][0]
    assert list(res.trace["iteration"]) == list(range(8)) and np.all(np.diff(res.trace["best"]) <= 0)
    assert res.method == "loopy_bp" and res.status == 1


def test_weak_couplings_are_solved_well_and_damping_helps_with_strong_ones():
    rng = np.random.default_rng(0)
    unary = rng.random((20, 20, 3), dtype=np.float32)
    weak = tf.GridMRF(unary, tf.Potts(0.05))
    assert tf.loopy_bp(weak).fun <= tf.t_icm(weak, rng=0).fun + 1e-6
    couplings = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((19, 20), (20, 19))]
    glass = tf.GridMRF(
        rng.uniform(-1, 1, (20, 20, 2)).astype(np.float32), tf.Table([[1, -1], [-1, 1]]), weights=couplings
    )
    strong = tf.loopy_bp(glass, damping=0.5, decoding="sequential", maxiter=50).fun
    assert strong < tf.loopy_bp(glass, maxiter=50).fun


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"schedule": "random"}, ValueError, "schedule must be one of 'parallel', 'sequential', got 'random'"),
        ({"decoding": "greedy"}, ValueError, "decoding must be one of"),
        ({"damping": 1}, ValueError, "damping must be at least 0 and below 1, got 1"),
        ({"damping": -0.1}, ValueError, "damping"),
        ({"tol": -1}, ValueError, "tol must be at least 0, got -1"),
        ({"tol": "small"}, TypeError, "tol must be a number"),
    ],
)
def test_loopy_bp_refuses_bad_input(keywords, error, message):
    mrf = tf.GridMRF(np.zeros((2, 3, 2)), tf.Potts(1))
    with pytest.raises(error, match=message):
        tf.loopy_bp(mrf, **keywords)

"""TRW-S as a solver: its result, its limits, and what it proves."""

import math
import os
import signal

import numpy as np
import pytest

import treefield as tf
from bounds import ARITHMETICS, holds, least_energy, random_model
from treefield.results import relative_gap


@pytest.fixture(scope="module")
def frustrated():
    """A model whose gap does not close, in whole numbers."""
    return tf.GridMRF(np.random.default_rng(0).integers(0, 100, (16, 18, 8)).astype(np.float32), tf.Potts(40))


def check_bounded(mrf, res):
    """Fail unless a result with a bound is consistent."""
    trace = res.trace
    assert res.x.dtype == np.int32 and res.x.shape == mrf.shape
    assert res.fun == mrf.energy(res.x) == trace["best"][-1] and not res.lower_bound > res.fun
    np.testing.assert_equal(res.gap, relative_gap(res.fun, res.lower_bound))
    assert list(trace["iteration"]) == list(range(res.nit + 1)) and np.all(np.diff(trace["seconds"]) >= 0)
    assert np.all(np.diff(trace["best"]) <= 0) and np.all(trace["energy"] >= trace["best"])
    bounds = trace["bound"][1:]
    assert np.isnan(trace["bound"][0]) and np.all(np.diff(bounds) >= 0) and np.all(bounds <= res.fun)
    assert res.nit == 0 or bounds[-1] == res.lower_bound


# --- the result -----------------------------------------------------------------------------------------------------


def test_the_result_of_trw_is_consistent(frustrated):
    res = tf.trw(frustrated, maxiter=30)
    check_bounded(frustrated, res)
    assert res.method == "trw" and res.nit == 30 and res.status == tf.Status.LIMIT and "maxiter = 30" in res.message
    assert 0 < res.gap < 0.1 and res.gap == (res.fun - res.lower_bound) / res.fun
    assert isinstance(res.lower_bound, float) and isinstance(res.fun, float)
    assert res.trace["energy"][0] == frustrated.energy(frustrated.unary.argmin(axis=-1)) > res.fun


def test_trw_returns_the_bound_and_the_labelling_of_the_dual(frustrated):
    res, dual, x = tf.trw(frustrated, maxiter=8), frustrated.backend.dual(), np.zeros(frustrated.shape, np.int32)
    for row in res.trace[1:]:
        assert row["bound"] == dual.iterate(x) and row["energy"] == frustrated.energy(x)


@pytest.mark.parametrize("kind", ["potts", "table"])
def test_the_bound_of_trw_is_below_every_energy(kind):
    for seed in range(12):
        case = random_model(kind, seed, odd=False)
        arithmetic = next(name for name in ARITHMETICS[kind][::-1] if holds(case.mrf(), name))
        mrf, (minimum, slack) = case.mrf(), least_energy(case)
        res = tf.trw(mrf, maxiter=20, arithmetic=arithmetic)
        check_bounded(mrf, res)
        assert res.lower_bound <= minimum + slack and res.fun >= minimum - slack


def test_trw_keeps_a_start_that_is_better_than_all_decodings(frustrated):
    best = tf.t_ils(frustrated, jump=tf.moves.MixedJump(), accept=tf.moves.PerComponent(), maxiter=60, rng=0)
    res = tf.trw(frustrated, best.x, maxiter=5)
    check_bounded(frustrated, res)
    assert res.fun == best.fun and np.array_equal(res.x, best.x) and res.trace["energy"][1] > best.fun
    other = tf.trw(frustrated, "random", maxiter=5, rng=0)
    np.testing.assert_array_equal(other.trace["bound"], res.trace["bound"])  # which does not depend on the start


def test_trw_gives_the_same_answer_twice(frustrated):
    first, second = (tf.trw(frustrated, maxiter=12) for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)
    for column in ("energy", "best", "bound"):
        np.testing.assert_array_equal(first.trace[column], second.trace[column])


def test_trw_solves_a_chain_in_two_iterations():
    for shape in ((1, 40), (40, 1), (1, 40, 1)):
        mrf = tf.GridMRF(np.random.default_rng(0).integers(0, 30, (*shape, 3)).astype(np.float32), tf.Potts(7))
        res = tf.trw(mrf, tol=0)
        check_bounded(mrf, res)
        assert res.fun == res.lower_bound == tf.tree_bp(mrf).fun and res.gap == 0 and res.nit <= 2
        assert res.status == 0 and res.success and res.message == "converged: proved optimal"


def test_trw_proves_submodular_models_of_two_labels_optimal():
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.integers(0, 9, (12, 10, 2)).astype(np.float32), tf.Potts(3))
    res = tf.trw(mrf, tol=0)
    check_bounded(mrf, res)
    assert res.gap == 0 and res.status == 0 and "proved optimal" in res.message


def test_trw_solves_one_label_and_one_site_at_once():
    one = tf.GridMRF(np.full((4, 5, 1), 2, np.float32), tf.Potts(3))
    res = tf.trw(one)
    check_bounded(one, res)
    assert res.fun == res.lower_bound == 40 and res.gap == 0 and res.nit == 1 and "proved optimal" in res.message
    site = tf.GridMRF(np.array([[[5, 2, 4]]], np.float32), tf.Potts(3))
    assert tf.trw(site).fun == tf.trw(site).lower_bound == 2 and tf.trw(site).x.tolist() == [[1]]


# --- limits ---------------------------------------------------------------------------------------------------------


def test_trw_without_iterations_returns_the_start_and_no_bound(frustrated):
    res = tf.trw(frustrated, "unary", maxiter=0)
    check_bounded(frustrated, res)
    assert res.nit == 0 and len(res.trace) == 1 and res.status == tf.Status.LIMIT
    assert np.isnan(res.lower_bound) and np.isnan(res.gap)
    np.testing.assert_array_equal(res.x, frustrated.unary.argmin(axis=-1))


def test_trw_without_time_makes_one_iteration(frustrated):
    res = tf.trw(frustrated, "unary", time_limit=0)
    check_bounded(frustrated, res)
    assert res.nit == 1 and "time_limit" in res.message


def test_patience_counts_iterations_without_a_better_labelling(frustrated):
    res = tf.trw(frustrated, patience=4)
    check_bounded(frustrated, res)
    gains = np.flatnonzero(np.diff(res.trace["best"]) < 0) + 1
    assert res.nit == gains.max() + 4 and res.status == 0 and "patience = 4" in res.message


def test_trw_stops_at_the_given_gap(frustrated):
    for tol in (0.1, 0.03):
        res = tf.trw(frustrated, tol=tol)
        check_bounded(frustrated, res)
        assert res.gap <= tol and res.status == 0 and f"within tol = {tol}" in res.message
        best, bound = res.trace["best"][:-1], res.trace["bound"][:-1]
        gaps = [relative_gap(*row) for row in zip(best, bound, strict=True)]
        assert not np.any(np.array(gaps[1:]) <= tol)  # and no iteration was made in vain


def test_trw_stops_when_the_bound_no_longer_rises(frustrated):
    res = tf.trw(frustrated)
    check_bounded(frustrated, res)
    assert res.status == 0 and res.success and res.message == "converged: the bound no longer rises"
    assert 20 < res.nit < 1000 and res.gap > 0
    patient = tf.trw(frustrated, maxiter=res.nit + 200, tol=0)
    assert patient.lower_bound >= res.lower_bound >= 0.99 * patient.lower_bound


def test_trw_with_auto_arithmetic_continues_in_float32_after_int16(frustrated):
    halves = tf.GridMRF(frustrated.unary / 2, tf.Potts(19.7))  # not whole: nothing is rounded up
    coarse, res = tf.trw(halves, arithmetic="int16"), tf.trw(halves)
    check_bounded(halves, res)
    assert res.nit > coarse.nit and res.lower_bound > coarse.lower_bound
    np.testing.assert_array_equal(res.trace["bound"][: coarse.nit + 1], coarse.trace["bound"])


def test_the_callback_of_trw_sees_every_iteration_and_can_stop(frustrated):
    seen = []

    def callback(intermediate_result):
        check_bounded(frustrated, intermediate_result)
        seen.append((intermediate_result.nit, intermediate_result.lower_bound))
        intermediate_result.x[:] = 0  # its copy is its own
        if intermediate_result.nit == 5:
            raise StopIteration

    res = tf.trw(frustrated, callback=callback)
    check_bounded(frustrated, res)
    assert [nit for nit, _ in seen] == [1, 2, 3, 4, 5] and seen[-1][1] == res.lower_bound
    assert res.nit == 5 and res.status == tf.Status.STOPPED and "callback" in res.message
    np.testing.assert_array_equal(res.x, tf.trw(frustrated, maxiter=5).x)


def test_trw_returns_the_best_so_far_after_ctrl_c(frustrated):
    def callback(intermediate_result):
        if intermediate_result.nit == 4:
            os.kill(os.getpid(), signal.SIGINT)

    res = tf.trw(frustrated, callback=callback)
    check_bounded(frustrated, res)
    assert res.nit == 4 and res.status == 3 and not res.success and "interrupted" in res.message


def test_the_progress_bar_of_trw_shows_bound_and_gap(frustrated, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "50")
    res = tf.trw(frustrated, maxiter=6, progress=True)
    err = capsys.readouterr().err
    assert "trw" in err and "6/6" in err and f"bound={res.lower_bound:.7g}" in err and "gap=" in err


# --- options and odd models -----------------------------------------------------------------------------------------


def test_every_arithmetic_of_trw_gives_about_the_same_bound(frustrated):
    bounds = [tf.trw(frustrated, arithmetic=name, maxiter=20).lower_bound for name in ("int16", "float32")]
    assert bounds[0] == pytest.approx(bounds[1], rel=0.01)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"arithmetic": "float16"}, ValueError, "arithmetic must be one of 'auto', 'int16'.*got 'float16'"),
        ({"arithmetic": None}, ValueError, "arithmetic must be one of"),
        ({"tol": -1e-9}, ValueError, "tol must be at least 0, got -1e-09"),
        ({"tol": None}, TypeError, "tol must be a number, got None"),
        ({"tol": math.nan}, ValueError, "tol must be finite"),
        ({"maxiter": -1}, ValueError, "maxiter must be at least 0"),
        ({"patience": 0}, ValueError, "patience must be at least 1"),
        ({"time_limit": -1}, ValueError, "time_limit must be at least 0"),
        ({"callback": 1}, TypeError, "callback must be a function"),
        ({"x0": "best"}, ValueError, "x0 must be one of"),
        ({"x0": np.zeros((2, 2), int)}, ValueError, r"x0 has shape \(2, 2\)"),
        ({"rng": "seed"}, TypeError, "rng must be"),
    ],
)
def test_trw_refuses_bad_input(frustrated, keywords, error, message):
    with pytest.raises(error, match=message):
        tf.trw(frustrated, **keywords)


def test_trw_refuses_an_argument_that_is_not_a_model():
    with pytest.raises(TypeError, match="mrf must be a model"):
        tf.trw(np.zeros((2, 2, 2)))


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_an_arithmetic_that_does_not_hold_the_costs_says_why(arithmetic):
    forbidding = tf.GridMRF(np.zeros((3, 3, 3)), tf.Table([[0, 1, np.inf], [1, 0, 1], [1, 1, 0]]))
    with pytest.raises(ValueError, match=f"arithmetic='{arithmetic}' does not hold these costs: some pairs are forb"):
        tf.trw(forbidding, arithmetic=arithmetic)
    assert tf.trw(forbidding).fun == 0


def test_forbidden_costs_are_avoided_and_bounded():
    rng = np.random.default_rng(0)
    for seed in range(8):
        case = random_model("table", seed, (3, 3), labels=3, integer=True)
        minimum, _ = least_energy(case)
        res = tf.trw(case.mrf(), arithmetic="float64", maxiter=40)
        assert res.lower_bound <= minimum <= res.fun
    unary = rng.integers(0, 9, (8, 9, 3)).astype(np.float32)
    unary[rng.random((8, 9)) < 0.4, 1] = np.inf
    mrf = tf.GridMRF(unary, tf.Potts(4))
    res = tf.trw(mrf)
    check_bounded(mrf, res)
    assert np.isfinite(res.fun) and res.success and res.gap < 0.1


def test_trw_reports_a_model_that_forbids_everything():
    unary = np.zeros((3, 4, 3), np.float32)
    unary[1, 2] = np.inf
    res = tf.trw(tf.GridMRF(unary, tf.Potts(1)), maxiter=3)
    assert res.fun == math.inf and res.status == 4 and not res.success and "1 forbidden costs" in res.message
    assert res.lower_bound >= 0 and res.gap == math.inf


def test_trw_on_a_3d_grid_beats_the_bounds_of_its_planes():
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.integers(0, 9, (4, 9, 5, 3)).astype(np.float32), tf.Potts(2))
    res = tf.trw(mrf, maxiter=60)
    check_bounded(mrf, res)
    assert res.gap < 0.05
    assert res.lower_bound > sum(tf.trw(tf.GridMRF(plane, tf.Potts(2))).lower_bound for plane in mrf.unary)

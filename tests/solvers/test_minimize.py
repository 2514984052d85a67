"""`minimize`: what it answers, what it proves, and how it is stopped."""

import math
import os
import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import naive
import treefield as tf
from bounds import least_energy, random_model
from small import CHAIN, MRF
from treefield.backends.grid.dual import GridDual
from treefield.moves import MixedJump, PerComponent, UniformJump
from treefield.results import relative_gap
from treefield.solvers.minimize import METHODS


def check_result(mrf, res):
    """Fail unless a result of "auto" is consistent."""
    trace = res.trace
    assert res.x.dtype == np.int32 and res.x.shape == mrf.shape
    assert res.fun == mrf.energy(res.x) == trace["best"][-1] and not res.lower_bound > res.fun
    np.testing.assert_equal(res.gap, relative_gap(res.fun, res.lower_bound))
    assert list(trace["iteration"]) == list(range(res.nit + 1)) and np.all(np.diff(trace["seconds"]) >= 0)
    assert np.all(np.diff(trace["best"]) <= 0) and np.all(trace["energy"] >= res.fun)
    bounds = trace["bound"][~np.isnan(trace["bound"])]
    assert np.all(np.diff(bounds) >= 0) and np.all(bounds <= res.fun)


def comb(shape):
    """Weights that leave the rows of a grid and its first column: a tree."""
    down = np.zeros((shape[0] - 1, shape[1]))
    down[:, 0] = 1
    return down, 1.0


def frustrated(shape, seed=0):
    """Spins that like or dislike their neighbours, at random."""
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=naive.edge_shape(shape, axis)) for axis in range(len(shape))]
    return tf.GridMRF(np.zeros((*shape, 2), np.float32), tf.Potts(1), weights=weights)


# --- the answer -----------------------------------------------------------------------------------------------------


def test_the_result_of_minimize_is_consistent(mrf):
    res = tf.minimize(mrf, maxiter=6, tol=0, rng=0)
    check_result(mrf, res)
    assert res.method == "auto" and res.nit == 6 and res.status == tf.Status.LIMIT and "maxiter = 6" in res.message
    assert isinstance(res.lower_bound, float) and 0 < res.gap < 0.01
    np.testing.assert_array_equal(np.isnan(res.trace["bound"]), 2 * [True] + 5 * [False])
    assert res.trace["energy"][0] == mrf.energy(mrf.unary.argmin(axis=-1))
    assert res.fun <= min(tf.trw(mrf, maxiter=24).fun, tf.t_icm(mrf, rng=0).fun)


def test_the_result_says_how_it_was_proved_optimal(no_elimination):
    smooth = tf.GridMRF(np.random.default_rng(0).integers(0, 9, (9, 9, 2)), tf.Potts(2))
    assert tf.minimize(smooth, tol=0, rng=0).proof == "bound"
    assert tf.minimize(CHAIN).proof == "tree" and tf.minimize(MRF, method="icm").proof is None
    assert tf.minimize(smooth, maxiter=1, tol=0, rng=0).proof is None
    seen = []
    assert tf.minimize(smooth, tol=0, rng=0, callback=lambda res: seen.append(res.proof)).proof and seen[0] is None


def test_small_models_are_proved_optimal_by_elimination():
    assert tf.minimize(frustrated((8, 8)), rng=0).proof == "elimination"


def test_minimize_solves_a_chain_exactly_at_once():
    for unary in (CHAIN.unary, CHAIN.unary.transpose(1, 0, 2), CHAIN.unary[None]):
        mrf = tf.GridMRF(unary, tf.Potts(2))
        res = tf.minimize(mrf)
        assert res.gap == 0 and res.status == 0 and res.success and "exact" in res.message
        tables = naive.explicit_tables(mrf.shape, 2 * naive.potts(3))
        assert res.fun == res.lower_bound == mrf.energy(res.x) == naive.brute_force(unary, tables)[0]


def test_a_grid_whose_weights_leave_a_tree_is_solved_exactly():
    for seed in range(8):
        case = random_model("potts", seed, (3, 3), labels=3, integer=False, odd=False)
        weights = comb((3, 3))
        tables = [case.pairwise.weight * t for t in naive.explicit_tables((3, 3), naive.potts(3), weights)]
        case = replace(case, weights=weights, tables=tables)
        res, (minimum, slack) = tf.minimize(case.mrf()), least_energy(case)
        assert res.fun == pytest.approx(minimum, rel=1e-12, abs=slack) and res.fun == case.mrf().energy(res.x)
        assert 0 <= res.gap <= 1e-10 and res.status == 0


def test_few_edges_that_close_a_cycle_are_no_tree(no_elimination):
    down, across = np.zeros((3, 4)), np.zeros((4, 3))
    down[0, :2] = across[:2, 0] = 1  # a square, and eleven sites by themselves
    unary = np.random.default_rng(0).integers(0, 9, (4, 4, 3)).astype(np.float32)
    mrf = tf.GridMRF(unary, tf.Potts(3), weights=(down, across))
    res = tf.minimize(mrf, rng=0)
    check_result(mrf, res)
    assert res.method == "auto" and res.gap == 0 and res.message == "converged: proved optimal"


@pytest.mark.parametrize("kind", ["potts", "edge-tables"])
@pytest.mark.parametrize("searches", [True, False], ids=["search", "elimination"])
def test_minimize_solves_small_models(kind, searches, monkeypatch):
    if searches:
        monkeypatch.setattr("treefield.solvers.minimize.solve_by_elimination", lambda *_: None)
    for seed in range(30):
        case = random_model(kind, seed, odd=seed % 2 == 0)
        mrf, (minimum, slack) = case.mrf(), least_energy(case)
        res = tf.minimize(mrf, maxiter=30, tol=0, rng=seed)
        assert res.fun == mrf.energy(res.x) and res.lower_bound <= minimum + slack
        assert res.fun == minimum if case.integer else res.fun <= minimum + slack + 1e-12 * abs(minimum)
        assert res.gap > 0 or res.fun == pytest.approx(minimum, rel=1e-12)


@pytest.mark.parametrize("shape", [(14, 17), (3, 9, 5)], ids=str)
def test_minimize_proves_submodular_models_of_two_labels_optimal(no_elimination, shape):
    rng = np.random.default_rng(0)
    weights = [rng.integers(0, 5, naive.edge_shape(shape, axis)).astype(float) for axis in range(len(shape))]
    mrf = tf.GridMRF(rng.integers(-9, 9, (*shape, 2)).astype(np.float32), tf.Potts(1), weights=weights)
    res = tf.minimize(mrf, tol=0, rng=0)
    check_result(mrf, res)
    assert res.gap == 0 and res.fun == res.lower_bound and res.status == 0 and "proved optimal" in res.message


def test_minimize_on_a_3d_grid_has_a_small_gap_and_beats_t_icm():
    mrf = tf.GridMRF(np.random.default_rng(0).random((4, 9, 10, 4), dtype=np.float32), tf.Potts(0.2))
    res = tf.minimize(mrf, maxiter=20, rng=0)
    check_result(mrf, res)
    assert res.gap < 0.02 and res.fun <= tf.t_icm(mrf, rng=0).fun


def test_minimize_avoids_forbidden_costs():
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 9, (12, 10, 4)).astype(np.float32)
    unary[rng.random((12, 10)) < 0.5, 2] = np.inf
    mrf = tf.GridMRF(unary, tf.Potts(4))
    res = tf.minimize(mrf, maxiter=40, rng=0)
    check_result(mrf, res)
    assert np.isfinite(res.fun) and res.success and res.gap < 0.05


def test_minimize_reports_a_model_that_forbids_everything():
    unary = np.zeros((3, 4, 3), np.float32)
    unary[1, 2] = np.inf
    res = tf.minimize(tf.GridMRF(unary, tf.Potts(1)), maxiter=3, rng=0)
    assert res.fun == math.inf and res.status == 4 and not res.success and "1 forbidden costs" in res.message


def test_on_a_spin_glass_the_dual_rests_and_the_search_is_as_good_as_t_ils(monkeypatch):
    iterations = []
    iterate = GridDual.iterate
    monkeypatch.setattr(GridDual, "iterate", lambda self, x: iterations.append(1) or iterate(self, x))
    mrf = frustrated((40, 40))
    res = tf.minimize(mrf, maxiter=60, rng=0)
    check_result(mrf, res)
    assert 20 <= len(iterations) < 3 * 60  # four in a round where it works
    for seed in range(2):
        other = tf.t_ils(mrf, jump=MixedJump(), accept=PerComponent(), trees="bands", maxiter=60, rng=seed)
        assert res.fun <= other.fun + 0.005 * abs(other.fun)


# --- the start, the seed and the threads ----------------------------------------------------------------------------


def test_minimize_starts_from_the_named_or_given_labelling(mrf):
    given = np.random.default_rng(5).integers(4, size=mrf.shape)
    starts = {name: tf.minimize(mrf, name, maxiter=0, rng=1).x for name in ("random", "unary", "scan-line")}
    for name, x in starts.items():
        np.testing.assert_array_equal(x, tf.t_icm(mrf, name, maxiter=0, rng=1).x)
    np.testing.assert_array_equal(tf.minimize(mrf, maxiter=0).x, starts["unary"])
    np.testing.assert_array_equal(tf.minimize(mrf, given, maxiter=0).x, given)
    best = tf.minimize(mrf, rng=0, maxiter=20)
    again = tf.minimize(mrf, best.x, rng=1, maxiter=2, tol=0)
    assert again.fun <= best.fun == again.trace["energy"][0]


def test_minimize_with_the_same_seed_gives_the_same_answer(mrf):
    first, second = (tf.minimize(mrf, maxiter=6, tol=0, rng=rng) for rng in (3, np.random.default_rng(3)))
    check_same(first, second)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert tf.minimize(mrf, maxiter=6, tol=0, rng=4).trace["energy"].tolist() != first.trace["energy"].tolist()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def check_same(first, second):
    np.testing.assert_array_equal(first.x, second.x)
    for column in ("iteration", "energy", "best", "bound"):
        np.testing.assert_array_equal(first.trace[column], second.trace[column])
    assert (first.fun, first.lower_bound, first.message) == (second.fun, second.lower_bound, second.message)


@pytest.fixture
def restless():
    """Threads that take turns a thousand times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("size", ["small", "large", "frustrated"])
def test_minimize_does_not_depend_on_the_number_of_threads(mrf, size, restless):
    if size == "large":  # enough for sweeps to be shared out, too
        mrf = tf.GridMRF(np.random.default_rng(0).random((240, 240, 4), dtype=np.float32), tf.Potts(0.4))
    elif size == "frustrated":  # where the dual rests
        mrf = frustrated((20, 20))
    options = {"maxiter": 3 if size == "large" else 40, "tol": 0, "rng": 0}
    first = tf.minimize(mrf, threads=1, **options)
    for threads in (2, 2, 3):
        check_same(first, tf.minimize(mrf, threads=threads, **options))


def test_minimize_does_not_depend_on_threads_if_one_side_is_slow(mrf, monkeypatch):
    from treefield.solvers import auto

    first = tf.minimize(mrf, threads=1, maxiter=8, tol=0, rng=0)
    iterate = auto._DualSide.iterate
    for wait in (0.0, 0.02):
        monkeypatch.setattr(auto._DualSide, "iterate", lambda self, late, w=wait: time.sleep(w) or iterate(self, late))
        check_same(first, tf.minimize(mrf, threads=2, maxiter=8, tol=0, rng=0))
    check_same(first, tf.minimize(mrf, threads=2, maxiter=8, tol=0, rng=0, callback=lambda result: time.sleep(0.01)))


def test_maxiter_truncates_a_run_of_minimize_but_does_not_change_it(mrf):
    long, short = (tf.minimize(mrf, maxiter=maxiter, tol=0, rng=0) for maxiter in (8, 3))
    np.testing.assert_array_equal(short.trace["bound"], long.trace["bound"][:4])
    np.testing.assert_allclose(short.trace["energy"], long.trace["energy"][:4], rtol=1e-12)  # the last is summed afresh


# --- limits ---------------------------------------------------------------------------------------------------------


def test_minimize_without_rounds_returns_the_start_and_no_bound(mrf):
    res = tf.minimize(mrf, maxiter=0)
    check_result(mrf, res)
    assert res.nit == 0 and np.isnan(res.lower_bound) and np.isnan(res.gap) and res.status == tf.Status.LIMIT


def test_minimize_without_time_makes_one_round(mrf):
    res = tf.minimize(mrf, time_limit=0)
    check_result(mrf, res)
    assert res.nit == 1 and "time_limit" in res.message and res.status == tf.Status.LIMIT


def test_minimize_stops_at_the_given_gap(mrf):
    res = tf.minimize(mrf, tol=0.05, rng=0)
    check_result(mrf, res)
    assert res.gap <= 0.05 and res.status == 0 and "within tol = 0.05" in res.message
    assert res.nit <= tf.minimize(mrf, tol=0.01, rng=0).nit


def test_patience_counts_rounds_without_a_new_best(no_elimination):
    mrf = frustrated((12, 12))
    res = tf.minimize(mrf, patience=5, rng=0)
    check_result(mrf, res)
    gains = np.flatnonzero(np.diff(res.trace["best"]) < -1e-9) + 1
    assert res.nit == gains.max() + 5 and res.status == 0 and "patience = 5" in res.message


def test_minimize_without_limits_stops_by_itself(no_elimination, mrf):
    res = tf.minimize(mrf, rng=0)
    check_result(mrf, res)
    assert res.status == 0 and res.gap <= 1e-4 and "converged" in res.message
    hopeless = tf.minimize(frustrated((9, 9)), rng=0)
    check_result(frustrated((9, 9)), hopeless)
    assert hopeless.status == 0 and hopeless.message == "no improvement in energy or bound for 100 rounds"
    assert 100 <= hopeless.nit < 1000 and hopeless.gap > 1e-4


def test_the_callback_of_minimize_sees_every_round_and_can_stop(mrf):
    seen = []

    def callback(intermediate_result):
        check_result(mrf, intermediate_result)
        seen.append(intermediate_result.nit)
        intermediate_result.x[:] = 0  # its copy is its own
        if intermediate_result.nit == 4:
            raise StopIteration

    res = tf.minimize(mrf, tol=0, callback=callback, rng=0)
    check_result(mrf, res)
    assert seen == [1, 2, 3, 4] and res.status == tf.Status.STOPPED and "callback" in res.message
    np.testing.assert_array_equal(res.x, tf.minimize(mrf, tol=0, maxiter=4, rng=0).x)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_minimize_returns_the_best_so_far_after_an_interrupt(mrf, number, threads):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def callback(intermediate_result):
        if intermediate_result.nit == 3:
            os.kill(os.getpid(), number)

    res = tf.minimize(mrf, tol=0, callback=callback, rng=0, threads=threads)
    check_result(mrf, res)
    assert res.nit == 3 and res.status == 3 and not res.success and "the best so far" in res.message
    np.testing.assert_array_equal(res.x, tf.minimize(mrf, tol=0, maxiter=3, rng=0).x)
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_round_is_raised_and_leaves_no_thread_behind(mrf, monkeypatch, threads):
    def broken(self, x):
        raise ZeroDivisionError("mine")

    monkeypatch.setattr(GridDual, "iterate", broken)
    with pytest.raises(ZeroDivisionError, match="mine"):
        tf.minimize(mrf, maxiter=3, rng=0, threads=threads)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_the_progress_bar_of_minimize_shows_bound_and_gap(mrf, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "50")
    res = tf.minimize(mrf, maxiter=4, tol=0, rng=0, progress=True)
    err = capsys.readouterr().err
    assert "auto" in err and "4/4" in err and f"bound={res.lower_bound:.7g}" in err and "gap=" in err


# --- methods and options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_minimize_runs_every_method_by_its_name(no_elimination, method):
    mrf = CHAIN if method == "tree_bp" else MRF
    res = tf.minimize(mrf, method=method)
    assert res.method == method and res.fun == mrf.energy(res.x)


def test_minimize_passes_options_to_the_method(mrf):
    res = tf.minimize(mrf, "unary", method="t_ils", jump=UniformJump(0.3), beta=2, maxiter=7, rng=0, threads=1)
    same = tf.t_ils(mrf, "unary", jump=UniformJump(0.3), beta=2, maxiter=7, rng=0)
    np.testing.assert_array_equal(res.x, same.x)
    np.testing.assert_array_equal(res.trace["energy"], same.trace["energy"])
    assert tf.minimize(mrf, method="scan_line", nu=0.4).fun == tf.scan_line(mrf, nu=0.4).fun
    bound = tf.minimize(mrf, method="trw", arithmetic="float32", maxiter=3).lower_bound
    assert bound == tf.trw(mrf, arithmetic="float32", maxiter=3).lower_bound
    assert "within tol = 0.3" in tf.minimize(mrf, method="trw", tol=0.3).message


def test_minimize_without_limits_stops_although_the_bound_creeps():
    unary = np.random.default_rng(0).random((40, 40, 8))

    def fail_after_1500(intermediate_result):
        assert intermediate_result.nit < 1500

    res = tf.minimize(tf.GridMRF(unary, tf.Potts(0.3)), rng=0, callback=fail_after_1500)
    assert res.status == 0 and res.message.startswith("no improvement in energy or bound") and res.gap > 1e-4


def test_an_exact_answer_says_that_every_labelling_is_forbidden():
    ring = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2), (0, 2)], tf.Table([[np.inf, 0], [0, np.inf]]))
    res = tf.minimize(ring)
    assert res.status == tf.Status.INFEASIBLE and res.fun == res.lower_bound == math.inf
    assert res.message.endswith("it holds 1 forbidden costs, and every other has some, too")

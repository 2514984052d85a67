"""T-ILS: the paper's Algorithm 2, its limits, and how it is stopped."""

import signal

import numpy as np
import pytest

import naive
import naive_search
import treefield as tf
from small import check_result
from treefield.moves import (
    Always,
    BoxJump,
    Greedy,
    LevyJump,
    Metropolis,
    MixedJump,
    PerComponent,
    SegmentJump,
    UniformJump,
)

# --- the loop -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("jump", [None, LevyJump(1.2, rho_min=0.05)], ids=repr)
def test_t_ils_equals_the_papers_algorithm_2(jump, seed):
    shape, rng = (14, 15), np.random.default_rng(seed)
    unary = rng.integers(0, 9, (*shape, 4)).astype(np.float32)  # whole numbers: energies are exact
    mrf, tables = tf.GridMRF(unary, tf.Potts(4)), naive.explicit_tables(shape, 4 * naive.potts(4))
    x0 = rng.integers(4, size=shape, dtype=np.int32)
    to, fro = naive.rows_columns(shape), [[line] for axis in (1, 0) for line in naive.lines(shape, axis)[::-1]]
    energies, best = naive_search.t_ils(
        x0,
        jump=lambda x, rng: (jump or UniformJump(0.1))(x, mrf, rng),
        sweep=lambda x, k: naive.sweep(unary, tables, x, fro if k % 2 else to),
        energy=lambda x: naive.energy(unary, tables, x),
        rng=np.random.default_rng(seed + 10),
        iterations=40,
    )
    res = tf.t_ils(mrf, x0, jump=jump, maxiter=40, rng=seed + 10)
    assert res.trace["energy"].tolist() == energies and len(set(energies)) > 5
    assert res.fun == min(energies[1:])
    np.testing.assert_array_equal(res.x, best)


MOVES = {
    "the paper's": {},
    "greedy": {"beta": np.inf},
    "all accepted": {"beta": 0},
    "levy": {"jump": LevyJump(), "accept": Metropolis(3)},
    "mixed, per component": {"jump": MixedJump(), "accept": PerComponent(), "trees": "bands"},
    "boxes, per component, warm": {"jump": BoxJump("neighbour", size=(2, 6)), "accept": PerComponent(Metropolis(2))},
    "icm": {"local_search": "icm", "inner_iter": 3},
    "to the minimum": {"inner_iter": None, "order": "random"},
}


@pytest.mark.parametrize("moves", MOVES)
def test_t_ils_returns_the_best_labelling_of_the_run(mrf, moves):
    res = tf.t_ils(mrf, maxiter=60, rng=0, **MOVES[moves])
    check_result(mrf, res)
    assert res.method == "t_ils" and res.nit == 60 and res.status == tf.Status.LIMIT and "maxiter" in res.message
    assert res.fun == pytest.approx(res.trace["energy"][1:].min(), rel=1e-9)
    assert res.fun < res.trace["energy"][1] < res.trace["energy"][0]


def test_the_energy_of_t_ils_may_rise_but_its_best_never_does(mrf):
    res = tf.t_ils(mrf, beta=0, jump=UniformJump(0.5), maxiter=40, rng=0)
    assert np.any(np.diff(res.trace["energy"][1:]) > 0) and res.trace["energy"][-1] > res.fun
    greedy = tf.t_ils(mrf, beta=np.inf, jump=UniformJump(0.5), maxiter=40, rng=0)
    assert np.all(np.diff(greedy.trace["energy"]) <= 0)


def test_beta_is_short_for_metropolis(mrf):
    first, second = (tf.t_ils(mrf, maxiter=30, rng=0, **how) for how in ({"beta": 2}, {"accept": Metropolis(2)}))
    np.testing.assert_array_equal(first.trace["energy"], second.trace["energy"])


def test_single_sites_searched_after_a_jump_are_icm(mrf):
    x0 = np.zeros(mrf.shape, int)
    res = tf.t_ils(mrf, x0, local_search="icm", inner_iter=None, maxiter=0)
    np.testing.assert_array_equal(res.x, tf.icm(mrf, x0).x)
    assert tf.t_ils(mrf, x0, inner_iter=None, maxiter=0).fun < res.fun


def test_a_tree_set_is_a_local_search(mrf):
    named = tf.t_ils(mrf, trees="bands", maxiter=20, rng=0)
    given = tf.t_ils(mrf, local_search=mrf.backend.tree_set("bands"), maxiter=20, rng=0)
    np.testing.assert_array_equal(named.x, given.x)
    np.testing.assert_array_equal(named.trace["energy"], given.trace["energy"])


def test_anything_that_sweeps_is_a_local_search(mrf):
    class Counted:
        sweeps = 0

        def sweep(self, x, rng, **keywords):
            self.sweeps += 1
            return trees.sweep(x)

    trees = mrf.backend.tree_set("alternating")
    counted = Counted()
    res = tf.t_ils(mrf, local_search=counted, maxiter=7, rng=0)
    assert counted.sweeps == 8 and res.fun == mrf.energy(res.x)
    # inner_iter sweeps per jump, fewer where the local minimum is reached
    counted.sweeps = 0
    tf.t_ils(mrf, local_search=counted, inner_iter=2, jump=UniformJump(1), maxiter=7, rng=0)
    assert counted.sweeps == 16
    counted.sweeps = 0
    tf.t_ils(mrf, "unary", local_search=counted, inner_iter=100, maxiter=2, rng=0)
    assert 6 <= counted.sweeps < 60


def test_a_local_search_alternates_in_direction(mrf):
    class Search:
        def sweep(self, x, rng, reverse):
            ways.append(reverse)
            return trees.sweep(x, rng)

    ways, trees = [], mrf.backend.tree_set("alternating")
    assert tf.t_ils(mrf, local_search=Search(), maxiter=3, rng=0).nit == 3
    assert ways == [False, False, True, False]


@pytest.mark.parametrize("trees", ["rows-columns", "bands"])
def test_without_a_limit_on_sweeps_every_jump_ends_in_a_minimum_of_t_icm(mrf, trees):
    seen = []

    class Seen(Always):
        def __call__(self, mrf, x, y, rng):
            seen.append(y.copy())
            return super().__call__(mrf, x, y, rng)

    tf.t_ils(mrf, inner_iter=None, trees=trees, accept=Seen(), jump=UniformJump(1), maxiter=8, rng=0)
    assert len(seen) == 8
    for y in seen:
        assert tf.t_icm(mrf, y, trees=trees).fun == pytest.approx(mrf.energy(y), rel=1e-9)


def test_t_ils_leaves_the_moves_of_the_caller_unchanged(mrf):
    jump, accept = MixedJump(), Metropolis()
    runs = [tf.t_ils(mrf, jump=jump, accept=accept, maxiter=20, rng=0) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].trace["energy"], runs[1].trace["energy"])
    assert accept.beta == 1 and jump.get_state() == MixedJump().get_state()


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (4, 5, 6)], ids=str)
@pytest.mark.parametrize("moves", ["the paper's", "mixed, per component"])
def test_t_ils_searches_grids_of_every_kind(shape, moves):
    mrf = tf.GridMRF(np.random.default_rng(0).random((*shape, 4), dtype=np.float32), tf.Potts(0.4))
    res = tf.t_ils(mrf, maxiter=30, rng=0, **MOVES[moves])
    check_result(mrf, res)
    if max(shape) == np.prod(shape):
        assert res.fun == pytest.approx(tf.tree_bp(mrf).fun)


# --- limits ---------------------------------------------------------------------------------------------------------


def test_maxiter_counts_jumps(mrf):
    res = tf.t_ils(mrf, maxiter=0, rng=0)
    check_result(mrf, res)
    assert res.nit == 0 and res.status == 1 and len(res.trace) == 2
    x = np.random.default_rng(0).integers(4, size=mrf.shape, dtype=np.int32)
    mrf.backend.tree_set("rows-columns").sweep(x)
    np.testing.assert_array_equal(res.x, x)


def test_patience_counts_iterations_without_a_new_best(mrf):
    res = tf.t_ils(mrf, patience=6, rng=0)
    check_result(mrf, res)
    assert res.status == 0 and res.success and "patience = 6" in res.message
    gains = np.flatnonzero(np.diff(res.trace["best"][1:]) < -1e-6) + 1  # what is less is rounding
    assert np.diff(np.r_[0, gains]).max() <= 6 and res.nit == gains.max() + 6 > 6


@pytest.mark.parametrize("limit", [1, 7])
def test_max_backtracks_counts_all_backtracks(mrf, limit):
    refused = []

    class Counted(Greedy):
        def __call__(self, mrf, x, y, rng):
            change = super().__call__(mrf, x, y, rng)
            refused.append(change is None)
            return change

    res = tf.t_ils(mrf, accept=Counted(), max_backtracks=limit, jump=UniformJump(0.02), rng=0)
    check_result(mrf, res)
    assert res.status == tf.Status.LIMIT and f"max_backtracks = {limit}" in res.message
    assert sum(refused) == limit and refused[-1] and len(refused) == res.nit


def test_t_ils_with_no_time_makes_one_sweep(mrf):
    res = tf.t_ils(mrf, time_limit=0, inner_iter=None, rng=0)
    check_result(mrf, res)
    assert res.nit == 0 and res.status == tf.Status.LIMIT and "time_limit" in res.message
    np.testing.assert_array_equal(res.x, tf.t_ils(mrf, maxiter=0, inner_iter=1, rng=0).x)


def test_t_ils_stops_at_the_first_limit_reached(mrf):
    assert tf.t_ils(mrf, maxiter=3, patience=100, max_backtracks=100, time_limit=1e6, rng=0).nit == 3
    res = tf.t_ils(mrf, maxiter=1000, max_backtracks=2, beta=np.inf, rng=0)
    assert res.status == tf.Status.LIMIT and "max_backtracks" in res.message and res.nit < 1000


def test_the_callback_of_t_ils_sees_the_first_minimum_and_every_jump_and_can_stop(mrf):
    seen = []

    def callback(intermediate_result):
        check_result(mrf, intermediate_result)
        seen.append((intermediate_result.nit, intermediate_result.fun))
        intermediate_result.x[:] = 0  # its copy is its own
        if intermediate_result.nit == 5:
            raise StopIteration

    res = tf.t_ils(mrf, maxiter=50, rng=0, callback=callback)
    check_result(mrf, res)
    assert [nit for nit, _ in seen] == list(range(6)) and seen[-1][1] == res.fun
    assert res.nit == 5 and res.status == tf.Status.STOPPED and "callback" in res.message
    np.testing.assert_array_equal(res.x, tf.t_ils(mrf, maxiter=5, rng=0).x)


def test_t_ils_passes_on_an_error_of_the_callback(mrf):
    def callback(intermediate_result):
        raise ZeroDivisionError("mine")

    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    for restarts in (1, 3):
        with pytest.raises(ZeroDivisionError, match="mine"):
            tf.t_ils(mrf, maxiter=3, rng=0, callback=callback, restarts=restarts)
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))


# --- seeds, threads and restarts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", MOVES)
def test_t_ils_with_the_same_seed_gives_the_same_answer(mrf, moves):
    first, second = (tf.t_ils(mrf, maxiter=15, rng=rng, **MOVES[moves]) for rng in (7, np.random.default_rng(7)))
    np.testing.assert_array_equal(first.trace["energy"], second.trace["energy"])
    np.testing.assert_array_equal(first.x, second.x)
    assert tf.t_ils(mrf, maxiter=15, rng=8, **MOVES[moves]).trace["energy"].tolist() != first.trace["energy"].tolist()


@pytest.mark.parametrize("moves", ["the paper's", "mixed, per component"])
def test_t_ils_does_not_depend_on_the_number_of_threads(moves):
    # large enough to be worth threads
    mrf = tf.GridMRF(np.random.default_rng(0).random((240, 240, 4), dtype=np.float32), tf.Potts(0.4))
    first, second = (tf.t_ils(mrf, maxiter=4, rng=0, threads=threads, **MOVES[moves]) for threads in (1, 2))
    np.testing.assert_array_equal(first.trace["energy"], second.trace["energy"])
    np.testing.assert_array_equal(first.x, second.x)


@pytest.mark.parametrize("moves", ["the paper's", "mixed, per component"])
def test_restarts_merge_independent_searches(mrf, moves):
    options = {"maxiter": 15, **MOVES[moves]}
    runs = [tf.t_ils(mrf, restarts=3, workers=workers, rng=5, **options) for workers in (1, 2)]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    singles = [tf.t_ils(mrf, rng=rng, **options) for rng in np.random.default_rng(5).spawn(3)]
    merged = tf.merge(mrf, tf.merge(mrf, singles[0].x, singles[1].x), singles[2].x)
    for res in runs:
        assert res.fun == mrf.energy(res.x) == runs[0].fun
        assert res.fun <= min(single.fun for single in singles) * (1 + 1e-12)
        assert res.fun <= mrf.energy(merged) * (1 + 1e-12)
        assert res.nit == 45 and res.status == tf.Status.LIMIT
        assert np.all(res.trace["energy"] >= res.fun) and np.all(np.diff(res.trace["best"]) <= 0)
        assert res.trace["best"][-1] == res.fun and np.all(np.diff(res.trace["seconds"]) >= 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_callback_stops_all_restarts(mrf, workers):
    calls = []

    def callback(intermediate_result):
        calls.append(intermediate_result.nit)
        if len(calls) >= 10:
            raise StopIteration

    res = tf.t_ils(mrf, restarts=4, workers=workers, maxiter=1000, callback=callback, rng=0)
    assert res.fun == mrf.energy(res.x) and res.nit < 100
    assert "callback" in res.message and res.status == tf.Status.STOPPED


# --- what came up in long and odd runs ------------------------------------------------------------------------------


def test_local_searches_do_not_go_on_for_ever_between_labellings_of_equal_energy():
    r = np.random.default_rng(417)
    labels, shape = int(r.integers(2, 5)), (int(r.integers(4, 40)), int(r.integers(4, 40)))
    unary = np.round(r.random((*shape, labels)) * r.choice([2, 3, 5, 10])) / 10.0 * r.choice([1, 1 / 3, 0.7])
    mrf = tf.GridMRF(unary, tf.Potts(0.1))  # costs in tenths, whose sums are rounded
    assert tf.t_ils(mrf, inner_iter=None, maxiter=3, time_limit=60, rng=417).nit == 3


def test_restarts_with_forbidden_costs_are_judged_after_merging():
    unary = np.random.default_rng(0).random((2, 3, 2))
    unary[0, 0] = np.inf, 0.0
    mrf = tf.GridMRF(unary, tf.Potts(0.1))
    none = lambda x, mrf, rng: x.copy()  # noqa: E731
    res = tf.t_ils(mrf, jump=none, restarts=4, maxiter=2, rng=0)
    assert np.isfinite(res.fun) and res.status == tf.Status.LIMIT


@pytest.mark.parametrize("jump", [BoxJump("random"), SegmentJump("shift")], ids=repr)
def test_moves_refuse_bad_labellings(mrf, jump):
    rng = np.random.default_rng(0)
    for bad in (np.zeros((2, 2), np.int32), np.full(mrf.shape, 10**8, np.int32), np.zeros(mrf.shape)):
        with pytest.raises(ValueError, match=r"x must be a C-contiguous int32 array|x holds labels"):
            jump(bad, mrf, rng)
        with pytest.raises(ValueError, match=r"y must be a C-contiguous int32 array|y holds labels"):
            PerComponent()(mrf, np.zeros(mrf.shape, np.int32), bad, rng)


def test_an_acceptance_that_leaves_bad_labels_is_an_error():
    def accept(mrf, x, y, rng):
        x[0, 0] = 99
        return 0.0

    mrf = tf.GridMRF(np.zeros((4, 4, 2)), tf.Potts(1))
    with pytest.raises(ValueError, match="what accept left in x holds labels from 0 to 99"):
        tf.t_ils(mrf, accept=accept, maxiter=3, rng=0)

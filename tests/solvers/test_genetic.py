"""Genetic search over local minima of T-ICM."""

import os
import signal

import numpy as np
import pytest

import treefield as tf
from treefield.moves import BoxJump, MixedJump, UniformJump

CROSSOVERS = ("merge", "site")


@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_genetic_never_loses_the_best_individual(mrf, crossover):
    res = tf.genetic(mrf, population=6, crossover=crossover, maxiter=15, rng=0)
    trace = res.trace
    assert res.method == "genetic" and res.nit == 15 and res.status == tf.Status.LIMIT
    assert res.x.dtype == np.int32 and res.x.shape == mrf.shape
    assert res.fun == mrf.energy(res.x) == trace["energy"][-1] == trace["best"][-1]
    assert np.all(np.diff(trace["energy"]) <= 0) and res.fun < trace["energy"][1] < trace["energy"][0]
    assert trace["iteration"].tolist() == [0, 0, *range(1, 16)]


@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_genetic_beats_its_first_individuals_run_to_their_minima(mrf, crossover):
    res = tf.genetic(mrf, population=8, crossover=crossover, maxiter=40, rng=0)
    assert res.fun < min(tf.t_icm(mrf, rng=seed).fun for seed in range(8))


@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_genetic_with_the_same_seed_gives_the_same_answer(mrf, crossover):
    runs = [
        tf.genetic(mrf, population=4, crossover=crossover, maxiter=6, rng=rng) for rng in (3, np.random.default_rng(3))
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    np.testing.assert_array_equal(runs[0].trace["energy"], runs[1].trace["energy"])
    assert tf.genetic(mrf, population=4, crossover=crossover, maxiter=6, rng=4).fun != runs[0].fun


@pytest.mark.parametrize("crossover", CROSSOVERS)
@pytest.mark.parametrize("mutation", [BoxJump(size=(2, 5)), UniformJump(1)], ids=repr)
def test_any_jump_is_a_mutation(mrf, crossover, mutation):
    res = tf.genetic(mrf, population=4, crossover=crossover, mutation=mutation, maxiter=10, rng=0)
    assert res.fun == mrf.energy(res.x) < res.trace["energy"][1]


def test_children_without_mutation_are_made_of_their_parents(mrf):
    def none(x, mrf, rng):
        return x.copy()

    x0 = np.random.default_rng(1).integers(4, size=mrf.shape)
    res = tf.genetic(mrf, x0, mutation=none, population=4, inner_iter=1, maxiter=0, rng=0)
    x = x0.astype(np.int32)
    mrf.backend.tree_set().sweep(x)
    np.testing.assert_array_equal(res.x, x)  # all four individuals are the start, swept


def test_a_mixture_as_mutation_uses_all_of_its_jumps(mrf):
    used = set()

    def named(name):
        def jump(x, mrf, rng):
            used.add(name)
            return UniformJump()(x, mrf, rng)

        return jump

    tf.genetic(mrf, mutation=MixedJump([named("first"), named("second")]), population=4, maxiter=10, rng=0)
    assert used == {"first", "second"}


@pytest.mark.parametrize("x0", ["unary", "scan-line", np.zeros((20, 24), int)], ids=["unary", "scan-line", "given"])
def test_genetic_takes_the_start_as_the_first_individual(mrf, x0):
    res = tf.genetic(mrf, x0, population=3, maxiter=0, rng=0)
    start = tf.t_icm(mrf, x0, maxiter=0)
    assert res.trace["energy"][0] == start.fun
    assert res.fun <= tf.t_icm(mrf, x0, maxiter=1).fun


def test_genetic_leaves_the_start_and_mutation_of_the_caller_unchanged(mrf):
    x0, mutation = np.zeros(mrf.shape, np.int32), MixedJump()
    tf.genetic(mrf, x0, mutation=mutation, population=3, maxiter=3, rng=0)
    assert not x0.any() and mutation.get_state() == MixedJump().get_state()


def test_the_callback_sees_the_first_population_and_every_generation_and_can_stop(mrf):
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun, mrf.energy(intermediate_result.x)))
        intermediate_result.x[:] = 0
        if intermediate_result.nit == 3:
            raise StopIteration

    res = tf.genetic(mrf, population=4, maxiter=20, rng=0, callback=callback)
    assert [nit for nit, _, _ in seen] == [0, 1, 2, 3] and all(fun == energy for _, fun, energy in seen)
    assert res.nit == 3 and res.status == tf.Status.STOPPED and not res.success
    np.testing.assert_array_equal(res.x, tf.genetic(mrf, population=4, maxiter=3, rng=0).x)


def test_genetic_stops_at_its_limits(mrf):
    res = tf.genetic(mrf, time_limit=0, rng=0)
    assert res.nit == 0 and res.status == 1 and res.fun == mrf.energy(res.x)
    res = tf.genetic(mrf, population=3, patience=4, rng=0)
    gains = np.flatnonzero(np.diff(res.trace["best"][1:]) < -1e-6) + 1
    assert res.status == 0 and res.nit == max(gains, default=0) + 4 and "patience = 4" in res.message


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_genetic_returns_the_best_so_far_after_a_signal(mrf, number):
    def callback(intermediate_result):
        if intermediate_result.nit == 2:
            os.kill(os.getpid(), number)

    res = tf.genetic(mrf, population=4, maxiter=50, rng=0, callback=callback)
    assert res.nit == 2 and res.status == 3 and not res.success and res.fun == mrf.energy(res.x)


@pytest.mark.parametrize("crossover", CROSSOVERS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 20), (20, 1), (3, 4, 5)], ids=str)
def test_genetic_searches_grids_of_every_kind(shape, crossover):
    mrf = tf.GridMRF(np.random.default_rng(0).random((*shape, 4), dtype=np.float32), tf.Potts(0.4))
    res = tf.genetic(mrf, population=4, crossover=crossover, maxiter=8, rng=0)
    assert res.fun == mrf.energy(res.x)
    if max(shape) == np.prod(shape):
        assert res.fun == pytest.approx(tf.tree_bp(mrf).fun)


@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_forbidden_labels_are_bred_out(crossover):
    rng = np.random.default_rng(0)
    unary = rng.random((10, 12, 4), dtype=np.float32)
    unary[rng.random(unary.shape) < 0.3] = np.inf
    unary[..., 1] = 1
    res = tf.genetic(tf.GridMRF(unary, tf.Potts(0.4)), population=4, crossover=crossover, maxiter=5, rng=0)
    assert np.isfinite(res.fun) and res.status == tf.Status.LIMIT

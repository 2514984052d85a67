"""Simulated annealing: its schedules, its limits, and what it finds. The sampler itself is in tests/trees."""

import math

import numpy as np
import pytest

import naive
import treefield as tf
from strategies import random_case


class Recorded:
    """A checkerboard that tells at which temperatures it was sampled."""

    def __init__(self, mrf):
        self._board, self.temperatures = mrf.backend.sampler(), []

    def sample(self, x, temperature, rng):
        self.temperatures.append(temperature)
        return self._board.sample(x, temperature, rng)


@pytest.fixture
def recorded(mrf, monkeypatch):
    board = Recorded(mrf)
    monkeypatch.setattr(mrf.backend, "sampler", lambda: board)
    return board


def test_annealing_finds_the_minimum_of_small_models():
    for seed in range(5):
        case = random_case(seed, "table", (3, 3), 3, "float64")
        best, _ = naive.brute_force(case.unary, case.tables)
        found = min(tf.anneal(case.mrf(), maxiter=300, rng=seed).fun for seed in range(3))
        assert found == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_anneal_returns_the_best_labelling_and_its_trace(mrf):
    res = tf.anneal(mrf, temperatures=(5.0, 5.0), maxiter=50, rng=0)  # so hot that the last is not the best
    assert res.fun == mrf.energy(res.x) == res.trace["best"][-1]
    assert res.fun == pytest.approx(res.trace["energy"].min(), rel=1e-12)
    assert res.trace["energy"][-1] > res.fun
    assert list(res.trace["iteration"]) == list(range(51)) and res.nit == 50 and res.status == 1
    assert np.all(np.diff(res.trace["best"]) <= 0)


def test_anneal_ends_lower_than_icm(mrf):
    assert tf.anneal(mrf, maxiter=200, rng=0).fun < tf.icm(mrf, rng=0).fun
    assert tf.anneal(mrf, schedule="log", maxiter=200, rng=0).fun < tf.icm(mrf, rng=0).fun


def test_the_geometric_schedule_falls_by_equal_factors_over_the_sweeps(mrf, recorded):
    tf.anneal(mrf, temperatures=(8.0, 0.5), maxiter=4, rng=0)
    np.testing.assert_allclose(recorded.temperatures, [8, 4, 2, 1])


def test_the_log_schedule_is_geman_and_gemans_and_ends_at_the_cold_temperature(mrf, recorded):
    tf.anneal(mrf, schedule="log", temperatures=(8.0, 3.0), maxiter=8, rng=0)
    np.testing.assert_allclose(recorded.temperatures, [max(3, 8 / math.log2(2 + k)) for k in range(8)])


def test_without_maxiter_the_schedule_of_anneal_goes_by_time(mrf, recorded):
    tf.anneal(mrf, temperatures=(8.0, 0.5), time_limit=0.2, rng=0)
    assert recorded.temperatures == sorted(recorded.temperatures, reverse=True)
    assert recorded.temperatures[0] > 7 and recorded.temperatures[-1] < 2


def test_the_default_temperatures_of_anneal_scale_with_the_costs(mrf):
    scaled = tf.GridMRF(mrf.unary * np.float32(1024), tf.Potts(0.4 * 1024))
    np.testing.assert_array_equal(tf.anneal(mrf, maxiter=30, rng=0).x, tf.anneal(scaled, maxiter=30, rng=0).x)
    free = tf.GridMRF(np.zeros((4, 5, 3)), tf.Potts(0))  # nothing costs anything
    assert tf.anneal(free, maxiter=3, rng=0).fun == 0


def test_anneal_with_the_same_seed_gives_the_same_answer(mrf):
    first, again, other = (tf.anneal(mrf, maxiter=20, rng=seed).x for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_a_stopped_geometric_anneal_resumes_to_the_same_end(mrf, tmp_path):
    calls = []

    def stop(intermediate_result):
        calls.append(intermediate_result.nit)
        if len(calls) == 7:
            raise StopIteration

    path = tmp_path / "annealing"
    whole = tf.anneal(mrf, maxiter=20, rng=0)
    assert tf.anneal(mrf, maxiter=20, rng=0, checkpoint=path, callback=stop).nit == 7
    resumed = tf.anneal(mrf, maxiter=20, checkpoint=path)
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.trace["energy"], whole.trace["energy"])
    with pytest.raises(ValueError, match="sweeps=20, this search has sweeps=40"):  # another schedule
        tf.anneal(mrf, maxiter=40, checkpoint=path)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"schedule": "linear"}, ValueError, "schedule must be one of 'geometric', 'log', got 'linear'"),
        ({"temperatures": 3}, ValueError, "temperatures must be two numbers, hot and cold, got 3"),
        ({"temperatures": (1, 2)}, ValueError, "temperatures must be above 0 and must not rise, got 1 and 2"),
        ({"temperatures": (1, 0)}, ValueError, "above 0"),
        ({"temperatures": (np.inf, 1)}, ValueError, "finite"),
        ({"temperatures": ("1", 1)}, TypeError, "must be a number"),
        ({"maxiter": -1}, ValueError, "maxiter must be at least 0, got -1"),
        ({"patience": 0}, ValueError, "patience must be at least 1, got 0"),
        ({"x0": "best"}, ValueError, "x0 must be one of"),
    ],
)
def test_anneal_refuses_bad_input(mrf, keywords, error, message):
    with pytest.raises(error, match=message):
        tf.anneal(mrf, **keywords)

"""Search tile by tile: never worse than before, as good as whole, and stopped at any moment."""

import errno
import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings

import treefield as tf
from small import check_raises
from tiled_models import both, cases, random_labels
from treefield.backends.grid.backend import GridBackend

SEARCHES = {
    "auto": lambda mrf, **given: tf.minimize(mrf, maxiter=3, **given),
    "t_icm": tf.t_icm,
    "t_ils": lambda mrf, **given: tf.t_ils(mrf, maxiter=5, **given),
}


def noisy(shape, seed=0, **options):
    """Two labels, stripes and noise."""
    rng = np.random.default_rng(seed)
    image = rng.normal(np.indices(shape).sum(axis=0) // 9 % 2, 0.6)
    unary = np.stack([image**2, (image - 1) ** 2], axis=-1)
    return tf.TiledMRF(unary, tf.Potts(0.5), **options), tf.GridMRF(unary, tf.Potts(0.5))


def check_tiled(mrf, res):
    """Fail unless a tiled result is consistent."""
    assert res.x.shape == mrf.shape and res.x.dtype == np.uint8 and res.x.max() < mrf.n_labels
    assert res.fun == mrf.energy(res.x) == res.trace["energy"][-1] == res.trace["best"][-1]
    energies = res.trace["energy"]
    assert np.all(energies[1:] <= energies[:-1]) and np.all(np.diff(res.trace["seconds"]) >= 0)
    assert not res.lower_bound > res.fun


@settings(max_examples=25)
@given(cases())
def test_tiled_energies_are_exact_and_never_rise(case):
    tiled, whole = both(*case)
    x0 = random_labels(whole)
    for name, search in SEARCHES.items():
        res = search(tiled, x0=x0, rng=0)
        check_tiled(tiled, res)
        assert res.fun == whole.energy(res.x.astype(np.int32)) and res.fun <= whole.energy(x0), name
        np.testing.assert_array_equal(x0, random_labels(whole))


@settings(max_examples=25)
@given(cases())
def test_the_tiled_bound_is_never_above_the_least_energy(case):
    tiled, whole = both(*case)
    res, best = tf.minimize(tiled, rng=0, maxiter=20), tf.minimize(whole, rng=0, tol=0, maxiter=40)
    check_tiled(tiled, res)
    assert res.lower_bound <= best.fun <= res.fun or np.isnan(res.lower_bound)


@pytest.mark.parametrize("name", SEARCHES)
def test_tiled_searches_with_one_seed_give_the_same_answer(name):
    tiled, _ = noisy((40, 50), tile=16)
    first, second, other = (SEARCHES[name](tiled, rng=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.x, second.x)
    assert name == "auto" or not np.array_equal(first.x, other.x)


def test_t_icm_is_as_good_in_tiles_as_whole():
    tiled, whole = noisy((256, 256), tile=64)
    x0 = random_labels(whole)
    res, best = tf.t_icm(tiled, x0), tf.t_icm(whole, x0)
    assert res.message == "converged: no tile lowers the energy any more" and res.nit >= 3
    assert res.fun <= best.fun * 1.001
    again = tf.t_icm(tiled, res.x)
    np.testing.assert_array_equal(again.x, res.x)


def test_minimize_is_as_good_in_tiles_as_whole():
    tiled, whole = noisy((256, 256), tile=64)
    res, best = tf.minimize(tiled, rng=0), tf.minimize(whole, rng=0)
    assert res.fun <= best.fun * 1.001 and 0 <= res.gap < 0.03


def test_a_search_with_one_tile_is_as_good_as_the_whole_grid():
    tiled, whole = noisy((30, 31))
    assert tiled.tiles == [(slice(0, 30), slice(0, 31))]
    assert tf.minimize(tiled, rng=0).fun == pytest.approx(tf.minimize(whole, rng=0).fun, rel=1e-3)


def test_maxiter_limits_the_rounds_of_a_tiled_search():
    tiled, whole = noisy((64, 64), tile=16)
    res = tf.t_icm(tiled, random_labels(whole), maxiter=1)
    assert res.nit == 1 and res.message == "maxiter = 1 reached" and len(res.trace) == 2


@pytest.mark.parametrize("x0", ["unary", "random"])
def test_a_tiled_search_without_rounds_returns_its_start(x0):
    tiled, whole = noisy((20, 20), tile=8)
    res = tf.t_icm(tiled, x0, rng=0, maxiter=0)
    assert res.status == 1 and res.nit == 0
    assert x0 == "random" or np.array_equal(res.x, whole.backend.best_labels())


@pytest.mark.parametrize("name", SEARCHES)
def test_a_tiled_search_with_no_time_returns_an_answer(name):
    tiled, whole = noisy((40, 50), tile=16)
    res = SEARCHES[name](tiled, time_limit=0, rng=0)
    check_tiled(tiled, res)
    assert res.status == 1 and res.message == "time_limit = 0 s reached"
    if name == "auto":
        assert res.fun < whole.energy(whole.backend.best_labels())  # every tile is swept once
        assert res.lower_bound == -np.inf


@pytest.mark.parametrize("name", SEARCHES)
def test_the_callback_sees_every_round_of_a_tiled_search_and_can_stop(name):
    tiled, _ = noisy((40, 50), tile=16)
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result.fun)
        if len(seen) == 2:
            raise StopIteration

    res = SEARCHES[name](tiled, callback=callback, rng=0)
    check_tiled(tiled, res)
    assert len(seen) == 2 and res.status == 2 and seen[1] == pytest.approx(res.fun)


@pytest.mark.parametrize("name", SEARCHES)
def test_ctrl_c_in_a_tile_returns_a_complete_labelling(name):
    _, whole = noisy((40, 50))
    asked = []

    def costs(box):
        asked.append(box)
        if len(asked) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return whole.unary[box]

    tiled = tf.TiledMRF(costs, tf.Potts(0.5), shape=(40, 50), n_labels=2, tile=10)
    res = SEARCHES[name](tiled, rng=0)
    check_tiled(tiled, res)
    assert res.status == 3 and not res.success and res.message == "interrupted; the labelling is the best so far"


def test_ctrl_c_between_tiles_returns_a_complete_labelling(monkeypatch):
    tiled, _ = noisy((40, 50), tile=10)
    asked, summed = [], GridBackend.energy_parts

    def energy_parts(backend, x):
        asked.append(x)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return summed(backend, x)

    monkeypatch.setattr(GridBackend, "energy_parts", energy_parts)
    res = tf.minimize(tiled, rng=0)
    monkeypatch.undo()
    check_tiled(tiled, res)
    assert res.status == 3


def test_a_tiled_search_reports_that_its_tiles_were_limited(no_elimination):
    tiled, _ = noisy((40, 50), tile=16)
    for res in (tf.minimize(tiled, rng=0, maxiter=0), tf.t_ils(tiled, rng=0, maxiter=5)):
        assert res.status == tf.Status.LIMIT and "maxiter" in res.message
    assert tf.minimize(tiled, rng=0).status == 0


def test_the_progress_bar_counts_tiles(capsys):
    tiled, _ = noisy((20, 20), tile=10)
    tf.t_icm(tiled, rng=0, progress=True)
    assert "t_icm, tiles" in capsys.readouterr().err


def test_minimize_by_name_equals_the_method_on_a_tiled_model():
    tiled, _ = noisy((40, 50), tile=16)
    np.testing.assert_array_equal(tf.minimize(tiled, "random", method="t_icm", rng=0).x, tf.t_icm(tiled, rng=0).x)


REFUSED = {
    "anneal": (lambda mrf: tf.anneal(mrf, maxiter=1), TypeError, "searched by minimize, t_icm and t_ils"),
    "trw": (lambda mrf: tf.minimize(mrf, method="trw"), TypeError, "searched by minimize, t_icm and t_ils"),
    "merge": (lambda mrf: tf.merge(mrf, [[0]], [[0]]), TypeError, "searched by minimize, t_icm and t_ils"),
    "scan-line": (lambda mrf: tf.t_icm(mrf, "scan-line"), ValueError, "x0 of a TiledMRF must be one of"),
    "another shape": (lambda mrf: tf.t_icm(mrf, np.zeros((2, 2), int)), ValueError, r"shape \(2, 2\)"),
    "other labels": (lambda mrf: tf.t_icm(mrf, np.full((9, 9), 2)), ValueError, "expected 0 to 1"),
    "memory": (lambda mrf: tf.minimize(mrf, memory_limit="1 GB"), ValueError, "a TiledMRF has its own memory_limit"),
    "trees": (lambda mrf: tf.t_icm(mrf, trees="forests"), ValueError, "trees must be"),
    "checkpoint": (lambda mrf: tf.t_ils(mrf, checkpoint="file"), ValueError, "go with models in memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_tiled_models_do_not_support_are_refused(name):
    call, error, message = REFUSED[name]
    check_raises(lambda: call(noisy((9, 9))[0]), error, message)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_last_energy_is_summed_loses_nothing(tmp_path, name, number):
    asked = []

    class Watched(tf.TiledMRF):
        def costs(self, box):
            asked.append(box)
            if len(asked) == last:
                os.kill(os.getpid(), number)
            return super().costs(box)

    def model(file):
        return Watched(noisy((40, 50))[1].unary, tf.Potts(0.5), tile=25, store=tmp_path / file)

    last = 0
    whole = SEARCHES[name](model("whole.npy"), rng=0)
    last, asked[:] = len(asked), []
    res = SEARCHES[name](model("labels.npy"), rng=0)
    assert res.status == 3 and ("SIGTERM" in res.message) == (number == signal.SIGTERM)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), whole.x)


class FullStore:
    """An array on a disk that is full after some boxes."""

    dtype = np.dtype(np.uint8)

    def __init__(self, shape, room):
        self.labels, self.shape, self._room = np.zeros(shape, np.uint8), shape, room

    def __getitem__(self, box):
        return self.labels[box]

    def __setitem__(self, box, values):
        self._room -= 1
        if self._room < 0:
            raise OSError(errno.ENOSPC, "No space left on device", "chunk")
        self.labels[box] = values


@pytest.mark.parametrize("name", SEARCHES)
def test_a_full_disk_under_a_store_is_an_error_that_leaves_its_labels(name):
    tiled, whole = noisy((40, 50), tile=10, store=FullStore((40, 50), 12))
    with pytest.raises(OSError, match=r"^could not write labels to the store: No space left on device$") as raised:
        SEARCHES[name](tiled, x0=whole.backend.best_labels(), rng=0)
    assert raised.value.errno == errno.ENOSPC
    first = tiled.tiles[0]
    np.testing.assert_array_equal(tiled.store.labels[first], whole.backend.best_labels()[first])

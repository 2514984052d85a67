"""Dask on a cluster of processes, whose workers die; many seeds, merged."""

import functools
import os
import pathlib
import pickle
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import treefield as tf
import treefield.dask as tfd
from dask_grids import (
    IMAGE,
    LABELS,
    MRF,
    SHAPE,
    UNARY,
    WEIGHTS,
    check_same,
    level_costs,
    noted_costs,
    serial,
)
from treefield import moves

pytestmark = pytest.mark.usefixtures("no_hang")


@pytest.fixture(scope="module")
def client():
    local = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with local as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def test_cluster_has_the_serial_answer_and_writes_it_to_zarr(client, tmp_path):
    costs = zarr.create_array(store=str(tmp_path / "unary.zarr"), shape=UNARY.shape, chunks=(14, 20, 4), dtype="f8")
    costs[:] = UNARY
    lazy = tfd.minimize(
        tf.TiledMRF(da.from_zarr(costs), tf.Potts(3), weights=WEIGHTS), rng=3, maxiter=3, full_output=True
    )
    mrf, res = serial(tf.TiledMRF(UNARY, tf.Potts(3), weights=WEIGHTS, tile=(14, 20)), maxiter=3)
    check_same(tfd.Labelling(*client.gather(client.compute(list(lazy)))), mrf, res)
    labels = zarr.create_array(store=str(tmp_path / "x.zarr"), shape=SHAPE, chunks=lazy.x.chunksize, dtype="u1")
    with client.as_current():
        da.store(lazy.x.rechunk(labels.chunks), labels, lock=False)
    np.testing.assert_array_equal(labels[:], res.x)


def kill_workers(client, folder, after, number=1):
    """Kill some workers as soon as there are `after` files; returns the thread that does, and their processes."""
    client.wait_for_workers(2)
    pids = list(client.run(os.getpid).values())[:number]

    def kill():
        while len(list(folder.iterdir())) < after:
            time.sleep(0.01)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread, pids


@pytest.mark.parametrize("method", ["auto", "t_icm"])
def test_killed_worker_does_not_change_the_answer(client, tmp_path, method):
    costs = functools.partial(noted_costs, str(tmp_path))
    options = {"method": method, "maxiter": 3}
    mrf = tf.TiledMRF(da.from_array(IMAGE, chunks=20), tf.Potts(3), costs=costs, n_labels=LABELS)
    lazy = tfd.minimize(mrf, rng=3, full_output=True, **options)
    killer, (pid,) = kill_workers(client, tmp_path, 5)
    found = tfd.Labelling(*client.gather(client.compute(list(lazy))))
    killer.join(timeout=10)
    assert not killer.is_alive() and pid not in client.run(os.getpid).values()
    check_same(found, *serial(tf.TiledMRF(level_costs(IMAGE), tf.Potts(3), tile=20), **options))


class NotedJump(moves.UniformJump):
    """A slow jump; each leaves a file."""

    def __init__(self, folder):
        super().__init__(0.1)
        self.folder = str(folder)

    def __call__(self, x, mrf, rng):
        (pathlib.Path(self.folder) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        time.sleep(0.02)
        return super().__call__(x, mrf, rng)


def check_merged(mrf, res, seeds):
    assert res.fun == mrf.energy(res.x) <= min(res.runs) and len(res.runs) == seeds
    assert res.message.startswith(f"{seeds} searches: best {min(res.runs):.10g}, merged {res.fun:.10g}")
    assert len(res.trace) == seeds + 1 and res.trace["best"][-1] == res.fun
    assert res.trace["energy"][:-1].tolist() == list(res.runs)
    assert np.all(np.diff(res.trace["best"]) <= 0) and np.all(np.diff(res.trace["seconds"]) >= 0)


def test_search_on_a_cluster_equals_search_on_this_machine(client, capsys):
    client.wait_for_workers(2)
    here = tfd.search(MRF, seeds=5, maxiter=10, rng=0)
    there = tfd.search(MRF, seeds=5, maxiter=10, rng=0, client=client, progress=True)
    check_merged(MRF, here, 5)
    check_merged(MRF, there, 5)
    np.testing.assert_array_equal(here.x, there.x)
    assert here.runs.tolist() == there.runs.tolist() and here.fun < min(here.runs)
    assert "5/5" in capsys.readouterr().err
    alone = [tf.t_ils(MRF, maxiter=10, rng=child).fun for child in np.random.default_rng(0).spawn(5)]
    assert here.runs.tolist() == alone


def test_search_uses_the_current_client(client):
    with client.as_current():
        res = tfd.search(MRF, seeds=2, maxiter=10, rng=0)
        names = set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes)))
    check_merged(MRF, res, 2)
    assert {"treefield-search", "treefield-merge", "treefield-tile", "treefield-border"} <= names


@pytest.mark.parametrize("number", [1, 2])
def test_search_survives_killed_workers(client, tmp_path, number):
    expected = tfd.search(MRF, seeds=4, maxiter=20, rng=0)
    killer, _ = kill_workers(client, tmp_path, 10, number)
    res = tfd.search(MRF, seeds=4, maxiter=20, rng=0, jump=NotedJump(tmp_path), client=client)
    killer.join(timeout=10)
    assert not killer.is_alive()
    np.testing.assert_array_equal(res.x, expected.x)
    assert res.runs.tolist() == expected.runs.tolist()


@pytest.mark.parametrize("seeds", [1, 2, 3, 7])
def test_merged_search_is_no_worse_than_the_best_seed(seeds):
    mrf = MRF.to_graph()
    check_merged(mrf, tfd.search(mrf, seeds=seeds, maxiter=4, rng=1), seeds)


def test_search_with_a_method_that_bounds_has_a_bound(capsys):
    res = tfd.search(MRF, seeds=2, method="auto", maxiter=4, rng=1, progress=True)
    check_merged(MRF, res, 2)
    assert 0 <= res.gap < 0.1 and "2/2" in capsys.readouterr().err


MODELS = {
    "grid": MRF,
    "weighted": tf.GridMRF(UNARY, tf.TruncatedLinear(1, 2), weights=WEIGHTS),
    "periodic": tf.GridMRF(UNARY[:8, :8], tf.Potts(1), periodic=True, connectivity=2),
    "edge tables": tf.GridMRF(
        np.zeros((3, 4, 2)), tf.EdgeTables([np.random.default_rng(0).random(s) for s in ((2, 4, 2, 2), (3, 3, 2, 2))])
    ),
    "graph": tf.GridMRF(UNARY[:8, :8], tf.TruncatedQuadratic(1, 4)).to_graph(),
    "several label counts": tf.GraphMRF([[0, 1], [2, 0, 1]], [(0, 1)], [np.arange(6).reshape(2, 3)]),
    "tiled": tf.TiledMRF(UNARY, tf.Table(np.arange(16).reshape(4, 4)), tile=20),
    "tiled function": tf.TiledMRF(level_costs, tf.Potts(1), shape=SHAPE, n_labels=LABELS, tile=20),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_can_be_pickled_after_a_search(name):
    mrf = MODELS[name]
    if name == "tiled function":
        assert repr(pickle.loads(pickle.dumps(mrf))) == repr(mrf)
        return
    before = tf.minimize(mrf, method="t_icm", maxiter=2, rng=0)
    again = tf.minimize(pickle.loads(pickle.dumps(mrf)), method="t_icm", maxiter=2, rng=0)
    np.testing.assert_array_equal(again.x, before.x)
    assert again.fun == before.fun and repr(pickle.loads(pickle.dumps(before))) != ""


JUMPS = [moves.UniformJump(), moves.BetaJump(), moves.LevyJump(), moves.MessageJump(), moves.BoxJump("best")]
JUMPS += [moves.SegmentJump("shift"), moves.MixedJump(), moves.BallJump(), moves.HeatJump()]
ACCEPTANCES = [moves.Metropolis(), moves.Greedy(), moves.PerComponent(), moves.Unvisited(moves.PerComponent())]


@pytest.mark.parametrize(
    "keywords",
    [*({"jump": jump} for jump in JUMPS), *({"accept": accept} for accept in ACCEPTANCES)],
    ids=lambda keywords: type(next(iter(keywords.values()))).__name__,
)
def test_moves_can_be_pickled(keywords):
    mrf = MODELS["graph"] if isinstance(keywords.get("jump"), moves.BallJump | moves.HeatJump) else MODELS["weighted"]
    before = tf.t_ils(mrf, maxiter=3, rng=0, **keywords)
    again = tf.t_ils(mrf, maxiter=3, rng=0, **pickle.loads(pickle.dumps(keywords)))
    np.testing.assert_array_equal(again.x, before.x)

"""Dask: the tiled search as tasks finds what the serial one finds, on any scheduler and whatever dies; seeds merged."""

import functools
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import treefield as tf
import treefield.dask as tfd
from small import check_refused
from treefield import moves

SHAPE, LABELS = (41, 52), 4
RNG = np.random.default_rng(0)
UNARY = RNG.integers(0, 20, (*SHAPE, LABELS)).astype(np.float64)
IMAGE = RNG.integers(0, 32, SHAPE).astype(np.uint8)
WEIGHTS = (RNG.integers(-2, 5, (40, 52)).astype(float), RNG.integers(0, 5, (41, 51)).astype(float))
SEARCHES = {
    "auto": {"maxiter": 3},
    "auto from unary": {"maxiter": 3, "x0": "unary"},
    "t_ils": {"maxiter": 4},
    "t_icm": {"maxiter": 5},
}
LOCAL = {"scheduler": "synchronous"}


def level_costs(block):
    return np.abs(block[..., None] - 8.0 * np.arange(LABELS))


def noted_costs(folder, block):
    """The same, slowly; each call leaves a file."""
    (pathlib.Path(folder) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
    time.sleep(0.1)
    return level_costs(block)


def failing_costs(block):
    raise RuntimeError("costs were asked for")


def serial(unary, pairwise, x0=None, **keywords):
    model = {name: keywords.pop(name) for name in ("tile", "weights", "shape", "labels") if name in keywords}
    mrf = tf.TiledMRF(unary, pairwise, **model)
    return mrf, tf.minimize(mrf, x0, rng=3, **keywords)


def check_same(found, mrf, res):
    """A computed `Labelling` is the serial answer, and its energy that of its labels."""
    np.testing.assert_array_equal(found.x, res.x)
    assert found.x.dtype == res.x.dtype
    assert found.fun == pytest.approx(mrf.energy(found.x), rel=1e-12)
    np.testing.assert_allclose(found.lower_bound, res.lower_bound, rtol=1e-12)


@pytest.fixture(scope="module")
def client():
    local = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with local as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("weights", [None, WEIGHTS, (0.5, WEIGHTS[1])])
def test_labels_are_those_of_the_serial_search(name, weights):
    options = {"method": name.split()[0], "weights": weights, **SEARCHES[name]}
    given = dict(options, weights=weights and [da.from_array(w, chunks=17) if np.ndim(w) else w for w in weights])
    lazy = tfd.minimize(
        da.from_array(UNARY, chunks=(14, 20, 3)), tf.Potts(3), rng=3, tile=(14, 20), full_output=True, **given
    )
    mrf, res = serial(UNARY, tf.Potts(3), tile=(14, 20), **options)
    found = tfd.Labelling(*dask.compute(*lazy, **LOCAL))
    check_same(found, mrf, res)
    assert (
        found.fun == res.fun == pytest.approx(tf.GridMRF(UNARY, tf.Potts(3), weights=weights).energy(found.x), rel=1e-9)
    )
    assert np.isnan(found.lower_bound) == (name != "auto")


@pytest.mark.parametrize(
    "pairwise",
    [
        tf.Potts(2.5),
        tf.TruncatedLinear(2, 2),
        tf.Table(np.random.default_rng(1).random((4, 4)) * 5),
        lambda a, b: a * b,
    ],
    ids=["potts", "linear", "table", "function"],
)
def test_any_pairwise_costs(pairwise):
    lazy = tfd.minimize(da.from_array(UNARY, chunks=(21, 26, 4)), pairwise, rng=3, maxiter=3, full_output=True)
    check_same(tfd.Labelling(*dask.compute(*lazy, **LOCAL)), *serial(UNARY, pairwise, tile=(21, 26), maxiter=3))


@pytest.mark.parametrize("method", ["auto", "t_icm"])
def test_grids_of_three_axes(method):
    rng = np.random.default_rng(2)
    unary = rng.integers(0, 9, (9, 11, 10, 3))
    weights = [rng.integers(0, 4, shape) for shape in ((8, 11, 10), (9, 10, 10), (9, 11, 9))]
    options = {"method": method, "maxiter": 3, "weights": weights}
    lazy = tfd.minimize(unary, tf.Potts(2), rng=3, tile=(9, 5, 4), full_output=True, **options)
    check_same(tfd.Labelling(*dask.compute(*lazy, **LOCAL)), *serial(unary, tf.Potts(2), tile=(9, 5, 4), **options))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 22), st.integers(1, 22), st.integers(4, 9), st.integers(0, 7))
def test_rounds_of_t_icm_go_where_the_serial_ones_go(seed, height, width, tile, rounds):
    unary = np.random.default_rng(seed).integers(0, 4, (height, width, 3)).astype(np.uint8)
    options = {"method": "t_icm", "maxiter": rounds, "tile": (min(tile, height), min(tile + 1, width))}
    lazy = tfd.minimize(unary, tf.Potts(1), rng=3, full_output=True, **options)
    mrf, res = serial(unary, tf.Potts(1), **options)
    found = tfd.Labelling(*dask.compute(*lazy, **LOCAL))
    check_same(found, mrf, res)
    assert found.fun == mrf.energy(found.x)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_below_every_energy(seed):
    rng = np.random.default_rng(seed)
    unary, weights = rng.integers(-9, 9, (2, 8, 2)), (rng.integers(-3, 6, (1, 8)), rng.integers(-3, 6, (2, 7)))
    lazy = tfd.minimize(unary, tf.Potts(2), weights=weights, tile=4, rng=seed, full_output=True)
    _, fun, bound = dask.compute(*lazy, **LOCAL)
    least = naive.brute_force(unary, naive.explicit_tables((2, 8), 2 * naive.potts(2), weights))[0]
    assert bound <= least <= fun


def test_an_image_and_a_function_of_its_blocks():
    lazy = tfd.minimize(
        da.from_array(IMAGE, chunks=20),
        tf.Potts(3),
        costs=level_costs,
        labels=LABELS,
        rng=3,
        maxiter=3,
        full_output=True,
    )
    assert lazy.x.chunks == ((13, 14, 14), (17, 17, 18)) and lazy.x.dtype == np.uint8
    mrf, res = serial(lambda box: level_costs(IMAGE[box]), tf.Potts(3), shape=SHAPE, labels=LABELS, tile=20, maxiter=3)
    check_same(tfd.Labelling(*dask.compute(*lazy, **LOCAL)), mrf, res)


@pytest.mark.parametrize("kind", ["numpy", "memmap", "zarr"])
def test_arrays_that_are_not_of_dask(tmp_path, kind):
    unary = UNARY
    if kind == "memmap":
        np.save(tmp_path / "unary.npy", UNARY)
        unary = np.load(tmp_path / "unary.npy", mmap_mode="r")
    if kind == "zarr":
        unary = zarr.create_array(store=str(tmp_path / "unary.zarr"), data=UNARY, chunks=(20, 20, 2))
    lazy = tfd.minimize(unary, tf.Potts(3), tile=20, method="t_icm", maxiter=2, rng=3, full_output=True)
    options = {"tile": 20, "method": "t_icm", "maxiter": 2}
    check_same(tfd.Labelling(*dask.compute(*lazy, **LOCAL)), *serial(UNARY, tf.Potts(3), **options))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_a_start_is_an_array_of_labels(dtype):
    x0 = np.random.default_rng(5).integers(0, LABELS, SHAPE).astype(dtype)
    options = {"method": "t_icm", "maxiter": 2}
    lazy = tfd.minimize(
        UNARY, tf.Potts(3), x0=da.from_array(x0, chunks=11), tile=20, rng=3, full_output=True, **options
    )
    check_same(tfd.Labelling(*dask.compute(*lazy, **LOCAL)), *serial(UNARY, tf.Potts(3), x0, tile=20, **options))


def test_no_round_is_the_start():
    x0 = np.random.default_rng(5).integers(0, LABELS, SHAPE)
    x = tfd.minimize(UNARY, tf.Potts(3), x0=x0, tile=20, method="t_icm", maxiter=0)
    np.testing.assert_array_equal(x.compute(**LOCAL), x0)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_forbidden_costs_are_infinite_energy(scheduler):
    unary = np.random.default_rng(0).random((10, 12, 2))
    unary[:, 5:7] = np.inf
    unary[:, 5, 0] = unary[:, 6, 1] = 0
    forbidding = tf.Table([[0, 1], [np.inf, 0]])
    lazy = tfd.minimize(unary, forbidding, tile=6, rng=0, full_output=True)
    x, fun, _ = dask.compute(*lazy, scheduler=scheduler)
    assert fun == pytest.approx(tf.GridMRF(unary, forbidding).energy(x)) and np.isfinite(fun)
    assert tfd.energy(1 - x, unary, forbidding).compute(**LOCAL) == np.inf


def test_tiles_default_to_chunks_of_at_least_four_sites():
    x = tfd.minimize(da.zeros((9, 40, 30, 2), chunks=(1, 20, 30, 1)), tf.Potts(1))
    assert x.chunks == ((3, 3, 3), (20, 20), (30,))


def test_nothing_is_computed_before_it_is_asked_for():
    image = da.from_array(IMAGE, chunks=20)
    lazy = tfd.minimize(image, tf.Potts(3), costs=failing_costs, labels=LABELS, full_output=True)
    lazy_energy = tfd.energy(lazy.x, image, tf.Potts(3), costs=failing_costs)
    for value in (*lazy, lazy_energy):
        check_refused(lambda value=value: value.compute(**LOCAL), RuntimeError, "costs were asked for")


def test_labels_energy_and_bound_share_their_tasks(tmp_path):
    lazy = tfd.minimize(
        da.from_array(IMAGE, chunks=26),
        tf.Potts(3),
        costs=functools.partial(noted_costs, str(tmp_path)),
        labels=LABELS,
        rng=3,
        maxiter=1,
        full_output=True,
    )
    dask.compute(*lazy, **LOCAL)
    tiles, across, down = 4, 3, 3  # two by two tiles; borders are cut where tiles have their middles
    assert len(list(tmp_path.iterdir())) == tiles + across + down


def test_the_same_search_has_the_same_names_and_another_has_others():
    image = da.from_array(IMAGE, chunks=26)
    build = functools.partial(tfd.minimize, image, tf.Potts(3), costs=level_costs, labels=LABELS, method="t_icm", rng=0)
    assert build().name == build().name == build(full_output=True).x.name
    others = [
        build(rng=1),
        build(maxiter=3),
        build(tile=20),
        build(x0="unary"),
        build(weights=(1, 2)),
        build(trees="combs"),
    ]
    assert len({x.name for x in [build(), *others]}) == 1 + len(others)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_energy_is_that_of_the_tiled_model(weights):
    x = np.random.default_rng(5).integers(0, LABELS, SHAPE)
    lazy = da.from_array(x, chunks=(14, 20))
    expected = tf.TiledMRF(UNARY, tf.TruncatedLinear(1.7, 2), weights=weights, tile=(14, 20)).energy(x)
    assert tfd.energy(lazy, UNARY, tf.TruncatedLinear(1.7, 2), weights=weights).compute(**LOCAL) == expected
    by_costs = tfd.energy(lazy, IMAGE, tf.Potts(3), costs=level_costs, weights=weights).compute(**LOCAL)
    assert by_costs == tf.GridMRF(level_costs(IMAGE), tf.Potts(3), weights=weights).energy(x)


# --- a cluster of processes -----------------------------------------------------------------------------------------


def test_a_cluster_finds_the_same_and_writes_it_to_zarr(client, tmp_path):
    costs = zarr.create_array(store=str(tmp_path / "unary.zarr"), shape=UNARY.shape, chunks=(14, 20, 4), dtype="f8")
    costs[:] = UNARY
    lazy = tfd.minimize(da.from_zarr(costs), tf.Potts(3), weights=WEIGHTS, rng=3, maxiter=3, full_output=True)
    mrf, res = serial(UNARY, tf.Potts(3), weights=WEIGHTS, tile=(14, 20), maxiter=3)
    check_same(tfd.Labelling(*client.gather(client.compute(list(lazy)))), mrf, res)
    labels = zarr.create_array(store=str(tmp_path / "x.zarr"), shape=SHAPE, chunks=lazy.x.chunksize, dtype="u1")
    with client.as_current():
        da.store(lazy.x.rechunk(labels.chunks), labels, lock=False)
    np.testing.assert_array_equal(labels[:], res.x)


def kill_workers(client, folder, after, number=1):
    """Kill some workers as soon as there are so many files; returns the thread, which ends when it is done, and their
    processes."""
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
def test_a_worker_that_is_killed_changes_nothing(client, tmp_path, method):
    costs = functools.partial(noted_costs, str(tmp_path))
    options = {"method": method, "maxiter": 3}
    image = da.from_array(IMAGE, chunks=20)
    lazy = tfd.minimize(image, tf.Potts(3), costs=costs, labels=LABELS, rng=3, full_output=True, **options)
    killer, (pid,) = kill_workers(client, tmp_path, 5)
    found = tfd.Labelling(*client.gather(client.compute(list(lazy))))
    killer.join(timeout=10)
    assert not killer.is_alive() and pid not in client.run(os.getpid).values()
    unary = level_costs(IMAGE)
    check_same(found, *serial(unary, tf.Potts(3), tile=20, **options))


class NotedJump(moves.UniformJump):
    """A slow jump; each leaves a file."""

    def __init__(self, folder):
        super().__init__(0.1)
        self.folder = str(folder)

    def __call__(self, x, mrf, rng):
        (pathlib.Path(self.folder) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        time.sleep(0.02)
        return super().__call__(x, mrf, rng)


MRF = tf.GridMRF(np.random.default_rng(0).random((40, 40, 4)), tf.Potts(0.4))


def check_merged(mrf, res, seeds):
    assert res.fun == mrf.energy(res.x) <= min(res.runs) and len(res.runs) == seeds
    assert res.message.startswith(f"{seeds} searches: best {min(res.runs):.10g}, merged {res.fun:.10g}")
    assert len(res.trace) == seeds + 1 and res.trace["best"][-1] == res.fun
    assert res.trace["energy"][:-1].tolist() == list(res.runs)
    assert np.all(np.diff(res.trace["best"]) <= 0) and np.all(np.diff(res.trace["seconds"]) >= 0)


def test_seeds_on_a_cluster_are_those_of_this_machine(client, capsys):
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


def test_the_current_client_is_used(client):
    with client.as_current():
        res = tfd.search(MRF, seeds=2, maxiter=10, rng=0)
        names = set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes)))
    check_merged(MRF, res, 2)
    assert {"treefield-search", "treefield-merge", "treefield-tile", "treefield-border"} <= names


@pytest.mark.parametrize("number", [1, 2])
def test_seeds_survive_workers_that_are_killed(client, tmp_path, number):
    expected = tfd.search(MRF, seeds=4, maxiter=20, rng=0)
    killer, _ = kill_workers(client, tmp_path, 10, number)
    res = tfd.search(MRF, seeds=4, maxiter=20, rng=0, jump=NotedJump(tmp_path), client=client)
    killer.join(timeout=10)
    assert not killer.is_alive()
    np.testing.assert_array_equal(res.x, expected.x)
    assert res.runs.tolist() == expected.runs.tolist()


# --- seeds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [1, 2, 3, 7])
def test_merged_seeds_are_no_worse_than_the_best(seeds):
    mrf = MRF.to_graph()
    check_merged(mrf, tfd.search(mrf, seeds=seeds, maxiter=4, rng=1), seeds)


def test_seeds_of_a_method_with_a_bound_have_one(capsys):
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
    "tiled function": tf.TiledMRF(level_costs, tf.Potts(1), shape=SHAPE, labels=LABELS, tile=20),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_travel_even_after_a_search(name):
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
def test_moves_travel(keywords):
    mrf = MODELS["graph"] if isinstance(keywords.get("jump"), moves.BallJump | moves.HeatJump) else MODELS["weighted"]
    before = tf.t_ils(mrf, maxiter=3, rng=0, **keywords)
    again = tf.t_ils(mrf, maxiter=3, rng=0, **pickle.loads(pickle.dumps(keywords)))
    np.testing.assert_array_equal(again.x, before.x)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"method": "trw"}, ValueError, "method of treefield.dask.minimize must be one of 'auto', 't_icm', 't_ils'"),
        ({"unary": [[1, 2]]}, TypeError, "unary must be a Dask array, or one such as NumPy's or Zarr's, got list"),
        ({"unary": np.zeros((4, 4))}, ValueError, "expected two or three axes"),
        ({"unary": np.zeros((4, 4, 2), complex)}, TypeError, "unary must hold real numbers, got dtype complex128"),
        ({"pairwise": tf.EdgeTables([np.zeros((4, 5, 2, 2))] * 2)}, TypeError, "EdgeTables do not go with tiles"),
        ({"pairwise": 3}, TypeError, "pairwise must be Potts"),
        ({"labels": 2}, TypeError, "labels goes with costs"),
        ({"costs": level_costs}, TypeError, "with costs, labels must be given"),
        ({"costs": 3, "labels": 2}, TypeError, "costs must be a function of a block, got 3"),
        ({"weights": [1]}, TypeError, "one number or array per axis is needed"),
        ({"weights": [1, np.ones((3, 3))]}, ValueError, r"weights\[1\] has shape \(3, 3\), expected \(41, 51\)"),
        ({"tile": 2}, ValueError, "tile must be at least 4"),
        ({"tile": (8, 8, 8)}, ValueError, "tile has 3 entries, but the grid has 2 axes"),
        ({"x0": "scan-line"}, ValueError, "x0 of treefield.dask.minimize must be one of 'random', 'unary'"),
        ({"x0": np.zeros((3, 3), int)}, ValueError, r"x0 has shape \(3, 3\), but the model's is \(41, 52\)"),
        ({"x0": np.zeros(SHAPE)}, TypeError, "x0 must hold integer labels, got dtype float64"),
        ({"rng": -1}, ValueError, "rng must be None, a non-negative integer"),
        ({"maxiter": 2.5}, TypeError, "maxiter must be an integer"),
        ({"method": "t_icm", "maxiter": -1}, ValueError, "maxiter must be at least 0"),
        ({"threads": 0}, ValueError, "threads must be at least 1"),
        ({"jump": moves.UniformJump()}, TypeError, "method='auto' takes no jump here; it takes time_limit, tol"),
        ({"progress": True}, TypeError, "takes no progress here; Dask shows progress by itself"),
        ({"method": "t_ils", "checkpoint": "x"}, TypeError, "takes no checkpoint here"),
        ({"method": "t_ils", "local_search": MRF.tree_set()}, ValueError, "local_search must be given by its name"),
    ],
)
def test_what_cannot_be_minimised_is_refused_at_once(changes, error, message):
    arguments = {"unary": UNARY, "pairwise": tf.Potts(1)} | changes
    check_refused(lambda: tfd.minimize(**arguments), error, message)


def test_what_tasks_find_wrong_is_told():
    wrong = tfd.minimize(IMAGE, tf.Potts(1), costs=level_costs, labels=3)
    message = r"costs gave shape \(41, 52, 4\) for the box \[0:41, 0:52\], expected \(41, 52, 3\)"
    check_refused(lambda: wrong.compute(**LOCAL), ValueError, message)
    start = tfd.minimize(UNARY, tf.Potts(1), x0=np.full(SHAPE, 4))
    check_refused(lambda: start.compute(**LOCAL), ValueError, "x0 holds labels from 4 to 4, expected 0 to 3")
    sevens = da.full(SHAPE, 7, chunks=20, dtype=int)
    for lazy in (tfd.energy(sevens, IMAGE, tf.Potts(1), costs=level_costs), tfd.energy(sevens, UNARY, tf.Potts(1))):
        check_refused(lambda x=lazy: x.compute(**LOCAL), ValueError, "x holds labels from 7 to 7, expected 0 to 3")


def test_what_has_no_energy_is_refused():
    check_refused(lambda: tfd.energy(np.zeros(SHAPE), UNARY, tf.Potts(1)), TypeError, "x must hold integer labels")
    wrong = np.zeros((3, 3), int)
    check_refused(lambda: tfd.energy(wrong, UNARY, tf.Potts(1)), ValueError, r"x has shape \(3, 3\), but the model's")
    unknown = da.from_array(UNARY, chunks=20)
    unknown = unknown[unknown[:, 0, 0] > 3]
    check_refused(lambda: tfd.minimize(unknown, tf.Potts(1)), ValueError, "unary has chunks of unknown size")


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"mrf": UNARY}, TypeError, "mrf must be a model"),
        ({"mrf": MODELS["tiled"]}, TypeError, "a TiledMRF is searched by minimize"),
        ({"seeds": 0}, ValueError, "seeds must be at least 1, got 0"),
        ({"seeds": [1, 2]}, TypeError, "seeds must be an integer"),
        ({"method": "best"}, ValueError, "method must be one of 'auto'"),
        ({"client": "tcp://here"}, TypeError, "client must be a distributed.Client, got str"),
        ({"progress": 1}, TypeError, "progress must be True or False"),
        ({"callback": print}, TypeError, "method='t_ils' takes no callback here"),
        ({"beta": 1, "nothing": 2}, TypeError, "takes no nothing here; it takes x0, jump"),
    ],
)
def test_what_cannot_be_searched_is_refused(changes, error, message):
    check_refused(lambda: tfd.search(**{"mrf": MRF} | changes), error, message)


def test_without_dask_it_says_what_to_install():
    code = "import sys; sys.modules['dask'] = None; import treefield.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'treefield.dask needs dask: pip install "treefield[dask]"' in done.stderr.splitlines()[-1]

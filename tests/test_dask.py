"""Dask: the tiled search as lazy tasks has the answers of the serial search."""

import functools
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import treefield as tf
import treefield.dask as tfd
from dask_grids import (
    IMAGE,
    LABELS,
    LOCAL,
    MRF,
    SEARCHES,
    SHAPE,
    UNARY,
    WEIGHTS,
    check_same,
    computed,
    level_costs,
    noted_costs,
    serial,
)
from small import check_raises
from treefield import moves


def failing_costs(block):
    raise RuntimeError("costs were asked for")


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("weights", [None, WEIGHTS, (0.5, WEIGHTS[1])])
def test_tasks_find_the_labels_of_the_serial_search(name, weights):
    options = {"method": name.split()[0], **SEARCHES[name]}
    lazy_weights = weights and [da.from_array(w, chunks=17) if np.ndim(w) else w for w in weights]
    lazy = tf.TiledMRF(da.from_array(UNARY, chunks=(14, 20, 3)), tf.Potts(3), weights=lazy_weights, tile=(14, 20))
    mrf, res = serial(tf.TiledMRF(UNARY, tf.Potts(3), weights=weights, tile=(14, 20)), **options)
    found = computed(lazy, **options)
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
def test_tasks_equal_the_serial_search_for_every_pairwise_kind(pairwise):
    lazy = tf.TiledMRF(da.from_array(UNARY, chunks=(21, 26, 4)), pairwise)
    assert lazy.tile == (21, 26)
    check_same(computed(lazy, maxiter=3), *serial(tf.TiledMRF(UNARY, pairwise, tile=(21, 26)), maxiter=3))


@pytest.mark.parametrize("method", ["auto", "t_icm"])
def test_tasks_equal_the_serial_search_on_grids_of_three_axes(method):
    rng = np.random.default_rng(2)
    unary = rng.integers(0, 9, (9, 11, 10, 3))
    weights = [rng.integers(0, 4, shape) for shape in ((8, 11, 10), (9, 10, 10), (9, 11, 9))]
    mrf = tf.TiledMRF(unary, tf.Potts(2), weights=weights, tile=(9, 5, 4))
    check_same(computed(mrf, method=method, maxiter=3), *serial(mrf, method=method, maxiter=3))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 22), st.integers(1, 22), st.integers(4, 9), st.integers(0, 7))
def test_rounds_of_t_icm_as_tasks_equal_the_serial_rounds(seed, height, width, tile, rounds):
    unary = np.random.default_rng(seed).integers(0, 4, (height, width, 3)).astype(np.uint8)
    mrf = tf.TiledMRF(unary, tf.Potts(1), tile=(min(tile, height), min(tile + 1, width)))
    found = computed(mrf, method="t_icm", maxiter=rounds)
    check_same(found, *serial(mrf, method="t_icm", maxiter=rounds))
    assert found.fun == mrf.energy(found.x)


@pytest.mark.parametrize("seed", range(5))
def test_bound_of_tasks_is_not_above_the_least_energy(seed):
    rng = np.random.default_rng(seed)
    unary, weights = rng.integers(-9, 9, (2, 8, 2)), (rng.integers(-3, 6, (1, 8)), rng.integers(-3, 6, (2, 7)))
    found = computed(tf.TiledMRF(unary, tf.Potts(2), weights=weights, tile=4))
    least = naive.brute_force(unary, naive.explicit_tables((2, 8), 2 * naive.potts(2), weights))[0]
    assert found.lower_bound <= least <= found.fun


def test_costs_may_be_a_function_of_the_blocks_of_an_image():
    lazy = tf.TiledMRF(da.from_array(IMAGE, chunks=20), tf.Potts(3), costs=level_costs, n_labels=LABELS)
    x = tfd.minimize(lazy)
    assert x.chunks == ((13, 14, 14), (17, 17, 18)) and x.dtype == np.uint8
    of_boxes = {"shape": SHAPE, "n_labels": LABELS, "tile": 20}
    mrf, res = serial(tf.TiledMRF(lambda box: level_costs(IMAGE[box]), tf.Potts(3), **of_boxes), maxiter=3)
    check_same(computed(lazy, maxiter=3), mrf, res)
    check_same(computed(lazy, maxiter=3), *serial(lazy, maxiter=3))


@pytest.mark.parametrize("kind", ["numpy", "memmap", "zarr"])
def test_arrays_of_other_packages_become_dask_arrays(tmp_path, kind):
    unary = UNARY
    if kind == "memmap":
        np.save(tmp_path / "unary.npy", UNARY)
        unary = np.load(tmp_path / "unary.npy", mmap_mode="r")
    if kind == "zarr":
        unary = zarr.create_array(store=str(tmp_path / "unary.zarr"), data=UNARY, chunks=(20, 20, 2))
    found = computed(tf.TiledMRF(unary, tf.Potts(3), tile=20), method="t_icm", maxiter=2)
    check_same(found, *serial(tf.TiledMRF(UNARY, tf.Potts(3), tile=20), method="t_icm", maxiter=2))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_start_may_be_a_dask_array_of_labels(dtype):
    x0 = np.random.default_rng(5).integers(0, LABELS, SHAPE).astype(dtype)
    mrf = tf.TiledMRF(UNARY, tf.Potts(3), tile=20)
    found = computed(mrf, da.from_array(x0, chunks=11), method="t_icm", maxiter=2)
    check_same(found, *serial(mrf, x0, method="t_icm", maxiter=2))


def test_t_icm_without_rounds_returns_the_start():
    x0 = np.random.default_rng(5).integers(0, LABELS, SHAPE)
    x = tfd.minimize(tf.TiledMRF(UNARY, tf.Potts(3), tile=20), x0, method="t_icm", maxiter=0)
    np.testing.assert_array_equal(x.compute(**LOCAL), x0)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_forbidden_costs_are_infinite_energy(scheduler):
    unary = np.random.default_rng(0).random((10, 12, 2))
    unary[:, 5:7] = np.inf
    unary[:, 5, 0] = unary[:, 6, 1] = 0
    forbidding = tf.Table([[0, 1], [np.inf, 0]])
    mrf = tf.TiledMRF(unary, forbidding, tile=6)
    x, fun, _ = dask.compute(*tfd.minimize(mrf, rng=0, full_output=True), scheduler=scheduler)
    assert fun == pytest.approx(tf.GridMRF(unary, forbidding).energy(x)) and np.isfinite(fun)
    assert tfd.energy(mrf, 1 - x).compute(**LOCAL) == np.inf


def test_tiles_default_to_chunks_of_at_least_four_sites():
    x = tfd.minimize(tf.TiledMRF(da.zeros((9, 40, 30, 2), chunks=(1, 20, 30, 1)), tf.Potts(1)))
    assert x.chunks == ((3, 3, 3), (20, 20), (30,))


def test_nothing_is_computed_before_it_is_asked_for():
    mrf = tf.TiledMRF(da.from_array(IMAGE, chunks=20), tf.Potts(3), costs=failing_costs, n_labels=LABELS)
    lazy = tfd.minimize(mrf, full_output=True)
    for value in (*lazy, tfd.energy(mrf, lazy.x)):
        check_raises(lambda value=value: value.compute(**LOCAL), RuntimeError, "costs were asked for")


def test_labels_energy_and_bound_share_their_tasks(tmp_path):
    costs = functools.partial(noted_costs, str(tmp_path))
    mrf = tf.TiledMRF(da.from_array(IMAGE, chunks=26), tf.Potts(3), costs=costs, n_labels=LABELS)
    computed(mrf, maxiter=1)
    tiles, across, down = 4, 3, 3  # two by two tiles; borders are cut where tiles have their middles
    assert len(list(tmp_path.iterdir())) == tiles + across + down


def test_equal_searches_have_equal_task_names_and_different_ones_do_not():
    image = da.from_array(IMAGE, chunks=26)

    def build(tile=26, weights=None, **changes):
        mrf = tf.TiledMRF(image, tf.Potts(3), costs=level_costs, n_labels=LABELS, tile=tile, weights=weights)
        return tfd.minimize(mrf, **{"x0": "random", "method": "t_icm", "rng": 0} | changes)

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
    mrf = tf.TiledMRF(UNARY, tf.TruncatedLinear(1.7, 2), weights=weights, tile=(14, 20))
    assert tfd.energy(mrf, lazy).compute(**LOCAL) == mrf.energy(x)
    of_image = tf.TiledMRF(IMAGE, tf.Potts(3), costs=level_costs, n_labels=LABELS, weights=weights, tile=20)
    expected = tf.GridMRF(level_costs(IMAGE), tf.Potts(3), weights=weights).energy(x)
    assert tfd.energy(of_image, lazy).compute(**LOCAL) == expected


TILED = tf.TiledMRF(UNARY, tf.Potts(1), tile=20)
OF_BOXES = tf.TiledMRF(lambda box: UNARY[box], tf.Potts(1), shape=SHAPE, n_labels=LABELS, tile=20)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"mrf": MRF}, TypeError, "mrf must be a TiledMRF, got GridMRF; treefield.dask.search takes models in memory"),
        ({"mrf": OF_BOXES}, TypeError, "the unary of mrf is a function of a box"),
        ({"mrf": tf.TiledMRF(UNARY, tf.Potts(1), store="x.npy")}, ValueError, "mrf has a store, but labels are"),
        ({"method": "trw"}, ValueError, "method of treefield.dask.minimize must be one of 'auto', 't_icm', 't_ils'"),
        ({"x0": "scan-line"}, ValueError, "x0 of treefield.dask.minimize must be one of 'random', 'unary'"),
        ({"x0": np.zeros((3, 3), int)}, ValueError, r"x0 has shape \(3, 3\), but the model's is \(41, 52\)"),
        ({"x0": np.zeros(SHAPE)}, TypeError, "x0 must hold integer labels, got dtype float64"),
        ({"rng": -1}, ValueError, "rng must be None, a non-negative integer"),
        ({"maxiter": 2.5}, TypeError, "maxiter must be an integer"),
        ({"method": "t_icm", "maxiter": -1}, ValueError, "maxiter must be at least 0"),
        ({"threads": 0}, ValueError, "threads must be at least 1"),
        ({"jump": moves.UniformJump()}, TypeError, "method='auto' with Dask takes no jump; it takes time_limit, tol"),
        ({"progress": True}, TypeError, "takes no progress with Dask, which shows progress by itself"),
        ({"method": "t_ils", "checkpoint": "x"}, TypeError, "with Dask takes no checkpoint"),
        (
            {"method": "t_ils", "local_search": MRF.backend.tree_set()},
            ValueError,
            "local_search must be given by its name",
        ),
    ],
)
def test_bad_arguments_of_dask_minimize_raise_before_anything_is_computed(changes, error, message):
    check_raises(lambda: tfd.minimize(**{"mrf": TILED} | changes), error, message)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"unary": [[1, 2]]}, TypeError, "unary must be an array or a function of a box, got list"),
        ({"unary": np.zeros((4, 4))}, ValueError, "expected two or three axes"),
        ({"unary": np.zeros((4, 4, 2), complex)}, TypeError, "unary must hold real numbers, got dtype complex128"),
        ({"pairwise": tf.EdgeTables([np.zeros((4, 5, 2, 2))] * 2)}, TypeError, "EdgeTables do not go with tiles"),
        ({"pairwise": 3}, TypeError, "pairwise must be Potts"),
        ({"n_labels": 2}, ValueError, "n_labels is 2, but unary has shape"),
        ({"costs": level_costs}, TypeError, "with costs, n_labels= must be given"),
        ({"costs": 3, "n_labels": 2}, TypeError, "costs must be a function of a block, got 3"),
        ({"unary": level_costs, "costs": level_costs}, TypeError, "costs goes with an image"),
        ({"weights": [1]}, ValueError, "one number or array per axis is needed"),
        ({"weights": [1, np.ones((3, 3))]}, ValueError, r"weights\[1\] has shape \(3, 3\), expected a number or \(41"),
        ({"tile": 2}, ValueError, "tile must be at least 4"),
        ({"tile": (8, 8, 8)}, ValueError, "tile has 3 entries, but the grid has 2 axes"),
    ],
)
def test_bad_arguments_of_tiled_models_raise(changes, error, message):
    check_raises(lambda: tf.TiledMRF(**{"unary": UNARY, "pairwise": tf.Potts(1)} | changes), error, message)


def test_bad_costs_and_labels_raise_when_they_are_computed():
    three = tf.TiledMRF(IMAGE, tf.Potts(1), costs=level_costs, n_labels=3, tile=SHAPE)
    message = r"costs gave shape \(41, 52, 4\) for the box \[0:41, 0:52\], expected \(41, 52, 3\)"
    check_raises(lambda: tfd.minimize(three).compute(**LOCAL), ValueError, message)
    start = tfd.minimize(TILED, np.full(SHAPE, 4))
    check_raises(lambda: start.compute(**LOCAL), ValueError, "x0 holds labels from 4 to 4, expected 0 to 3")
    sevens = da.full(SHAPE, 7, chunks=20, dtype=int)
    of_image = tf.TiledMRF(IMAGE, tf.Potts(1), costs=level_costs, n_labels=LABELS, tile=20)
    for lazy in (tfd.energy(of_image, sevens), tfd.energy(TILED, sevens)):
        check_raises(lambda x=lazy: x.compute(**LOCAL), ValueError, "x holds labels from 7 to 7, expected 0 to 3")


def test_bad_labellings_and_chunks_of_unknown_size_raise():
    check_raises(lambda: tfd.energy(TILED, np.zeros(SHAPE)), TypeError, "x must hold integer labels")
    wrong = np.zeros((3, 3), int)
    check_raises(lambda: tfd.energy(TILED, wrong), ValueError, r"x has shape \(3, 3\), but the model's")
    unknown = da.from_array(UNARY, chunks=20)
    unknown = unknown[unknown[:, 0, 0] > 3]
    check_raises(lambda: tf.TiledMRF(unknown, tf.Potts(1)), ValueError, "unary has chunks of unknown size")


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"mrf": UNARY}, TypeError, "mrf must be a model"),
        ({"mrf": tf.TiledMRF(UNARY, tf.Potts(1), tile=20)}, TypeError, "a TiledMRF is searched by minimize"),
        ({"method": "tree_bp"}, ValueError, "method='tree_bp' draws nothing, so seeds make no difference"),
        ({"seeds": 0}, ValueError, "seeds must be at least 1, got 0"),
        ({"seeds": [1, 2]}, TypeError, "seeds must be an integer"),
        ({"method": "best"}, ValueError, "method must be one of 'auto'"),
        ({"client": "tcp://here"}, TypeError, "client must be a distributed.Client, got str"),
        ({"progress": 1}, TypeError, "progress must be True or False"),
        ({"callback": print}, TypeError, "method='t_ils' takes no callback with Dask"),
        ({"beta": 1, "nothing": 2}, TypeError, "with Dask takes no nothing; it takes jump, accept"),
    ],
)
def test_bad_arguments_of_dask_search_raise(changes, error, message):
    check_raises(lambda: tfd.search(**{"mrf": MRF} | changes), error, message)


def test_import_without_dask_names_the_extra_to_install():
    code = "import sys; sys.modules['dask'] = None; import treefield.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'treefield.dask needs dask: pip install "treefield[dask]"' in done.stderr.splitlines()[-1]

"""Dask: the tiled search as tasks finds what the serial one finds, lazily."""

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
    level_costs,
    noted_costs,
    serial,
)
from small import check_refused
from treefield import moves


def failing_costs(block):
    raise RuntimeError("costs were asked for")


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
        ({"mrf": tf.TiledMRF(UNARY, tf.Potts(1), tile=20)}, TypeError, "a TiledMRF is searched by minimize"),
        ({"method": "tree_bp"}, ValueError, "method='tree_bp' draws nothing, so seeds make no difference"),
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

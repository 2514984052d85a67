"""Grids for the tests of Dask, and the serial search that tasks must equal."""

import os
import pathlib
import time

import dask
import numpy as np
import pytest

import treefield as tf
import treefield.dask as tfd

SHAPE, LABELS = (41, 52), 4
RNG = np.random.default_rng(0)
UNARY = RNG.integers(0, 20, (*SHAPE, LABELS)).astype(np.float64)
IMAGE = RNG.integers(0, 32, SHAPE).astype(np.uint8)
WEIGHTS = (RNG.integers(-2, 5, (40, 52)).astype(float), RNG.integers(0, 5, (41, 51)).astype(float))
SEARCHES = {
    "auto": {"maxiter": 3},
    "auto from random": {"maxiter": 3, "x0": "random"},
    "t_ils": {"maxiter": 4},
    "t_icm": {"maxiter": 5},
}
LOCAL = {"scheduler": "synchronous"}
MRF = tf.GridMRF(np.random.default_rng(0).random((40, 40, 4)), tf.Potts(0.4))


def level_costs(block):
    return np.abs(block[..., None] - 8.0 * np.arange(LABELS))


def noted_costs(folder, block):
    """The same, slowly; each call leaves a file."""
    (pathlib.Path(folder) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
    time.sleep(0.1)
    return level_costs(block)


def serial(mrf, x0="unary", **keywords):
    """The model and the answer of `tf.minimize`."""
    return mrf, tf.minimize(mrf, x0, rng=3, **keywords)


def computed(mrf, x0="unary", **keywords):
    """The answer of `treefield.dask.minimize`, computed in this thread."""
    lazy = tfd.minimize(mrf, x0, rng=3, full_output=True, **keywords)
    return tfd.Labelling(*dask.compute(*lazy, **LOCAL))


def check_same(found, mrf, res):
    """A computed `Labelling` is the serial answer, and its energy that of its labels."""
    np.testing.assert_array_equal(found.x, res.x)
    assert found.x.dtype == res.x.dtype
    assert found.fun == pytest.approx(mrf.energy(found.x), rel=1e-12)
    np.testing.assert_allclose(found.lower_bound, res.lower_bound, rtol=1e-12)

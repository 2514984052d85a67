"""The picture that a result draws of its trace."""

import math

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib.figure import Figure

import treefield as tf
from treefield.results import TRACE, Status, make_result


def result(energy, bound=math.nan):
    energy = np.atleast_1d(np.asarray(energy, float))
    trace = np.zeros(len(energy), TRACE)
    trace["iteration"], trace["seconds"], trace["energy"] = np.arange(len(energy)), np.arange(len(energy)), energy
    trace["best"], trace["bound"] = np.minimum.accumulate(energy), bound
    best, low = float(trace["best"][-1]), float(trace["bound"][-1])
    given = {"status": Status.LIMIT, "message": "", "method": "m", "nit": len(energy) - 1, "trace": trace}
    return make_result(x=np.zeros((2, 2), np.int32), fun=best, lower_bound=low, **given)


def limits(*results):
    ax = Figure().subplots()
    for res in results:
        res.plot(ax)
    return ax.get_ylim()


def test_the_end_of_the_curves_fills_the_y_axis():
    energy, bound = [1e6, 5e5, 40, 30, 25, 24, 24, 23, 22], [math.nan, -1e6, 5, 12, 15, 18, 20, 21, 21]
    low, high = limits(result(energy, bound))
    assert 10 < low < 12 and 40 < high < 50


def test_the_start_that_is_cut_off_is_at_most_twenty_points():
    energy = np.concatenate([np.full(20, 1e6), np.linspace(100, 0, 200)])
    low, high = limits(result(energy))
    assert -10 < low < 0 and 100 < high < 110


def test_autoscale_shows_everything():
    ax = result([1e6, 3, 2, 1, 0]).plot(Figure().subplots())
    assert ax.get_ylim()[1] < 10
    ax.autoscale()
    assert ax.get_ylim()[1] > 1e6


@pytest.mark.parametrize(
    "energy",
    [[5.0], [5.0, 5.0], [9.0, 5.0], [1e6, 5.0, 5.0, 5.0], [math.inf], [math.inf] * 3, np.linspace(9, 0, 50)],
    ids=str,
)
def test_curves_without_an_outlying_start_are_shown_whole(energy):
    low, high = limits(result(energy))
    finite = np.asarray(energy)[np.isfinite(energy)]
    assert math.isfinite(low) and low < high and all((low <= finite) & (finite <= high))


def test_infinite_energies_at_the_start_do_not_count():
    low, high = limits(result([math.inf] * 30 + [1e6, 5, 4, 3, 2, 1, 1, 1], [-math.inf] * 30 + [0.0] * 8))
    assert -1 < low < 0 and 4 < high < 6


def test_several_runs_on_the_same_axes_are_all_shown():
    first, second = result([1e6, 5, 4, 3, 2], 1.0), result([1e6, 50, 40, 30, 20])
    for pair in ((first, second), (second, first)):
        low, high = limits(*pair)
        assert low < 1 and 40 < high < 1000


def test_a_tiled_result_is_drawn():
    unary = np.random.default_rng(0).random((30, 30, 2)).astype(np.float32)
    res = tf.minimize(tf.TiledMRF(unary, tf.Potts(0.3), tile=15), rng=0)
    low, high = limits(res)
    assert low < res.fun < high

"""A small model and what goes with it, for tests of odd and of bad input."""

import json
import sys

import numpy as np
import pytest

import treefield as tf

SHAPE, LABELS = (3, 4), 3
UNARY = np.random.default_rng(0).integers(0, 9, (*SHAPE, LABELS)).astype(np.float64)
DOWN, ACROSS = np.ones((2, 4)), np.ones((3, 3))
EDGES = [np.zeros((2, 4, 3, 3)), np.zeros((3, 3, 3, 3))]
HUGE = 10**400  # an integer that no float holds
MRF = tf.GridMRF(UNARY, tf.Potts(2))  # has cycles
CHAIN = tf.GridMRF(UNARY[:1], tf.Potts(2))  # has none
NAMES = ("t_icm", "icm", "scan_line", "tree_bp", "t_ils", "anneal", "genetic")
SOLVERS = {name: getattr(tf, name) for name in NAMES}


def check_raises(call, error, message):
    """Fail unless the call raises this error with a message that matches."""
    with pytest.raises(error, match=message):
        call()


def hide_package(monkeypatch, name):
    """Have every import of a package fail, those of its modules too."""
    for loaded in [name, *(module for module in sys.modules if module.startswith(f"{name}."))]:
        monkeypatch.setitem(sys.modules, loaded, None)


def with_value(array, value):
    """A float copy with one entry replaced."""
    array = np.array(array, float)
    array.flat[-1] = value
    return array


def model(unary=UNARY, pairwise=None, **keywords):
    return tf.GridMRF(unary, tf.Potts(1) if pairwise is None else pairwise, **keywords)


def check_same(first, second):
    """Two runs were the same, but for their seconds."""
    np.testing.assert_array_equal(first.x, second.x)
    for column in ("iteration", "energy", "best"):
        np.testing.assert_array_equal(first.trace[column], second.trace[column])
    assert (first.fun, first.nit, first.status, first.message) == (
        second.fun,
        second.nit,
        second.status,
        second.message,
    )


def check_result(mrf, res):
    """Fail unless a result of T-ILS is consistent."""
    trace = res.trace
    assert res.x.dtype == np.int32 and res.x.shape == mrf.shape
    assert res.fun == mrf.energy(res.x) == trace["best"][-1]
    assert np.all(trace["energy"] >= res.fun) and np.all(trace["best"] >= res.fun)
    assert np.all(np.diff(trace["best"]) <= 0) and np.all(np.diff(trace["seconds"]) >= 0)
    assert trace["iteration"].tolist() == [0, 0, *range(1, res.nit + 1)]  # the start, its local minimum, the jumps


def check_memory_survives_json(mixture, mrf):
    """Fail unless the state of a jump made by `mixture()` survives JSON, and another one continues from it alike."""
    rng = np.random.default_rng(0)
    x = mrf.backend.random_labels(rng)
    taught, fresh, again = mixture(), mixture(), mixture()
    for won in rng.random(40) ** 4:
        taught(x, mrf, rng)
        taught.learn(won, 10.0)
    text = json.dumps(taught.get_state())
    again.set_state(json.loads(text))
    assert json.dumps(again.get_state()) == text != json.dumps(fresh.get_state())
    draws = [np.random.default_rng(5) for _ in range(2)]
    for won in np.linspace(0, 1, 30):
        np.testing.assert_array_equal(*(jump(x, mrf, r) for jump, r in zip((taught, again), draws, strict=True)))
        taught.learn(won, 10.0)
        again.learn(won, 10.0)
    assert again.work(mrf) == taught.work(mrf)

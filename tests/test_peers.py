"""The libraries treefield is compared with: called as they want it, refused what they cannot take."""

import importlib.util
import sys

import numpy as np
import pytest

import naive
import peers
import treefield as tf
from small import check_refused

MODULES = {"PyMaxflow": "maxflow", "gco-wrapper": "gco"}
UNARY = np.random.default_rng(0).integers(0, 20, (3, 4, 2))


def needs(package):
    """Skip a test where the peer is not installed."""
    return pytest.mark.skipif(importlib.util.find_spec(MODULES[package]) is None, reason=f"{package} is not installed")


installed = pytest.mark.parametrize("package", [pytest.param(package, marks=needs(package)) for package in MODULES])


@installed
@pytest.mark.parametrize("weights", [None, [3, 3]])
def test_expansion_is_exact_with_two_labels(package, weights):
    mrf = tf.GridMRF(UNARY, tf.Potts(2), weights=weights)
    x, energy, seconds = peers.PEERS[package](mrf)
    optimum = naive.brute_force(UNARY, naive.explicit_tables(mrf.shape, 2 * naive.potts(2), weights))[0]
    assert energy == mrf.energy(x) == optimum
    assert x.dtype == np.int32 and seconds > 0 and peers.version(package)


@needs("gco-wrapper")
def test_gco_takes_a_weight_per_edge():
    rng = np.random.default_rng(1)
    weights = [rng.integers(0, 5, shape) for shape in ((2, 4), (3, 3))]
    energy = peers.gco_expansion(tf.GridMRF(UNARY, tf.Potts(2), weights=weights))[1]
    assert energy == naive.brute_force(UNARY, naive.explicit_tables((3, 4), 2 * naive.potts(2), weights))[0]


@needs("PyMaxflow")
def test_pymaxflow_takes_fractions():
    mrf = tf.GridMRF(UNARY / 7, tf.Potts(0.3))
    optimum = naive.brute_force(UNARY / 7, naive.explicit_tables((3, 4), 0.3 * naive.potts(2)))[0]
    assert peers.pymaxflow_expansion(mrf)[1] == pytest.approx(optimum)


@installed
def test_what_expansion_cannot_take_is_refused(package):
    solve, three = peers.PEERS[package], np.zeros((3, 4, 3))
    check_refused(lambda: solve(tf.GridMRF(three, tf.TruncatedQuadratic(1, 4))), ValueError, "metric")
    check_refused(lambda: solve(tf.GridMRF(three, tf.Potts(1), weights=[1, -1])), ValueError, "negative")


@needs("PyMaxflow")
def test_pymaxflow_refuses_weights_that_differ():
    mrf = tf.GridMRF(UNARY, tf.Potts(1), weights=[1, 2])
    check_refused(lambda: peers.pymaxflow_expansion(mrf), ValueError, "one weight")


@needs("gco-wrapper")
@pytest.mark.parametrize(
    ("unary", "weight", "message"), [(UNARY / 7, 1, "round"), (UNARY, 10**8, "up to"), (UNARY[None], 1, "2-D")]
)
def test_gco_refuses_what_it_would_round_or_abort_at(unary, weight, message):
    check_refused(lambda: peers.gco_expansion(tf.GridMRF(unary, tf.Potts(weight))), ValueError, message)


@pytest.mark.parametrize("package", MODULES)
def test_a_missing_peer_is_skipped_with_a_word(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, MODULES[package], None)
    assert peers.PEERS[package](tf.GridMRF(UNARY, tf.Potts(1))) is None
    assert f"Skipped: {package} is not installed" in capsys.readouterr().out

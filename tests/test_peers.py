"""The libraries treefield is compared with: called as they want it, refused what they cannot take."""

import importlib.util
import sys

import numpy as np
import pytest

import measure
import naive
import peers
import treefield as tf
from small import check_raises
from treefield.io.files import package_version
from treefield_reproduce.expansion import alpha_expansion

MODULES = {"PyMaxflow": "maxflow", "gco-wrapper": "gco"}  # whose peers are expansion
ALL_MODULES = MODULES | {"dwave-samplers": "dwave.samplers"}
UNARY = np.random.default_rng(0).integers(0, 20, (3, 4, 2))


def needs(package):
    """Skip a test where the peer is not installed."""
    top = ALL_MODULES[package].split(".")[0]
    return pytest.mark.skipif(importlib.util.find_spec(top) is None, reason=f"{package} is not installed")


installed = pytest.mark.parametrize("package", [pytest.param(package, marks=needs(package)) for package in MODULES])


@installed
@pytest.mark.parametrize("weights", [None, [3, 3]])
def test_expansion_is_exact_with_two_labels(package, weights):
    mrf = tf.GridMRF(UNARY, tf.Potts(2), weights=weights)
    x, energy, seconds = peers.PEERS[package](mrf)
    optimum = naive.brute_force(UNARY, naive.explicit_tables(mrf.shape, 2 * naive.potts(2), weights))[0]
    assert energy == mrf.energy(x) == optimum
    assert x.dtype == np.int32 and seconds > 0 and package_version(package) != "not installed"


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
def test_expansion_refuses_models_it_cannot_take(package):
    solve, three = peers.PEERS[package], np.zeros((3, 4, 3))
    check_raises(lambda: solve(tf.GridMRF(three, tf.TruncatedQuadratic(1, 4))), ValueError, "metric")
    check_raises(lambda: solve(tf.GridMRF(three, tf.Potts(1), weights=[1, -1])), ValueError, "negative")


@needs("PyMaxflow")
def test_pymaxflow_refuses_weights_that_differ():
    mrf = tf.GridMRF(UNARY, tf.Potts(1), weights=[1, 2])
    check_raises(lambda: peers.pymaxflow_expansion(mrf), ValueError, "one weight")


@needs("gco-wrapper")
@pytest.mark.parametrize(
    ("unary", "weight", "message"), [(UNARY / 7, 1, "round"), (UNARY, 10**8, "up to"), (UNARY[None], 1, "2-D")]
)
def test_gco_refuses_costs_it_would_round_or_abort_at(unary, weight, message):
    check_raises(lambda: peers.gco_expansion(tf.GridMRF(unary, tf.Potts(weight))), ValueError, message)


def several_cycles():
    """A model on which expansion gains in more than one cycle."""
    unary = np.random.default_rng(1).integers(0, 40, (24, 24, 6))
    return tf.GridMRF(unary.astype(np.float32), tf.Potts(12))


@needs("PyMaxflow")
def test_expansion_starts_from_given_labels_and_leaves_them_unchanged():
    mrf = several_cycles()
    first, energy, _ = alpha_expansion(mrf, 1)
    kept = first.copy()
    second, lower, _ = alpha_expansion(mrf, 1, first)
    assert lower < energy and (first == kept).all()
    assert (second == alpha_expansion(mrf, 2)[0]).all()


@needs("PyMaxflow")
@pytest.mark.parametrize("mrf", [several_cycles(), tf.GridMRF(np.zeros((3, 4, 2)), tf.Potts(1))])
def test_expansion_cycles_end_as_one_call_does(mrf):
    found = peers.pymaxflow_cycles(mrf)
    labellings, energies, seconds = zip(*found, strict=True)
    assert energies == tuple(mrf.energy(x) for x in labellings)
    assert all(np.diff(energies[:-1]) < 0) and energies[-1] == energies[-2]
    assert all(np.diff(seconds) > 0)
    assert (labellings[-1] == peers.pymaxflow_expansion(mrf)[0]).all()


@needs("gco-wrapper")
def test_more_cycles_of_gco_end_lower():
    mrf = several_cycles()
    found = peers.gco_cycles(mrf)
    energies = [energy for _, energy, _ in found]
    assert energies == [mrf.energy(x) for x, *_ in found]
    assert len(found) > 2 and all(np.diff(energies[:-1]) < 0) and energies[-1] == energies[-2]


@needs("dwave-samplers")
def test_dwave_anneal_returns_spins_at_their_sites():
    fields = np.where(np.random.default_rng(0).random((4, 5)) < 0.5, -3.0, 3.0)  # stronger than all couplings
    weights = [np.full((3, 5), 0.5), np.full((4, 4), -0.5)]
    mrf = tf.GridMRF(np.stack([-fields, fields], -1), tf.Table([[1, -1], [-1, 1]]), weights=weights)
    x, energy, _ = peers.dwave_anneal(mrf, sweeps=100)
    assert (x == (fields < 0)).all() and energy == mrf.energy(x)
    assert [len(found) for found in peers.dwave_anneal_lengths(mrf, (1, 2))] == [3, 3]


@needs("dwave-samplers")
def test_dwave_anneal_refuses_models_that_are_not_ising_grids():
    check_raises(lambda: peers.dwave_anneal(tf.GridMRF(UNARY, tf.Potts(1), weights=[1, 1])), ValueError, "Ising")


@pytest.mark.parametrize("package", ALL_MODULES)
def test_a_missing_peer_is_skipped_with_a_note(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, ALL_MODULES[package], None)
    measure.take_output()
    for ask in (peers.PEERS[package], peers.CURVES[package]):
        assert ask(tf.GridMRF(UNARY, tf.Potts(1))) is None
    assert capsys.readouterr().out.count(f"Skipped: {package} is not installed") == 1
    assert len(measure.take_output()["words"]) == 1

"""Which costs are integers to int16 and float32, and why others are not."""

import numpy as np
import pytest

import treefield as tf
from bounds import KINDS, holds, random_model
from treefield.backends.grid.fixed_point import fixed_point, possible_arithmetics

FEW = np.zeros((15, 15, 3))
LIMITS = {"int16": 2**15 - 2, "float32": 2**22}
SMALL = "no small integers"
NO_INTEGERS = "without their weights, are no integers"


def weights_of(*numbers):
    """Edge weights that hold these numbers in turn."""
    return [np.resize(np.array(numbers, float), shape) for shape in ((14, 15), (15, 14))]


def with_labels(labels):
    return np.zeros((2, 2, labels))


def ramp(labels):
    return np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))


REFUSED = {
    "a table for every edge": (FEW, tf.EdgeTables([np.zeros((14, 15, 3, 3)), np.zeros((15, 14, 3, 3))]), None, "every"),
    "a forbidden pair": (FEW, tf.Table([[0, 1, np.inf], [1, 0, 1], [1, 1, 0]]), None, "some pairs are forbidden"),
    "all pairs forbidden": (FEW, tf.Table(np.full((3, 3), np.inf)), None, "some pairs are forbidden"),
    "a cutoff that is no fraction of a power of two": (FEW, tf.TruncatedLinear(1, 1.3), None, NO_INTEGERS),
    "a finer cutoff": (FEW, tf.TruncatedQuadratic(1, 1 + 2**-9), None, NO_INTEGERS),
    "a table of fractions": (FEW, tf.Table(ramp(3) / 3), None, NO_INTEGERS),
    "positions of fractions": (FEW, tf.TruncatedLinear(1, 9, values=[0, 0.1, 0.2]), None, NO_INTEGERS),
    "positions of fractions far apart": (FEW, tf.TruncatedLinear(1, 2, values=[0, 2.3, 5]), None, NO_INTEGERS),
    "labels far apart": (FEW, tf.TruncatedLinear(1, 2, values=[0, 2**24, 2**24 + 1]), None, "too far apart"),
    "halves far apart": (FEW, tf.TruncatedLinear(1, 2, values=[0, 0.5, 2**23 + 1]), None, "too far apart"),
    "labels far apart, evenly": (FEW, tf.TruncatedQuadratic(1, 2, values=[0, 1e9, 2e9]), None, "too far apart"),
    "tiny costs": (FEW, tf.Potts(1e-250), None, "go up to 1e-250"),
    "huge costs": (FEW, tf.Potts(1e250), None, r"go up to 1e\+250"),
    "many weights that would become 0": (FEW, tf.Potts(1), weights_of(1, *[1.9e-6] * 199), "rounding would change"),
}
REFUSED_IN_INT16 = {
    "no costs": (FEW, tf.Potts(0), None, "no pairwise costs"),
    "no edges": (FEW[:1, :1], tf.Potts(1), None, "no pairwise costs"),
    "one label": (with_labels(1), tf.Potts(1), None, "no pairwise costs"),
    "halves": (FEW, tf.TruncatedLinear(1, 1.5), None, SMALL),
    "positions of halves": (FEW, tf.TruncatedQuadratic(1, 2, values=[0, 1.5, 3]), None, SMALL),
    "large integers": (FEW, tf.Table(np.eye(3) * 32762), None, SMALL),
    "labels somewhat far apart": (FEW, tf.TruncatedLinear(1, 2, values=[0, 1, 2**15]), None, "too far apart"),
    "labels somewhat far apart, evenly": (FEW, tf.TruncatedLinear(1, 2, values=[0, 2e4, 4e4]), None, "too far apart"),
    "a negative weight": (FEW, tf.Potts(1), (1, -1), "weights are negative"),
    "a negative Potts": (FEW, tf.Potts(-1), None, "weights are negative"),
    "a negative weight of no edge": (FEW[:1], tf.Potts(1), (-1, 1), "weights are negative"),
    "labels unevenly spaced": (FEW, tf.TruncatedQuadratic(1, 9, values=[0, 1, 3]), None, "unevenly spaced"),
    "too many labels": (with_labels(182), tf.Table(np.minimum(ramp(182), 2)), None, "too many"),
    "costs from small to large": (FEW, tf.Table(ramp(3) * [[1, 1, 50]]), None, "differ too much"),
    "a long ramp of squares": (with_labels(10), tf.TruncatedQuadratic(1, np.inf), None, "differ too much"),
    "weights that are no integers": (FEW, tf.Potts(1), weights_of(0.3, 0.7123, 1), "rounding would change"),
}
HELD = {
    "potts": (FEW, tf.Potts(0.37), None),
    "a large weight": (FEW, tf.Potts(5049.9), None),
    "a weight for each axis": (FEW, tf.Potts(0.1), (1, 2)),
    "weights of whole numbers": (FEW, tf.Potts(2), weights_of(0, 1, 2, 3)),
    "two labels": (with_labels(2), tf.Table([[3, 1], [0, 2]]), None),
    "a table": (FEW, tf.Table([[-1, 3, 2], [0, -1, 4], [2, 2, -1]]), None),
    "a ramp": (with_labels(40), tf.TruncatedLinear(0.1, np.inf), None),
    "squares": (with_labels(40), tf.TruncatedQuadratic(3, 25), None),
    "positions far from 0": (FEW, tf.TruncatedLinear(1, 3, values=[10**9, 10**9 + 1, 10**9 + 3]), None),
    "positions in any order": (FEW, tf.TruncatedQuadratic(1, 3, values=[2, 0, 1]), None),
    "a weight of an axis without edges": (FEW[:1], tf.Potts(1), (1e9, 1)),
}


def reason(unary, pairwise, weights, arithmetic):
    return fixed_point(tf.GridMRF(unary, pairwise, weights=weights).backend, arithmetic)[1]


@pytest.mark.parametrize("arithmetic", LIMITS)
@pytest.mark.parametrize("what", REFUSED)
def test_costs_that_no_integers_hold_are_refused_with_a_reason(what, arithmetic):
    *parts, message = REFUSED[what]
    with pytest.raises(ValueError, match=f"arithmetic='{arithmetic}' does not hold these costs: .*{message}"):
        tf.GridMRF(*parts[:2], weights=parts[2]).backend.dual(arithmetic)
    assert reason(*parts, "float64") == ""


@pytest.mark.parametrize("what", REFUSED_IN_INT16)
def test_costs_that_int16_does_not_hold_are_held_by_float32(what):
    *parts, message = REFUSED_IN_INT16[what]
    with pytest.raises(ValueError, match=f"arithmetic='int16' does not hold these costs: .*{message}"):
        tf.GridMRF(*parts[:2], weights=parts[2]).backend.dual("int16")
    assert reason(*parts, "float32") == ""
    assert list(possible_arithmetics(tf.GridMRF(*parts[:2], weights=parts[2]).backend)) == ["float32"]


@pytest.mark.parametrize("what", HELD)
def test_small_integers_times_a_weight_are_held_by_int16_and_float32(what):
    mrf = tf.GridMRF(*HELD[what][:2], weights=HELD[what][2])
    for arithmetic in LIMITS:
        assert reason(*HELD[what], arithmetic) == ""
    assert list(possible_arithmetics(mrf.backend)) == ["int16", "float32"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_arithmetic_that_holds_the_costs_holds_all_sums(kind):
    """Of a site: its unary, at most twice what its edges cost, and all messages, each at most what its edge costs."""
    for seed in range(60):
        case = random_model(kind, seed)
        mrf = case.mrf()
        held = [arithmetic for arithmetic in LIMITS if holds(mrf, arithmetic)]
        assert list(possible_arithmetics(mrf.backend))[-1] == ("float32" if "float32" in held else "float64")
        for arithmetic in held:
            costs = np.concatenate([table.max(axis=(-2, -1)).ravel() for table in case.tables])
            costs -= np.concatenate([table.min(axis=(-2, -1)).ravel() for table in case.tables])
            most = 4 * len(mrf.shape) * costs.max(initial=0.0) * fixed_point(mrf.backend, arithmetic)[0]
            assert most <= LIMITS[arithmetic] * (1 + 1e-12), (seed, arithmetic)


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e4, 1e9])
def test_int16_holds_any_weight_that_all_edges_share(size):
    for seed in range(200):
        weight = size * np.random.default_rng(seed).uniform(1, 2)
        for weights in (None, weights_of(0, 1)):
            assert reason(FEW, tf.Potts(weight), weights, "int16") == "", weight


def test_float64_holds_everything_and_is_used_where_nothing_else_does():
    assert list(possible_arithmetics(tf.GridMRF(FEW, tf.TruncatedLinear(1, 1.3)).backend)) == ["float64"]
    assert list(possible_arithmetics(tf.GridMRF(FEW, tf.Potts(-1)).backend)) == ["float32"]
    assert fixed_point(tf.GridMRF(FEW, tf.Potts(1e250)).backend, "float64") == (1.0, "")


@pytest.mark.parametrize(
    ("unary", "pairwise", "weights", "whole"),
    [
        (FEW, tf.Potts(2), None, True),
        (FEW.astype(np.uint8), tf.Potts(-2), (3, -1), True),
        (np.where(np.arange(3) == 1, np.inf, FEW), tf.Table([[0, np.inf, 1]] * 3), None, True),
        (FEW + 0.5, tf.Potts(2), None, False),
        (FEW, tf.Potts(0.5), None, False),
        (FEW, tf.Potts(1), weights_of(1, 2, 2.5), False),
        (FEW, tf.TruncatedLinear(1, 1.5), None, False),
        (FEW, tf.EdgeTables([np.ones((14, 15, 3, 3)), np.full((15, 14, 3, 3), 0.1)]), None, False),
        (FEW, tf.EdgeTables([np.ones((14, 15, 3, 3)), np.full((15, 14, 3, 3), -7)]), None, True),
    ],
)
def test_energies_are_whole_where_all_costs_are(unary, pairwise, weights, whole):
    assert tf.GridMRF(unary, pairwise, weights=weights).backend.is_whole == whole

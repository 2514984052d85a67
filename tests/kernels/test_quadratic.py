"""Spreading, the message rule of truncated quadratic costs with many labels, against the minimum over all labels."""

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import treefield as tf
from treefield.backends.shared import WeightRange
from treefield.kernels.rules import rule
from treefield.kernels.rules.quadratic import spread_rule
from treefield.kernels.simd.arrays import aligned
from treefield.kernels.simd.lanes import load, minimum, width

LANES = {np.int16: 16, np.float32: 8, np.float64: 8}
HIGHEST = 2000  # of the costs that messages are made of


@numba.njit(error_model="numpy")
def send(kind, weight, h, labels, sent):
    low = load(h, 0)
    for s in range(1, labels):
        low = minimum(load(h, s * width(h)), low)
    rule.message(kind, load(weight, 0), 0, True, low, h, 0, sent, 0, labels)


def spreading(labels, cutoff, spacing, dtype):
    pairwise = tf.TruncatedQuadratic(1, cutoff, values=np.arange(labels) * spacing)
    truncated = pairwise.rule(labels, np.dtype(dtype), WeightRange(0.0, 1.0, np.inf)).truncated
    costs = (np.arange(labels) * spacing) ** 2
    return spread_rule(truncated, costs[costs < cutoff].astype(dtype)), pairwise.table(labels)


def costs_of(rng, shape, labels):
    """Whole costs [label] of one lane."""
    s = np.arange(labels)
    if shape == "valley":
        return np.minimum(rng.integers(1, 20) * (s - rng.integers(labels)) ** 2, HIGHEST)
    if shape == "spikes":
        return np.where(rng.random(labels) < 3 / labels, rng.integers(0, HIGHEST, labels), HIGHEST)
    if shape == "walk":
        return np.abs(np.cumsum(rng.integers(-30, 31, labels))) % HIGHEST
    if shape == "slope":
        return np.minimum(rng.integers(0, 90) * s, HIGHEST)[:: rng.choice([-1, 1])]
    return rng.integers(0, HIGHEST, labels)


def message_of(made, weights, h, labels, dtype, in_place):
    costs, weight = aligned(h.size, dtype), aligned(len(weights), dtype)
    costs[:], weight[:] = h.reshape(-1), weights
    sent = costs if in_place else aligned(h.size, dtype)
    send(made, weight, costs, labels, sent)
    return sent.reshape(labels, -1)


def least_over_all_labels(h, weights, table):
    return np.array([(h[:, k] - h[:, k].min() + w * table).min(axis=1) for k, w in enumerate(weights)]).T


@pytest.mark.parametrize("dtype", LANES, ids=lambda dtype: dtype.__name__)
@given(
    seed=st.integers(0, 2**32 - 1),
    labels=st.integers(3, 150),
    cutoff=st.sampled_from([0, 1, 2, 9, 100, 400, np.inf]),
    spacing=st.integers(1, 3),
    in_place=st.booleans(),
)
@example(seed=0, labels=97, cutoff=400, spacing=1, in_place=True)  # the last block has one label
@settings(max_examples=100, deadline=None)
def test_spread_message_equals_the_minimum_over_all_labels(dtype, seed, labels, cutoff, spacing, in_place):
    rng = np.random.default_rng(seed)
    cutoff = min(cutoff, 400) if dtype == np.int16 else cutoff
    made, table = spreading(labels, cutoff, spacing, dtype)
    lanes = LANES[dtype]
    weights = rng.integers(0, rng.choice([2, 20]), lanes)
    shapes = rng.choice(["valley", "spikes", "walk", "slope", "any"], lanes)
    h = np.array([costs_of(rng, shape, labels) for shape in shapes]).T + rng.integers(0, 99, lanes)
    sent = message_of(made, weights, h, labels, dtype, in_place)
    np.testing.assert_array_equal(sent, least_over_all_labels(h, weights, table))


@pytest.mark.parametrize("labels", [961, 1500])
def test_a_cost_spreads_over_more_labels_than_there_are_bits(labels):
    made, table = spreading(labels, np.inf, 1, np.float64)
    rng = np.random.default_rng(labels)
    h = np.full((labels, 8), 1e7)
    h[rng.integers(0, labels, 8), np.arange(8)] = 0
    h[0, :2] = h[-1, 1:3] = 0
    weights = rng.uniform(0.5, 2, 8).round(3) * 1000
    sent = message_of(made, weights, h, labels, np.float64, False)
    np.testing.assert_allclose(sent, least_over_all_labels(h, weights, table), rtol=1e-12)


def test_forbidden_labels_cost_what_their_neighbours_hand_on():
    made, table = spreading(50, np.inf, 1, np.float64)
    h = np.full((50, 8), np.inf)
    h[np.arange(8) * 7, np.arange(8)] = np.arange(8)
    weights = np.arange(8.0)
    sent = message_of(made, weights, h, 50, np.float64, False)
    distances = (np.arange(50)[:, None] - np.arange(8) * 7) ** 2
    np.testing.assert_array_equal(sent, weights * distances)
    assert np.isfinite(table).all()

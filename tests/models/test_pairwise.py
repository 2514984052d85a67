"""Pairwise costs and the message rules they pick."""

import numpy as np
import pytest

import naive
import treefield as tf
from treefield.backends.shared import WeightRange


def rule(pairwise, labels, negative=False):
    weights = WeightRange(-1.0 if negative else 1.0, 1.0, np.inf)
    return type(pairwise.rule(labels, np.dtype(np.float32), weights)).__name__


@pytest.mark.parametrize(
    ("pairwise", "labels", "negative", "name"),
    [
        (tf.Potts(1), 5, False, "PottsRule"),
        (tf.Potts(1), 5, True, "SignedPottsRule"),
        (tf.Potts(1), 2, True, "BinaryRule"),
        (tf.TruncatedLinear(1, 2), 5, False, "LinearWindowRule"),
        (tf.TruncatedLinear(1, 20), 50, False, "LinearRule"),
        (tf.TruncatedLinear(1, 2), 5, True, "TableRule"),
        (tf.TruncatedLinear(1, 2, values=[3, 1, 2]), 3, False, "TableRule"),
        (tf.TruncatedLinear(1, np.inf, values=[1, 2, 9]), 3, False, "LinearRule"),
        (tf.TruncatedQuadratic(1, 7), 256, False, "WindowRule"),
        (tf.TruncatedQuadratic(1, np.inf), 16, False, "WindowRule"),
        (tf.TruncatedQuadratic(1, np.inf), 30, False, "SpreadRule"),
        (tf.TruncatedQuadratic(1, 200), 256, False, "SpreadRule"),
        (tf.TruncatedQuadratic(1, np.inf), 256, False, "SpreadRule"),
        (tf.TruncatedQuadratic(1, np.inf), 1000, False, "EnvelopeRule"),
        (tf.TruncatedQuadratic(1, 7, values=[0, 1, 5]), 3, False, "EnvelopeRule"),
        (tf.TruncatedQuadratic(1, 7), 5, True, "TableRule"),
        (tf.Table(np.zeros((3, 3))), 3, False, "TableRule"),
    ],
)
def test_each_pairwise_cost_picks_its_fast_message_rule(pairwise, labels, negative, name):
    assert rule(pairwise, labels, negative) == name


@pytest.mark.parametrize(("least", "name"), [(1.0, "TableRule"), (0.5, "CappedTableRule")])
def test_forbidden_pairs_on_edges_of_different_weights_are_capped(least, name):
    table = tf.Table([[0, np.inf, 1], [2, 3, 4], [5, 6, np.inf]])
    rule = table.rule(3, np.dtype(np.float64), WeightRange(least, 1.0, 64.0))
    assert type(rule).__name__ == name
    assert np.isfinite(rule.table).all() and rule.table.max() >= 64


def test_the_table_of_a_pairwise_cost_equals_its_definition():
    values = [0.0, 2.5, 3.0]
    np.testing.assert_array_equal(tf.Potts(9).table(3), naive.potts(3))
    np.testing.assert_array_equal(tf.TruncatedLinear(9, 2.4).table(5), naive.truncated_linear(5, 2.4))
    np.testing.assert_array_equal(tf.TruncatedLinear(9, 1, values).table(3), naive.truncated_linear(3, 1, values))
    np.testing.assert_array_equal(
        tf.TruncatedQuadratic(9, np.inf, values).table(3), naive.truncated_quadratic(3, np.inf, values)
    )


@pytest.mark.parametrize("labels", [3, 4, 7, 16])
@pytest.mark.parametrize("cutoff", [0, 0.5, 1, 2, 4, 7, 30, np.inf])
def test_the_window_rule_gives_the_labels_of_the_table_rule(labels, cutoff):
    rng = np.random.default_rng(labels)
    unary = rng.integers(0, 60, (9, 11, labels)).astype(np.float32)
    x = rng.integers(labels, size=(9, 11))
    for pairwise in (tf.TruncatedQuadratic(4.0, cutoff), tf.TruncatedLinear(4.0, cutoff)):
        by_table = tf.t_icm(tf.GridMRF(unary, tf.Table(4.0 * pairwise.table(labels))), x, maxiter=2)
        np.testing.assert_array_equal(tf.t_icm(tf.GridMRF(unary, pairwise), x, maxiter=2).x, by_table.x)


def test_the_repr_of_a_pairwise_cost_is_its_constructor_call():
    assert repr(tf.Potts(20.0)) == "Potts(20)"
    assert repr(tf.TruncatedLinear(1.5, 2)) == "TruncatedLinear(1.5, 2)"
    assert repr(tf.Table([[0, 1], [1, 0]])) == "Table([[0.0, 1.0], [1.0, 0.0]])"

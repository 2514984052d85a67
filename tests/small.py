"""A small model and what goes with it, for tests of odd and of bad input."""

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
SOLVERS = {"t_icm": tf.t_icm, "icm": tf.icm, "scan_line": tf.scan_line, "tree_bp": tf.tree_bp}
SOLVERS |= {"t_ils": tf.t_ils, "anneal": tf.anneal, "genetic": tf.genetic}


def check_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def with_value(array, value):
    """A float copy with one entry replaced."""
    array = np.array(array, float)
    array.flat[-1] = value
    return array


def model(unary=UNARY, pairwise=None, **keywords):
    return tf.GridMRF(unary, tf.Potts(1) if pairwise is None else pairwise, **keywords)

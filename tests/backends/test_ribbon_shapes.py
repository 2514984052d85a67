"""Ribbons of the smallest grids, of many labels, of masks and of costs of any magnitude."""

import math

import numpy as np
import pytest

import treefield as tf
from ribbon_sweeps import eliminated, energy_after_sweeps, random_labels


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 3), (1, 1, 1), (1, 4, 1)])
@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize("connectivity", [1, 2])
def test_the_smallest_grids_have_ribbons(shape, labels, connectivity):
    if len(shape) == 3 and connectivity == 2:
        return
    mrf = tf.GridMRF(np.random.default_rng(0).random((*shape, labels)), tf.Potts(0.3), connectivity=connectivity)
    for width in (None, 1):
        x = random_labels(mrf)
        energy_after_sweeps(mrf, mrf.backend.tree_set("ribbons", width=width), x)
        if sum(n > 1 for n in shape) <= 1:
            assert mrf.energy(x) == tf.tree_bp(mrf).fun


@pytest.mark.parametrize(
    ("labels", "connectivity", "shape", "width"),
    [
        (2, 1, (20, 30), 8),
        (2, 2, (20, 30), 7),
        (3, 1, (20, 30), 5),
        (16, 1, (20, 30), 2),
        (17, 1, (20, 30), 1),
        (300, 1, (20, 30), 1),
        (1, 1, (20, 30), 1),
        (2, 1, (3, 5), 5),
        (2, 1, (9, 9, 9), 8),
    ],
)
def test_the_width_that_is_not_given_has_at_most_256_states(labels, connectivity, shape, width):
    unary = np.zeros((*shape, labels), np.float32)
    trees = tf.GridMRF(unary, tf.Potts(1), connectivity=connectivity).backend.tree_set("ribbons")
    assert trees.width == width


def least_of_two_rows(unary, weight):
    """The least energy of a Potts model of two rows, by the costs of all pairs of labels of a column."""
    own = unary[0][:, :, None] + unary[1][:, None, :] + weight * (1 - np.eye(unary.shape[-1]))
    costs = own[0]
    for column in own[1:]:
        for axis in (0, 1):
            costs = np.minimum(costs, costs.min(axis, keepdims=True) + weight)
        costs = costs + column
    return float(costs.min())


@pytest.mark.parametrize("labels", [180, 300])
def test_many_labels_are_solved_in_ribbons_of_one_and_two_lines(labels):
    mrf = tf.GridMRF(np.random.default_rng(0).random((2, 6, labels)), tf.Potts(0.4))
    least = least_of_two_rows(mrf.unary, 0.4)
    x = random_labels(mrf)
    energy_after_sweeps(mrf, mrf.backend.tree_set("ribbons", width=1), x)
    assert mrf.energy(x) >= least - 1e-9
    mrf.backend.tree_set("ribbons", width=2).sweep(x)
    assert mrf.energy(x) == pytest.approx(least)


def test_masks_may_leave_out_whole_rows():
    rng = np.random.default_rng(0)
    mask = np.ones((8, 9), bool)
    mask[[0, 3, 4]] = mask[:, 5] = False
    unary = rng.random((8, 9, 2))
    unary[~mask] = np.nan
    mrf = tf.GridMRF(unary, tf.Potts(0.7), mask=mask)
    for width in range(1, 10):
        x = random_labels(mrf)
        assert math.isfinite(energy_after_sweeps(mrf, mrf.backend.tree_set("ribbons", width=width), x))
    assert mrf.energy(x) == pytest.approx(eliminated(mrf))


@pytest.mark.parametrize("scale", [1e-300, 1e30, 1e290])
@pytest.mark.parametrize("labels", [2, 3])
def test_tiny_and_huge_costs_are_solved_exactly(scale, labels):
    unary = np.random.default_rng(0).random((4, 12, labels))
    x = random_labels(tf.GridMRF(unary, tf.Potts(0.4)))
    y = x.copy()
    tf.GridMRF(unary, tf.Potts(0.4)).backend.tree_set("ribbons", width=4).sweep(x)
    mrf = tf.GridMRF(unary * scale, tf.Potts(0.4 * scale))
    assert mrf.backend.tree_set("ribbons", width=4).sweep(y) < 0
    np.testing.assert_array_equal(x, y)


def test_lines_of_one_site_read_no_edge_beyond_the_last():
    tables = [np.ones((3, 3, 1, 2, 2)), np.ones((3, 3, 1, 2, 2)), np.ones((3, 3, 0, 2, 2))]
    mrf = tf.GridMRF(np.zeros((3, 3, 1, 2)), tf.EdgeTables(tables), periodic=(True, True, False))
    trees = mrf.backend.tree_set("ribbons", width=2)
    for bar in trees._bars:
        lines = trees._layout(bar, bar.sizes).lines
        assert lines.edges.max() < len(mrf.backend._tables) // 4

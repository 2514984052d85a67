"""Grid models: dtypes, arithmetic, weights."""

import numpy as np
import pytest

import treefield as tf


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.zeros((2, 2, 2), np.uint8), "uint8"),
        (np.zeros((2, 2, 2), np.uint16), "uint16"),
        (np.zeros((2, 2, 2), np.float32), "float32"),
        (np.zeros((2, 2, 2), np.float64), "float64"),
        (np.zeros((2, 2, 2), np.float16), "float32"),
        (np.zeros((2, 2, 2), np.longdouble), "float64"),
        (np.zeros((2, 2, 2), np.bool_), "uint8"),
        (np.full((2, 2, 2), 255, np.int64), "uint8"),
        (np.full((2, 2, 2), 256, np.int32), "uint16"),
        (np.full((2, 2, 2), 65536, np.int32), "float32"),
        (np.full((2, 2, 2), -1, np.int8), "float32"),
        (np.full((2, 2, 2), 2**24, np.int64), "float32"),
        (np.full((2, 2, 2), 2**24 + 1, np.int64), "float64"),
        (np.zeros((2, 2, 2), ">f4"), "float32"),
        ([[[1, 2], [3, 4]]], "uint8"),
    ],
)
def test_a_unary_keeps_its_dtype_or_takes_the_smallest_exact_one(given, kept):
    mrf = tf.GridMRF(given, tf.Potts(1))
    assert mrf.unary.dtype == kept
    np.testing.assert_array_equal(mrf.unary, np.asarray(given))


def test_a_contiguous_unary_is_not_copied():
    unary = np.zeros((3, 3, 2), np.float32)
    assert np.shares_memory(tf.GridMRF(unary, tf.Potts(1)).unary, unary)


@pytest.mark.parametrize(
    ("unary", "pairwise", "weights", "dtype"),
    [
        (np.float32(1), tf.Potts(0.1), None, "float32"),
        (np.uint8(1), tf.Potts(2.0**25), None, "float64"),
        (np.float64(1), tf.Potts(1), None, "float64"),
        (np.float32(np.inf), tf.Potts(1), None, "float64"),
        (np.float32(1), tf.Table([[0, np.inf], [1, 0]]), None, "float64"),
        (np.float32(1), tf.Potts(1), (np.full((1, 2), 0.5), 1), "float32"),
        (np.float32(1), tf.Potts(1), (np.full((1, 2), 0.1), 1), "float64"),
    ],
)
def test_messages_are_float32_only_where_that_is_exact_enough(unary, pairwise, weights, dtype):
    assert tf.GridMRF(np.full((2, 2, 2), unary), pairwise, weights=weights).backend.dtype == dtype


def test_energies_are_summed_in_float64():
    mrf = tf.GridMRF(np.full((200, 300, 2), 0.1, np.float32), tf.Potts(0.1))
    x = np.indices((200, 300)).sum(axis=0) % 2
    edges = 199 * 300 + 200 * 299
    assert mrf.energy(x) == pytest.approx(60_000 * float(np.float32(0.1)) + edges * 0.1, rel=1e-11)


def test_an_edge_goes_from_the_lower_to_the_higher_index():
    mrf = tf.GridMRF(np.zeros((2, 2, 2)), tf.Table([[0, 1], [10, 0]]))
    assert mrf.energy([[0, 1], [0, 1]]) == 2 and mrf.energy([[1, 0], [1, 0]]) == 20
    assert mrf.energy([[0, 0], [1, 1]]) == 2 and mrf.energy([[1, 1], [0, 0]]) == 20


def test_weights_multiply_axis_by_axis():
    mrf = tf.GridMRF(np.zeros((2, 3, 2)), tf.Potts(2), weights=(np.array([[1, 2, 3]]), -4))
    assert mrf.energy([[0, 0, 0], [1, 1, 1]]) == 2 * (1 + 2 + 3)
    assert mrf.energy([[0, 1, 1], [0, 1, 1]]) == 2 * -8


def test_a_weight_of_zero_is_no_edge_even_for_a_forbidden_pair():
    mrf = tf.GridMRF(np.zeros((1, 2, 2)), tf.Table([[0, np.inf], [np.inf, 0]]), weights=(0, 0))
    assert mrf.energy([[0, 1]]) == 0


def test_a_function_of_two_labels_becomes_the_table_of_a_grid():
    mrf = tf.GridMRF(np.zeros((1, 2, 3)), lambda a, b: 10 * a + b)
    np.testing.assert_array_equal(mrf.pairwise.table(3), [[0, 1, 2], [10, 11, 12], [20, 21, 22]])


def test_a_grid_has_its_label_counts_and_size():
    mrf = tf.GridMRF(np.zeros((2, 3, 4, 5)), tf.Potts(1))
    assert mrf.shape == (2, 3, 4) and mrf.size == 24 and mrf.n_labels == 5
    counts = mrf.backend.label_counts
    assert counts.shape == mrf.shape and (counts == 5).all()


def test_scaling_all_costs_scales_the_energy():
    rng = np.random.default_rng(0)
    unary, x = rng.integers(0, 9, (5, 6, 3)), rng.integers(3, size=(5, 6))
    once, twice = (tf.GridMRF(k * unary, tf.TruncatedLinear(k, 1)).energy(x) for k in (1, 2))
    assert twice == 2 * once


def test_edge_tables_are_read_no_further_than_they_go():
    # the lanes beyond the only edge would lie gigabytes behind the tables
    labels = 1500
    tables = [np.zeros((0, 2, labels, labels)), np.ones((1, 1, labels, labels), np.float32)]
    mrf = tf.GridMRF(np.zeros((1, 2, labels), np.float32), tf.EdgeTables(tables))
    assert mrf.energy([[0, 0]]) == 1
    assert tf.merge(mrf, [[0, 0]], [[1, 1]]).tolist() == [[1, 1]]


@pytest.mark.parametrize("shape", [(4, 300, 400), (21, 375, 500), (2, 480, 640), (19, 512, 288), (63, 300, 300)])
def test_labels_along_the_first_axis_warn_at_the_callers_line(shape):
    unary = np.broadcast_to(np.uint8(0), shape)
    with pytest.warns(UserWarning, match=r"labels are its first axis, give np\.moveaxis\(unary, 0, -1\)") as caught:
        tf.GridMRF(unary, tf.Potts(1))
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    "shape",
    [
        (300, 400, 4),
        (3, 20, 300),
        (288, 384, 16),
        (200, 1500, 512),  # stereo
        (20, 1500, 512),  # rows of a stereo pair
        (32, 1024, 512),
        (64, 100, 300),  # a small image with many levels
        (20, 30, 1000),
        (1, 500, 300),  # a chain
        (4, 300, 256),  # intensities
        (3, 4, 300, 400),
    ],
)
def test_plausible_shapes_do_not_warn(shape):
    assert tf.GridMRF(np.broadcast_to(np.uint8(0), shape), tf.Potts(1)).shape == shape[:-1]


def test_a_model_built_by_an_application_does_not_warn_of_its_shape():
    assert tf.segment(np.zeros((4, 300)), maxiter=0, probabilities=np.full((4, 300, 400), 1 / 400)).shape == (4, 300)


def test_masked_sites_of_a_masked_array_are_no_sites():
    unary = np.random.default_rng(0).random((4, 5, 3))
    exists = np.random.default_rng(1).random((4, 5)) < 0.7
    masked = np.ma.array(unary, mask=np.broadcast_to(~exists[..., None], unary.shape))
    mrf, same = tf.GridMRF(masked, tf.Potts(1)), tf.GridMRF(unary, tf.Potts(1), mask=exists)
    np.testing.assert_array_equal(mrf.mask, exists)
    np.testing.assert_array_equal(mrf.unary, same.unary)


def test_a_masked_array_without_masked_entries_is_an_array():
    unary, exists = np.ma.array(np.ones((4, 5, 3))), np.eye(4, 5, dtype=bool)
    assert tf.GridMRF(unary, tf.Potts(1)).mask is None
    np.testing.assert_array_equal(tf.GridMRF(unary, tf.Potts(1), mask=exists).mask, exists)


def test_a_masked_array_raises_with_a_mask_or_if_only_some_labels_are_masked():
    unary = np.ma.array(np.ones((2, 2, 3)), mask=False)
    unary[0, 0] = np.ma.masked
    with pytest.raises(ValueError, match="unary is a masked array and mask is given as well"):
        tf.GridMRF(unary, tf.Potts(1), mask=np.ones((2, 2), bool))
    unary[1, 1, 2] = np.ma.masked
    with pytest.raises(ValueError, match=r"1 sites at which some labels are masked .* unary\.filled\(np\.inf\)"):
        tf.GridMRF(unary, tf.Potts(1))

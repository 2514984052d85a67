"""Errors for bad stereo pairs, seeds, spacings, fields and couplings."""

import numpy as np
import pytest

import treefield as tf
from odd_images import check_raises_in_one_line
from small import with_value

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 7), dtype=np.uint8)
COLOUR = np.stack([IMAGE] * 3, axis=-1)
FLOATS = IMAGE / 255
HOLE = IMAGE > 200
VOLUME = np.random.default_rng(1).random((6, 7, 4))
SEEDS = np.where(IMAGE > 128, 2, 1)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({}, TypeError, "num_disparities is missing: how many disparities to look at"),
        ({"num_disparities": 0}, ValueError, "num_disparities must be at least 1, got 0"),
        ({"num_disparities": 2.0}, TypeError, r"num_disparities must be an integer, got 2\.0"),
        ({"num_disparities": 8}, ValueError, "0 to 7 do not fit into images of 7 columns; .* at most 7"),
        (
            {"num_disparities": 6, "min_disparity": 2},
            ValueError,
            "2 to 7 do not fit into images of 7 columns; .* at most 5",
        ),
        ({"num_disparities": 1, "min_disparity": 7}, ValueError, "7 to 7 do not fit into images of 7 columns"),
        ({"num_disparities": 3, "min_disparity": -7}, ValueError, "-7 to -5 do not fit into images of 7 columns"),
        ({"num_disparities": 3, "min_disparity": 1.5}, TypeError, r"min_disparity must be an integer, got 1\.5"),
        ({"num_disparities": 3, "min_disparity": -(2**40)}, ValueError, "min_disparity must be at least -2147483648"),
        ({"cost_volume": VOLUME, "min_disparity": 2**31}, ValueError, "min_disparity must be below 2147483644"),
        ({"cost_volume": VOLUME[0]}, ValueError, r"cost_volume has shape \(7, 4\), expected \(6, 7, labels\)"),
        ({"cost_volume": VOLUME[:5]}, ValueError, r"cost_volume has shape \(5, 7, 4\), expected \(6, 7, 4\)"),
        ({"cost_volume": VOLUME, "num_disparities": 3}, ValueError, r"\(6, 7, 4\), expected \(6, 7, 3\)"),
        ({"cost_volume": VOLUME[..., :0]}, ValueError, r"\(6, 7, 0\): there must be at least one label"),
        ({"cost_volume": with_value(VOLUME, np.nan)}, ValueError, r"cost_volume holds NaN or -inf"),
        ({"cost_volume": with_value(VOLUME, -np.inf)}, ValueError, r"cost_volume holds NaN or -inf"),
        ({"cost_volume": "costs"}, TypeError, "cost_volume must hold real numbers, got dtype <U5"),
        (
            {"cost_volume": VOLUME, "occlusion": "fill"},
            ValueError,
            'occlusion="fill" matches both ways: it takes neither',
        ),
        ({"num_disparities": 2, "mask": HOLE, "occlusion": "mark"}, ValueError, "neither cost_volume nor mask"),
    ],
)
def test_disparities_and_costs_that_do_not_fit_a_pair_raise(keywords, error, message):
    check_raises_in_one_line(lambda: tf.stereo(IMAGE, IMAGE, **keywords), error, message)


def test_a_pair_of_different_shapes_raises():
    given = {"num_disparities": 2}
    message = r"left has shape \(6, 7\), but right has \(6, 6\): they must be the same"
    check_raises_in_one_line(lambda: tf.stereo(IMAGE, IMAGE[:, :6], **given), ValueError, message)
    grey = COLOUR[..., :1]
    message = r"left has shape \(6, 7, 3\), but right has \(6, 7, 1\)"
    check_raises_in_one_line(lambda: tf.stereo(COLOUR, grey, **given, channel_axis=-1), ValueError, message)


def test_a_colour_pair_without_channel_axis_raises_with_a_hint():
    message = r"left has shape \(6, 7, 3\), expected two dimensions; if these are colours, give channel_axis=-1"
    check_raises_in_one_line(lambda: tf.stereo(COLOUR, COLOUR, num_disparities=2), ValueError, message)
    message = r"left has shape \(2, 6, 7, 3\), expected two dimensions and channels"
    volumes = np.stack([COLOUR] * 2)
    check_raises_in_one_line(
        lambda: tf.stereo(volumes, volumes, num_disparities=2, channel_axis=-1), ValueError, message
    )


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (0, ValueError, "labels must be at least 1, got 0"),
        (2.0, TypeError, r"labels must be an integer, got 2\.0"),
        ("two", TypeError, "labels must be an integer, got 'two'"),
        (None, TypeError, "labels must be an integer, got None"),
        (True, TypeError, "labels must be an integer, got True"),
        (SEEDS * 1.0, TypeError, "labels must be a number of regions or an array of integers, got dtype float64"),
        (SEEDS * 1j, TypeError, "labels must hold real numbers, got dtype complex128"),
        (SEEDS[:5], ValueError, r"labels has shape \(5, 7\), but the image's is \(6, 7\)"),
        (0 * SEEDS, ValueError, "labels holds no seed: some pixels must have a label from 1 on"),
        (-SEEDS, ValueError, "labels holds no seed"),
        (SEEDS << 40, ValueError, "labels holds 2199023255552, expected at most 2147483647"),
        (SEEDS.astype(np.uint64) << np.uint64(62), ValueError, "labels holds 9223372036854775808, expected at most"),
        ([], TypeError, "labels must be a number of regions or an array of integers, got dtype float64"),
        ([[1, 2], [1]], TypeError, "labels must be an array of numbers, but its rows differ in length"),
    ],
)
def test_bad_labels_and_seeds_raise(labels, error, message):
    check_raises_in_one_line(lambda: tf.segment(IMAGE, labels), error, f"^{message}")


@pytest.mark.parametrize(
    ("spacing", "error", "message"),
    [
        (1.0, ValueError, r"spacing must be 2 numbers, one per axis, got shape \(\)"),
        ([1, 1, 1], ValueError, r"spacing must be 2 numbers, one per axis, got shape \(3,\)"),
        ([1, 0], ValueError, "spacing must be above 0, got 0"),
        ([1, -2], ValueError, "spacing must be above 0, got -2"),
        ([1, np.nan], ValueError, "spacing must be finite, got NaN"),
        ([1, np.inf], ValueError, "spacing must be finite, got inf"),
        (["1", "2"], TypeError, "spacing must hold real numbers, got dtype <U1"),
        ("12", TypeError, "spacing must hold real numbers"),
    ],
)
def test_a_bad_spacing_raises(spacing, error, message):
    check_raises_in_one_line(lambda: tf.segment(IMAGE, spacing=spacing), error, f"^{message}")


@pytest.mark.parametrize(
    ("fields", "couplings", "error", "message"),
    [
        (None, 1, TypeError, "fields must hold real numbers, got dtype object"),
        ([1j], 1, TypeError, "fields must hold real numbers, got dtype complex128"),
        (1.0, 1, ValueError, r"fields has shape \(\), expected \(N,\), \(M, N\) or \(P, M, N\) with at least one site"),
        ([], 1, ValueError, r"fields has shape \(0,\), expected"),
        (np.zeros((1, 2, 3, 4)), 1, ValueError, r"fields has shape \(1, 2, 3, 4\), expected"),
        ([0, np.nan], 1, ValueError, "fields holds NaN or infinity; every field must be a number"),
        ([0, np.inf], 1, ValueError, "fields holds NaN or infinity"),
        (FLOATS, None, TypeError, r"couplings\[0\] must hold real numbers, got dtype object"),
        (FLOATS, "strong", TypeError, r"couplings\[0\] must hold real numbers, got dtype <U6"),
        (FLOATS, 1j, TypeError, r"couplings\[0\] must hold real numbers, got dtype complex128"),
        (FLOATS, np.nan, ValueError, r"couplings\[0\] holds NaN or infinity; couplings must be finite"),
        (FLOATS, [1, -np.inf], ValueError, r"couplings\[1\] holds NaN or infinity"),
        (FLOATS, [1], ValueError, "couplings has 1 entries, expected one for each of the 2 axes of fields"),
        (FLOATS, [], ValueError, "couplings has 0 entries"),
        (FLOATS, [1, 2, 3], ValueError, "couplings has 3 entries, expected one for each of the 2 axes"),
        (
            FLOATS,
            [1, FLOATS],
            ValueError,
            r"couplings\[1\] has shape \(6, 7\), expected a number or \(6, 6\) for sites of",
        ),
        (
            FLOATS[0],
            [FLOATS[0]],
            ValueError,
            r"couplings\[0\] has shape \(7,\), expected a number or \(6,\) for sites of",
        ),
        (FLOATS[0], FLOATS[0], ValueError, "couplings has 7 entries, expected one for each of the 1 axes of fields"),
        (FLOATS * 1e308, 1, ValueError, "costs are too large"),
    ],
)
def test_fields_and_couplings_that_do_not_fit_each_other_raise(fields, couplings, error, message):
    check_raises_in_one_line(lambda: tf.ising(fields, couplings), error, f"^{message}")

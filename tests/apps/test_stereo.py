"""Stereo: matching costs against the naive versions, known shifts, and occlusions."""

import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_apps
import problems
import treefield as tf
from odd_images import DTYPES, check_options, check_result, check_same_seed, layouts, of_dtype
from treefield.apps import occlusions
from treefield.apps.stereo import stereo_problem
from treefield.apps.stereo_costs import COSTS, contrast_weights

SCENE = np.random.default_rng(0).integers(0, 256, (14, 60, 3), dtype=np.uint8)
COLOURS = SCENE[:, :36], SCENE[:, 3:39]  # a point is 3 columns further left in the right image
LEFT, RIGHT = (image[..., 1] for image in COLOURS)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1, 1), (1, 6), (5, 2), (4, 7)]),
    channels=st.integers(1, 4),
    dtype=st.sampled_from(["uint8", "float64"]),
    cost=st.sampled_from(COSTS),
)
def test_matching_costs_equal_the_naive_ones(seed, shape, channels, dtype, cost):
    rng = np.random.default_rng(seed)
    step = rng.choice([1, 8, 50])  # few greys, many ties; or costs that are truncated
    pair = [rng.integers(0, 256 // step, (*shape, channels)) * step for _ in range(2)]
    given = [of_dtype(image.astype(np.uint8), dtype) for image in pair]
    first = int(rng.integers(-shape[1] + 1, shape[1]))
    number = int(rng.integers(1, shape[1] - max(first, 0) + 1))
    volume = stereo_problem(*given, number, first, cost=cost, channel_axis=-1).mrf.unary
    expected = naive_apps.cost_volume(*pair, cost, range(first, first + number), volume.dtype.kind == "u")
    np.testing.assert_allclose(volume, expected, rtol=1e-4, atol=1e-3)
    if dtype == "uint8" and cost != "birchfield-tomasi":
        assert volume.dtype.kind == "u"


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(1, 1), (1, 5), (4, 6)]), channels=st.integers(1, 3))
def test_contrast_weights_equal_the_naive_ones(seed, shape, channels):
    image = np.random.default_rng(seed).integers(0, 20, (*shape, channels)).astype(np.float32)
    down, across = contrast_weights(image, 8, 3)
    for i, j in np.ndindex(*down.shape):
        assert down[i, j] == naive_apps.contrast_weight(image[i, j], image[i + 1, j], 8, 3)
    for i, j in np.ndindex(*across.shape):
        assert across[i, j] == naive_apps.contrast_weight(image[i, j], image[i, j + 1], 8, 3)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(1, 1), (3, 1), (1, 6), (4, 7)]), dtype=st.sampled_from("if")
)
def test_consistency_check_and_filling_equal_the_naive_ones(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    left, right = (rng.integers(-3, 5, shape).astype(np.int32) for _ in range(2))
    known = occlusions.consistent_pixels(left, right)
    np.testing.assert_array_equal(known, naive_apps.consistent_pixels(left, right))
    disparity = left if dtype == "i" else left.astype(np.float32) + np.float32(0.25)
    filled = occlusions.fill_background(disparity, known)
    assert filled.dtype == disparity.dtype
    np.testing.assert_array_equal(filled, naive_apps.fill_background(disparity, known))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(1, 1), (2, 5), (9, 8)]), labels=st.integers(1, 6))
def test_refined_labels_equal_the_naive_ones(seed, shape, labels):
    rng = np.random.default_rng(seed)
    volume = rng.random((*shape, labels)) + 0.2 * np.abs(np.arange(labels) - labels / 2)
    x = np.minimum(volume.argmin(axis=-1), rng.integers(labels)).astype(np.int32)
    refined = occlusions.refine_labels(x, volume)
    assert refined.dtype == np.float32 and np.abs(refined - x).max() <= 0.5
    np.testing.assert_allclose(refined, naive_apps.refine_labels(x, volume), atol=1e-5)


def share_right(disparity, shift):
    """The share of correct pixels among those that both images show."""
    inside = np.s_[:, max(shift, 0) : disparity.shape[1] + min(shift, 0)]
    return np.mean(np.abs(disparity[inside] - shift) < 0.5)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("colour", [False, True])
def test_stereo_finds_a_known_shift(cost, colour):
    pair, given = (COLOURS, {"channel_axis": -1}) if colour else ((LEFT, RIGHT), {})
    before = [image.copy() for image in pair]
    disparity, res = tf.stereo(*pair, num_disparities=8, cost=cost, rng=0, full_output=True, **given)
    assert disparity.dtype == np.int32 and disparity.shape == LEFT.shape
    assert share_right(disparity, 3) > 0.97
    check_result(res)
    np.testing.assert_array_equal(disparity, res.x)
    for image, copy in zip(pair, before, strict=True):
        np.testing.assert_array_equal(image, copy)


@pytest.mark.parametrize(("first", "shift"), [(-6, -3), (-3, -3), (2, 3), (3, 3), (-2, 3)])
def test_stereo_accepts_any_min_disparity(first, shift):
    pair = (LEFT, RIGHT) if shift > 0 else (RIGHT, LEFT)
    disparity, res = tf.stereo(*pair, num_disparities=7, min_disparity=first, rng=0, full_output=True)
    assert share_right(disparity, shift) > 0.97
    np.testing.assert_array_equal(disparity, res.x + first)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stereo_accepts_channels_on_any_axis(axis):
    moved = [np.moveaxis(image, -1, axis) for image in COLOURS]
    given = {"num_disparities": 6, "rng": 0, "occlusion": "fill"}
    np.testing.assert_array_equal(
        tf.stereo(*moved, **given, channel_axis=axis), tf.stereo(*COLOURS, **given, channel_axis=-1)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_stereo_accepts_any_real_dtype(dtype):
    pair = [of_dtype(image, dtype) for image in (LEFT, RIGHT)]
    assert share_right(tf.stereo(*pair, num_disparities=6, rng=0), 3) > 0.9


@pytest.mark.parametrize("name", layouts(LEFT))
def test_stereo_does_not_depend_on_memory_layout(name):
    pair = [layouts(image)[name] for image in (LEFT, RIGHT)]
    given = {"num_disparities": 5, "rng": 0, "occlusion": "mark"}
    np.testing.assert_array_equal(tf.stereo(*pair, **given), tf.stereo(LEFT, RIGHT, **given))


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e-3, 1e9, 1e90])
@pytest.mark.parametrize("cost", COSTS)
def test_matching_costs_do_not_depend_on_scale_and_brightness(scale, cost):
    pair = LEFT.copy(), RIGHT.copy()
    for image in pair:
        image[0, :2] = 0, 255
    plain = stereo_problem(*pair, 5, cost=cost).mrf.unary
    scaled = stereo_problem(*((image - 300.0) * scale for image in pair), 5, cost=cost).mrf.unary
    np.testing.assert_allclose(scaled, plain, atol=0.05)


def test_images_in_different_units_warn():
    image = np.random.default_rng(0).integers(0, 256, (12, 20), np.uint8)
    with pytest.warns(UserWarning, match="left is a uint8 image and right is a float64 image in 0..1"):
        tf.stereo(image, image / 255, num_disparities=2, maxiter=0, rng=0)
    tf.stereo(image, image.astype(float), num_disparities=2, maxiter=0, rng=0)


def test_matching_a_constant_image_costs_nothing():
    for value in (0, 200, 0.5, -1e9, 1e99):
        image = np.full((5, 8), value)
        for cost in COSTS:
            assert not stereo_problem(image, image, 1, cost=cost).mrf.unary.any()


def test_cost_volume_of_a_result_can_be_passed_in_again():
    given = {"rng": 0, "weight": 4.0, "subpixel": True, "full_output": True}
    disparity, res = tf.stereo(LEFT, RIGHT, num_disparities=6, **given)
    before = res.cost_volume.copy()
    again, same = tf.stereo(LEFT, RIGHT, cost_volume=res.cost_volume, **given)
    np.testing.assert_array_equal(again, disparity)
    assert same.fun == res.fun
    masked = tf.stereo(LEFT, RIGHT, cost_volume=res.cost_volume, mask=np.zeros(LEFT.shape), **given)[1]
    assert not masked.cost_volume.any()
    np.testing.assert_array_equal(res.cost_volume, before)  # not written to


def test_default_weight_of_a_cost_volume_is_a_fifth_of_its_mean():
    volume = np.random.default_rng(1).random((4, 5, 3))
    pair = np.zeros((4, 5)), np.zeros((4, 5))

    def weight(costs):
        return stereo_problem(*pair, None, cost_volume=costs).mrf.pairwise.weight

    assert weight(volume) == pytest.approx(volume.mean() / 5, rel=0.01)
    assert weight(-volume) == pytest.approx((volume.max() - volume).mean() / 5, rel=0.01)
    assert weight(np.where(volume > 0.9, np.inf, volume)) == pytest.approx(volume[volume <= 0.9].mean() / 5, rel=0.01)
    assert weight(0 * volume) == weight(np.full(volume.shape, np.inf)) == 1


def test_masked_pixels_take_the_disparity_of_their_neighbours():
    wrong = RIGHT.copy()
    wrong[4:9, 10:20] = 0
    mask = np.ones(LEFT.shape, bool)
    mask[4:9, 13:23] = False
    disparity, res = tf.stereo(LEFT, wrong, num_disparities=6, mask=mask, rng=0, full_output=True)
    assert not res.mrf.unary[~mask].any() and res.mrf.unary[mask].any()
    np.testing.assert_array_equal(disparity[4:9, 13:23], 3)


def smooth_pair(shift):
    """Two views of a smooth scene, shifted by a fraction of a column."""
    rng = np.random.default_rng(2)
    row, column = np.indices((16, 48))
    waves = [(rng.uniform(0.2, 0.9), rng.uniform(0, 0.5), rng.uniform(0, 6)) for _ in range(12)]
    return [sum(np.sin(a * (column + by) + b * row + c) for a, b, c in waves) for by in (0, shift)]


@pytest.mark.parametrize("shift", [2.0, 2.3, 2.5, 3.7])
@pytest.mark.parametrize("cost", ["absolute", "squared"])
def test_subpixel_disparities_are_close_to_a_fractional_shift(shift, cost):
    given = {"num_disparities": 8, "cost": cost, "rng": 0}
    refined = tf.stereo(*smooth_pair(shift), **given, subpixel=True)[:, 8:-4]
    whole = tf.stereo(*smooth_pair(shift), **given)[:, 8:-4]
    assert refined.dtype == np.float32
    assert np.abs(refined - whole).max() <= 0.5
    assert np.abs(refined - shift).mean() <= np.abs(whole - shift).mean() + 0.1
    assert np.median(np.abs(refined - shift)) < (0.2 if cost == "absolute" else 0.3)


def two_planes():
    """A square (disparity 6) in front of a wall (disparity 1), and the wall that only the left image shows."""
    rng = np.random.default_rng(3)
    wall, square = rng.integers(0, 256, (20, 61)), rng.integers(0, 256, (8, 20))
    left, right = wall[:, :60].copy(), wall[:, 1:].copy()
    left[6:14, 26:46] = right[6:14, 20:40] = square
    hidden = np.zeros((20, 60), bool)
    hidden[6:14, 21:26] = True
    return left.astype(np.uint8), right.astype(np.uint8), hidden


def test_occluded_pixels_are_marked_or_filled_with_the_background():
    left, right, hidden = two_planes()
    given = {"num_disparities": 10, "cost": "absolute", "rng": 0}
    marked = tf.stereo(left, right, **given, occlusion="mark")
    assert marked.dtype == np.float32
    assert np.isnan(marked[hidden]).mean() > 0.9 and np.isnan(marked[:, 10:][~hidden[:, 10:]]).mean() < 0.05
    kept = tf.stereo(left, right, **given)
    known = ~np.isnan(marked)
    np.testing.assert_array_equal(marked[known], kept[known])
    filled = tf.stereo(left, right, **given, occlusion="fill")
    assert filled.dtype == np.int32
    np.testing.assert_array_equal(filled, naive_apps.fill_background(kept, known))
    assert np.mean(filled[hidden] == 1) > 0.9


def test_subpixel_and_occlusion_can_be_combined():
    left, right, _ = two_planes()
    given = {"num_disparities": 12, "min_disparity": -2, "cost": "absolute", "rng": 0, "subpixel": True}
    kept, marked, filled = (tf.stereo(left, right, **given, occlusion=word) for word in ("keep", "mark", "fill"))
    assert kept.dtype == marked.dtype == filled.dtype == np.float32
    known = ~np.isnan(marked)
    np.testing.assert_array_equal(marked[known], kept[known])
    np.testing.assert_array_equal(filled[known], kept[known])


@pytest.mark.parametrize(("occlusion", "dtype"), [("mark", np.float32), ("fill", np.int32)])
def test_an_interrupt_returns_the_disparities_so_far_without_a_second_search(occlusion, dtype):
    calls = []

    def interrupt(res):
        calls.append(res.fun)
        signal.raise_signal(signal.SIGINT)

    given = {"num_disparities": 6, "weight": 30, "rng": 0, "tol": 0, "full_output": True}
    disparity, res = tf.stereo(RIGHT, LEFT, **given, occlusion=occlusion, callback=interrupt)
    assert len(calls) == 1 and not res.success and "interrupt" in res.message.lower()
    assert disparity.dtype == dtype
    np.testing.assert_array_equal(disparity, res.x)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
def test_stereo_accepts_images_as_small_as_one_pixel(shape):
    image = np.random.default_rng(4).integers(0, 256, shape, dtype=np.uint8)
    for occlusion in ("keep", "mark", "fill"):
        disparity = tf.stereo(image, image, num_disparities=1, subpixel=True, occlusion=occlusion)
        np.testing.assert_array_equal(disparity, np.zeros(shape, np.float32))


def test_stereo_passes_options_to_minimize():
    check_options(lambda **options: tf.stereo(RIGHT, LEFT, num_disparities=6, weight=30, **options))


def test_stereo_with_the_same_seed_gives_the_same_answer():
    given = {"num_disparities": 6, "occlusion": "fill", "maxiter": 3, "tol": 0}
    check_same_seed(lambda **options: tf.stereo(RIGHT, LEFT, **given, **options))


@pytest.mark.skipif(problems.data_folder() is None, reason="the pictures are not here: set TREEFIELD_DATA")
def test_tsukuba_has_less_than_5_percent_bad_pixels():
    left, right = (problems.picture(f"tsukuba/tsukuba-im{side}.png")[..., :3] for side in "LR")
    truth = problems.picture("tsukuba/tsukuba-truedispL.png").astype(float) / 16
    disparity = tf.stereo(left, right, num_disparities=16, channel_axis=-1, time_limit=5, rng=0)
    bad = np.abs(disparity - truth)[truth > 0] > 1
    assert bad.mean() < 0.05

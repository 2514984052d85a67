"""Inpainting: known pixels do not change, and holes are filled from their borders."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_apps
import treefield as tf
from odd_images import DTYPES, check_options, check_result, check_same_seed, layouts, of_dtype
from treefield.apps import biharmonic
from treefield.apps.filling import divided_sites
from treefield.apps.harmonic import harmonic_fill
from treefield.apps.hole_grid import OUTSIDE, hole_boxes, pack_holes
from treefield.apps.inpaint import inpaint_problem
from treefield.apps.restoration import Costs

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 7), dtype=np.uint8)
HOLE = np.zeros(IMAGE.shape, bool)
HOLE[2:5, 1:4] = True
FEW = {"levels": [0, 60, 140, 255], "rng": 0}


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1, 5), (4, 1), (3, 4), (2, 3, 2)]),
    dtype=st.sampled_from(["uint8", "float64"]),
    smoothness=st.sampled_from(["linear", "quadratic", "potts"]),
)
def test_inpaint_energy_has_no_data_cost_in_the_hole(seed, shape, dtype, smoothness):
    rng = np.random.default_rng(seed)
    image = of_dtype(rng.integers(0, 256, shape, dtype=np.uint8), dtype)
    hole = rng.random(shape) < 0.4
    hole.flat[0] = False
    unit = 1.0 if dtype == "uint8" else 1 / 255
    power = {"linear": 1, "quadratic": 0, "potts": 2}[smoothness]
    costs = {"data": "squared", "tau": 700.0 * unit**2, "smoothness": smoothness}
    costs |= {"weight": 1.5 * unit**power, "cutoff": 40.0 * unit}  # in the image's own units
    problem = inpaint_problem(image, hole, keep_known=False, levels=5, costs=Costs(**costs))
    x = rng.integers(problem.mrf.n_labels, size=problem.mrf.shape)
    expected = naive_apps.restoration_energy(image, problem.output(x), **costs, hole=hole) / unit**2
    np.testing.assert_allclose(problem.mrf.energy(x), expected, rtol=1e-4)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1, 6), (5, 1), (6, 7), (9, 11), (3, 4, 3), (1, 1, 5)]),
    dtype=st.sampled_from(["uint8", "float64"]),
    smoothness=st.sampled_from(["linear", "quadratic", "potts"]),
    density=st.sampled_from([0.03, 0.2, 0.9]),
)
def test_energy_of_the_holes_is_that_of_the_image_without_edges_between_known_pixels(
    seed, shape, dtype, smoothness, density
):
    rng = np.random.default_rng(seed)
    image = of_dtype(rng.integers(0, 256, shape, dtype=np.uint8), dtype)
    hole = rng.random(shape) < density
    hole.flat[rng.choice(hole.size, 2, replace=False)] = False, True
    unit = 1.0 if dtype == "uint8" else 1 / 255
    power = {"linear": 1, "quadratic": 0, "potts": 2}[smoothness]
    costs = {"smoothness": smoothness, "weight": 1.5 * unit**power, "cutoff": 40.0 * unit}
    levels = np.unique(image)  # a Potts cost compares with the nearest level
    if smoothness != "potts":
        levels = np.linspace(levels[0], levels[-1], 5).astype(image.dtype)
    problem = inpaint_problem(image, hole, levels=levels, costs=Costs(**costs), channel_axis=None)
    x = np.where(problem.mrf.mask, rng.integers(problem.mrf.n_labels, size=problem.mrf.shape), 0)
    filled = problem.output(x)
    np.testing.assert_array_equal(filled[~hole], image[~hole])
    expected = naive_apps.filling_energy(image, filled, hole=hole, **costs) / unit**2
    np.testing.assert_allclose(problem.mrf.energy(x), expected, rtol=1e-5)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1, 9), (7, 1), (8, 9), (20, 30), (4, 5, 6)]),
    density=st.sampled_from([0.01, 0.1, 0.5]),
)
def test_packed_holes_have_the_neighbours_that_they_have_in_the_image(seed, shape, density):
    rng = np.random.default_rng(seed)
    hole = rng.random(shape) < density
    hole.flat[rng.integers(hole.size)] = True
    grid = pack_holes(hole)
    np.testing.assert_array_equal(np.sort(grid.pixels[grid.hole]), np.flatnonzero(hole))
    for place in map(tuple, np.argwhere(grid.hole)):
        pixel = np.unravel_index(grid.pixels[place], shape)
        around = [grid.pixels[other] for other in naive.neighbours(grid.pixels.shape, place)]
        expected = [np.ravel_multi_index(other, shape) for other in naive.neighbours(shape, pixel)]
        assert sorted(number for number in around if number != OUTSIDE) == sorted(expected)


def test_boxes_of_holes_that_touch_at_a_corner_are_merged():
    hole = np.zeros((9, 12), bool)
    hole[1:3, 1:3] = hole[3, 3] = hole[6:, 8:10] = hole[0, 11] = True
    boxes = {tuple((part.start, part.stop) for part in box) for box in hole_boxes(hole)}
    assert boxes == {((1, 4), (1, 4)), ((6, 9), (8, 10)), ((0, 1), (11, 12))}


@pytest.mark.parametrize("max_direct", [0, 10_000])
@pytest.mark.parametrize("shape", [(1, 12), (12, 1), (9, 10), (7, 8, 9)])
def test_biharmonic_filling_continues_a_plane(shape, max_direct, monkeypatch):
    monkeypatch.setattr(biharmonic, "_MAX_DIRECT", max_direct)
    plane = 1e5 + np.tensordot([3, -2, 0.5][: len(shape)], np.indices(shape), 1)
    hole = np.zeros(shape, bool)
    hole[tuple(slice(n // 3, n // 3 + 3) for n in shape)] = True
    start = np.full((2, np.count_nonzero(hole)), 1e5)
    filled = biharmonic.biharmonic_fill(np.stack([np.where(hole, 0, plane), -plane]), hole, start)
    np.testing.assert_allclose(filled, [plane[hole], -plane[hole]], atol=0.01)


def test_a_continued_edge_divides_its_hole_only():
    sites = np.ones((4, 7), bool)
    sites[:, 3] = False
    grey = np.zeros(sites.shape)
    grey[:, 1], grey[0, 5] = 60, 60  # three pieces in one hole, a single site in the other
    expected = np.zeros(sites.shape, bool)
    expected[:, :3] = True
    np.testing.assert_array_equal(divided_sites(grey, sites, 60.0), expected[sites])
    assert not divided_sites(grey, sites, 61.0).any()


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(1, 9), (7, 1), (6, 7), (3, 4, 3)]))
def test_every_pixel_of_a_harmonic_filling_is_the_mean_of_its_neighbours(seed, shape):
    rng = np.random.default_rng(seed)
    offset = rng.choice([0.0, 1e6])  # however bright the image
    images, hole = offset + rng.random((2, *shape)), rng.random(shape) < 0.5
    hole.flat[rng.integers(hole.size)] = False
    filled = harmonic_fill(images, hole)
    for image, known in zip(filled, images, strict=True):
        np.testing.assert_allclose(image[~hole], known[~hole], rtol=1e-14)
        assert naive_apps.away_from_mean(image, hole) < 0.01
        assert image.min() > known[~hole].min() - 0.01 and image.max() < known[~hole].max() + 0.01


@pytest.mark.parametrize("dtype", DTYPES)
def test_inpaint_does_not_change_known_pixels(dtype):
    image = of_dtype(IMAGE, dtype)
    before, mask = image.copy(), HOLE.copy()
    restored = tf.inpaint(image, mask, levels=4, maxiter=1, rng=0)
    assert restored.dtype == image.dtype and restored.shape == image.shape
    if dtype == "longdouble":  # works in double precision
        np.testing.assert_allclose(restored[~HOLE], image[~HOLE], rtol=1e-15)
    else:
        np.testing.assert_array_equal(restored[~HOLE], image[~HOLE])
    np.testing.assert_array_equal(image, before)
    np.testing.assert_array_equal(mask, HOLE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e308, 5.0, -0.0])
def test_inpaint_ignores_the_values_in_the_hole(value):
    image = IMAGE / 255
    plain = tf.inpaint(np.where(HOLE, 0.5, image), HOLE, levels=4, rng=0)
    np.testing.assert_array_equal(tf.inpaint(np.where(HOLE, value, image), HOLE, levels=4, rng=0), plain)


@pytest.mark.parametrize("name", layouts(IMAGE))
def test_inpaint_does_not_depend_on_memory_layout(name):
    image = IMAGE / 255
    plain = tf.inpaint(image, HOLE, levels=4, rng=0)
    np.testing.assert_array_equal(tf.inpaint(layouts(image)[name], layouts(HOLE)[name], levels=4, rng=0), plain)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, list])
def test_inpaint_accepts_masks_of_numbers(dtype):
    mask = HOLE.tolist() if dtype is list else (3 * HOLE).astype(dtype)
    np.testing.assert_array_equal(tf.inpaint(IMAGE, mask, **FEW), tf.inpaint(IMAGE, HOLE, **FEW))


def test_inpaint_with_an_empty_mask_returns_the_image():
    restored, res = tf.inpaint(IMAGE, np.zeros(IMAGE.shape, bool), levels=4, rng=0, full_output=True)
    np.testing.assert_array_equal(restored, IMAGE)
    check_result(res)


def test_inpaint_raises_if_the_mask_covers_the_image():
    with pytest.raises(ValueError, match="mask covers the whole image: there is nothing to fill it from"):
        tf.inpaint(IMAGE, np.ones(IMAGE.shape, bool))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_inpaint_continues_a_ramp(axis, dtype):
    ramp = of_dtype((10 * np.indices((12, 14))[axis]).astype(np.uint8), dtype)
    mask = np.zeros(ramp.shape, bool)
    mask[3:9, 4:10] = True
    restored = tf.inpaint(np.where(mask, ramp.dtype.type(0), ramp), mask, rng=0)
    np.testing.assert_allclose(restored.astype(float), ramp.astype(float), atol=4 if dtype == "uint8" else 4 / 255)


def test_inpaint_continues_an_edge():
    image = np.kron([[40, 200]], np.ones((12, 8))).astype(np.uint8)
    mask = np.zeros(image.shape, bool)
    mask[4:8, 4:12] = True
    np.testing.assert_array_equal(tf.inpaint(np.where(mask, 255, image), mask, rng=0), image)


def test_inpaint_fills_everything_from_one_known_pixel():
    mask = np.ones((5, 6), bool)
    mask[2, 3] = False
    np.testing.assert_array_equal(tf.inpaint(IMAGE[:5, :6], mask, rng=0), np.full((5, 6), IMAGE[2, 3]))


@pytest.mark.parametrize("shape", [(1, 2), (1, 7), (7, 1), (1, 1, 4), (2, 2, 2)])
def test_inpaint_accepts_images_one_pixel_wide(shape):
    image = np.random.default_rng(2).random(shape)
    mask = np.zeros(shape, bool)
    mask.flat[-1] = True
    restored, res = tf.inpaint(image, mask, levels=4, rng=0, full_output=True)
    np.testing.assert_array_equal(restored[~mask], image[~mask])
    check_result(res)


def test_inpaint_with_denoise_maps_all_pixels_to_levels():
    restored, res = tf.inpaint(IMAGE, HOLE, **FEW, denoise=True, full_output=True)
    check_result(res)
    np.testing.assert_array_equal(restored, np.array(FEW["levels"], np.uint8)[res.x])
    assert not res.mrf.unary[HOLE].any()


def test_inpaint_labels_are_indices_of_levels_in_the_box_of_the_hole():
    restored, res = tf.inpaint(IMAGE, HOLE, **FEW, full_output=True)
    check_result(res)
    assert res.mrf.shape == (5, 5)  # the hole and its rim
    inner = np.zeros((5, 5), bool)
    inner[1:4, 1:4] = True
    np.testing.assert_array_equal(res.mrf.mask, inner)
    np.testing.assert_array_equal(restored[HOLE], np.array(FEW["levels"], np.uint8)[res.x[inner]])
    assert not res.x[~inner].any()


def test_inpaint_model_of_a_small_hole_in_a_large_image_is_small():
    image = np.add.outer(np.arange(1000), np.arange(1200)).astype(np.uint16)
    mask = np.zeros(image.shape, bool)
    mask[500:504, 700:706] = mask[:3, -2:] = True
    problem = inpaint_problem(np.stack([image, image]), mask, channel_axis=0)
    assert problem.mrf.size <= 2 * (6 + 5) * (8 + 4) and np.count_nonzero(problem.mrf.mask) == 2 * (4 * 6 + 3 * 2)


def test_inpaint_levels_span_the_values_around_the_hole():
    image = np.full((60, 60), 90, np.uint8)
    image[30:40, 30:40] = np.arange(100, 200).reshape(10, 10)
    image[0, 0], image[59, 59] = 0, 255
    mask = np.zeros(image.shape, bool)
    mask[33:36, 33:36] = True
    assert inpaint_problem(image, mask).mrf.n_labels == 199 - 90 + 1
    image[20, 20] = 255  # too far away
    assert inpaint_problem(image, mask).mrf.n_labels == 199 - 90 + 1


@pytest.mark.parametrize("shape", [(12, 14), (5, 6, 7)])
def test_inpaint_fills_several_holes_as_each_alone(shape):
    image = np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)
    masks = np.zeros((3, *shape), bool)
    masks[0, ..., :2, :2] = True  # at a corner, in the middle, and one site at the border
    masks[1, 2:4, ..., 3:5] = True
    masks[2, ..., -1, -1] = True
    given = {**FEW, "tol": 0, "full_output": True, "channel_axis": None}
    restored, res = tf.inpaint(image, masks.any(axis=0), **given)
    check_result(res)
    np.testing.assert_array_equal(restored[~masks.any(axis=0)], image[~masks.any(axis=0)])
    alone = [tf.inpaint(image, mask, **given)[1].fun for mask in masks]
    if len(shape) == 2:
        assert res.fun == pytest.approx(sum(alone), rel=1e-9)
    else:  # in the volume the holes touch
        assert res.fun <= sum(alone)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_inpaint_fills_each_channel_separately(axis):
    colour = np.stack([IMAGE, IMAGE[::-1], IMAGE[:, ::-1]], axis=axis)
    given = {**FEW, "weight": 1.0, "tol": 0, "full_output": True}
    restored, res = tf.inpaint(colour, HOLE, **given, channel_axis=axis)
    assert restored.shape == colour.shape
    alone = [tf.inpaint(colour.take(channel, axis=axis), HOLE, **given)[1] for channel in range(3)]
    assert res.fun == pytest.approx(sum(one.fun for one in alone), rel=1e-9)
    np.testing.assert_array_equal(np.moveaxis(restored, axis, 0)[:, ~HOLE], np.moveaxis(colour, axis, 0)[:, ~HOLE])


def test_inpaint_passes_options_to_minimize():
    rng = np.random.default_rng(3)
    image, mask = rng.integers(0, 256, (12, 12), dtype=np.uint8), rng.random((12, 12)) < 0.8
    check_options(lambda **options: tf.inpaint(image, mask, levels=FEW["levels"], **options))


def test_inpaint_with_the_same_seed_gives_the_same_answer():
    check_same_seed(lambda **options: tf.inpaint(IMAGE, HOLE, levels=FEW["levels"], maxiter=3, tol=0, **options))


def test_inpaint_error_on_a_photograph_is_close_to_biharmonic_inpainting():
    data, restoration = pytest.importorskip("skimage.data"), pytest.importorskip("skimage.restoration")
    image = data.camera()[100:196, 190:286]
    mask = np.random.default_rng(4).random(image.shape) < 0.3
    restored = tf.inpaint(np.where(mask, 0, image), mask, time_limit=3, rng=0)
    biharmonic = 255 * restoration.inpaint_biharmonic(np.where(mask, 0, image) / 255, mask)
    error, of_peer = (np.abs(answer - image.astype(float))[mask].mean() for answer in (restored, biharmonic))
    assert error < 1.3 * of_peer


@pytest.mark.parametrize("given", [{"sigma": 100}, {"weight": 1e-3}, {"tau": 0.1}])
def test_parameter_far_from_the_noise_of_the_known_pixels_warns_with_denoise(given):
    noisy = np.random.default_rng(0).normal(100, 10, (40, 40)).astype(np.uint8)
    mask = np.zeros(noisy.shape, bool)
    mask[10:14, 20:24] = True
    with pytest.warns(UserWarning, match=r"is far (from|below)"):
        tf.inpaint(noisy, mask, denoise=True, maxiter=0, rng=0, **given)
    tf.inpaint(noisy, mask, maxiter=0, rng=0, **given)  # has no data cost

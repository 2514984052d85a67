"""Denoising: the energy, dtypes and layouts, and how much noise is removed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_apps
import treefield as tf
from odd_images import DTYPES, check_options, check_result, check_same_seed, layouts, of_dtype
from treefield.apps.denoise import denoise_problem
from treefield.apps.level_model import whole_box
from treefield.apps.noise import estimate_noise, outlier_costs
from treefield.apps.patch_means import BORDER, patch_means
from treefield.apps.restoration import Costs, restoration_model

NOISY = np.random.default_rng(0).integers(0, 256, (6, 7), dtype=np.uint8)
COLOUR = np.random.default_rng(1).integers(0, 256, (5, 6, 3), dtype=np.uint8)
FEW = {"levels": [0, 60, 140, 255], "rng": 0}


DATA_POWERS = {"squared": 2, "absolute": 1}
SMOOTHNESS_POWERS = {"quadratic": 2, "linear": 1, "potts": 0}


def in_units(costs, unit):
    """Costs in grey levels, as costs in an image's own units, one of whose grey levels is `unit`."""
    data, smoothness = DATA_POWERS[costs["data"]], SMOOTHNESS_POWERS[costs["smoothness"]]
    scaled = {"tau": costs["tau"] * unit**data, "weight": costs["weight"] * float(unit) ** (data - smoothness)}
    return costs | scaled | {"cutoff": costs["cutoff"] * unit}


def unit_of(image):
    """The size of one grey level, 255 of which lie between black and white."""
    if image.dtype == np.uint8:
        return 1.0
    low, high = float(image.min()), float(image.max())
    if image.dtype == bool or (image.dtype.kind == "f" and low >= 0 and high <= 1):
        return 1 / 255
    return (high - low) / 255 or 1.0


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1, 1), (1, 5), (4, 1), (3, 4), (2, 3, 2)]),
    dtype=st.sampled_from(DTYPES),
    levels=st.sampled_from([1, 3, 256]),
    data=st.sampled_from(["squared", "absolute"]),
    smoothness=st.sampled_from(["linear", "quadratic", "potts"]),
)
def test_denoise_energy_is_the_one_of_the_docstring(seed, shape, dtype, levels, data, smoothness):
    rng = np.random.default_rng(seed)
    image = of_dtype(rng.integers(0, 256, shape, dtype=np.uint8), dtype)
    tau, weight, cutoff = rng.integers(1, 900), rng.integers(0, 9) / 2, rng.integers(1, 200)
    unit = unit_of(image)
    costs = in_units({"data": data, "tau": tau, "smoothness": smoothness, "weight": weight, "cutoff": cutoff}, unit)
    problem = denoise_problem(image, levels=levels, costs=Costs(**costs))
    x = rng.integers(problem.mrf.n_labels, size=problem.mrf.shape)
    expected = naive_apps.restoration_energy(image, problem.output(x), **costs) / unit ** DATA_POWERS[data]
    tolerance = 0.02 if dtype == "float16" else 1e-4  # what the output is rounded to
    np.testing.assert_allclose(problem.mrf.energy(x), expected, rtol=tolerance, atol=tolerance * tau * image.size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_restored_image_has_the_dtype_and_shape_of_the_input_which_is_not_modified(dtype):
    image = of_dtype(NOISY, dtype)
    before = image.copy()
    restored = tf.denoise(image, levels=4, maxiter=1, rng=0)
    assert restored.dtype == image.dtype and restored.shape == image.shape
    assert image.min() <= restored.min() and restored.max() <= image.max()
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("name", layouts(NOISY))
def test_denoise_does_not_depend_on_memory_layout(name):
    image = NOISY / 255
    np.testing.assert_array_equal(tf.denoise(layouts(image)[name], levels=4, rng=0), tf.denoise(image, levels=4, rng=0))


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (1, 1, 1), (2, 1, 3), (3, 2, 2)])
def test_denoise_accepts_images_as_small_as_one_pixel(shape):
    image = np.random.default_rng(2).random(shape)
    restored, res = tf.denoise(image, levels=4, rng=0, full_output=True)
    assert restored.shape == shape
    check_result(res)


@pytest.mark.parametrize("value", [0, 7, 255, 0.25, -3.5, 1e99, 5e-324, np.int32(-(2**31)), np.uint16(2**16 - 1)])
def test_denoise_leaves_a_constant_image_unchanged(value):
    image = np.full((4, 5), value)
    np.testing.assert_array_equal(tf.denoise(image), image)


@pytest.mark.parametrize(
    "ends",
    [
        np.array([0, 2**16 - 1], np.uint16),
        np.array([-(2**31), 2**31 - 1], np.int32),
        np.array([-3e38, 3e38], np.float32),
        np.array([-1e99, 1e99]),
        np.array([-1e-300, 1e-300]),
        np.array([1e9, 1e9 + 1e-6]),
    ],
    ids=str,
)
def test_denoise_keeps_the_extreme_values_of_a_dtype(ends):
    image = ends[(np.indices((4, 6)).sum(axis=0) > 4).astype(int)]
    restored = tf.denoise(image, levels=2, data="squared", weight=0)
    np.testing.assert_array_equal(restored, image)


@pytest.mark.parametrize("ends", [[-5e-324, 5e-324], [0, 5e-324], [0, 1e-300]], ids=str)
def test_denoise_accepts_images_whose_range_underflows(ends):
    image = np.array(ends)[(np.indices((4, 6)).sum(axis=0) > 4).astype(int)]
    assert set(np.unique(tf.denoise(image))) <= set(ends)


def test_labels_are_indices_of_the_levels():
    restored, res = tf.denoise(NOISY, **FEW, full_output=True)
    check_result(res)
    np.testing.assert_array_equal(restored, np.array(FEW["levels"], np.uint8)[res.x])


def test_default_levels_are_all_integers_in_8_bits_and_evenly_spaced_otherwise():
    assert denoise_problem(NOISY, levels=256).mrf.n_labels == int(NOISY.max()) - int(NOISY.min()) + 1
    assert denoise_problem(NOISY > 9, levels=256).mrf.n_labels == 2
    deep = NOISY.astype(np.uint16) * 200
    problem = denoise_problem(deep, levels=5, costs=Costs(data="squared"))
    ends = problem.output(np.full(deep.shape, 0)).max(), problem.output(np.full(deep.shape, 4)).min()
    assert problem.mrf.n_labels == 5 and ends == (deep.min(), deep.max())
    assert denoise_problem(NOISY, levels=[3, 9, 3]).mrf.n_labels == 2  # once each


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_denoise_accepts_channels_on_any_axis(axis):
    restored = tf.denoise(COLOUR, **FEW, channel_axis=-1)
    moved = tf.denoise(np.moveaxis(COLOUR, -1, axis), **FEW, channel_axis=axis)
    np.testing.assert_array_equal(np.moveaxis(moved, axis, -1), restored)


def test_denoise_restores_each_channel_separately():
    given = {"levels": FEW["levels"], "tau": 900.0, "weight": 4.0, "tol": 0, "rng": 0, "full_output": True}
    restored, res = tf.denoise(COLOUR, **given, channel_axis=-1)
    alone = [tf.denoise(COLOUR[..., channel], **given) for channel in range(3)]
    assert res.fun == pytest.approx(sum(one.fun for _, one in alone), rel=1e-9)  # all are optimal: tol = 0
    for channel in range(3):
        np.testing.assert_array_equal(res.mrf.unary[5 * channel : 5 * channel + 5], alone[channel][1].mrf.unary)
        energy = alone[channel][1].mrf.energy(res.x[5 * channel : 5 * channel + 5])
        assert energy == pytest.approx(alone[channel][1].fun, rel=1e-9)
    assert restored.shape == COLOUR.shape


def test_denoise_accepts_a_volume_with_channels():
    volume = np.random.default_rng(3).random((2, 3, 4, 2))
    given = {"levels": 3, "tau": 900.0, "weight": 4.0, "rng": 0, "tol": 0, "full_output": True}
    restored, res = tf.denoise(volume, **given, channel_axis=-1)
    assert restored.shape == volume.shape
    check_result(res)


@pytest.mark.parametrize(
    "call",
    [
        lambda **given: tf.denoise(COLOUR, levels=2, maxiter=0, **given),
        lambda **given: tf.inpaint(COLOUR, COLOUR > 200, levels=2, maxiter=0, **given),
        lambda **given: tf.segment(COLOUR, maxiter=0, **given),
        lambda **given: tf.denoise_tiled(COLOUR, levels=2, maxiter=0, **given),
    ],
    ids=["denoise", "inpaint", "segment", "denoise_tiled"],
)
def test_colours_without_channel_axis_raise_unless_it_is_none(call):
    with pytest.raises(ValueError, match=r"^image has shape \(5, 6, 3\): if these are colours, give channel_axis=-1;"):
        call()
    assert call(channel_axis=None).shape == COLOUR.shape


@pytest.mark.parametrize("shape", [(4, 6, 3), (3, 5, 6), (5, 6, 5), (5, 6, 3, 3)])
def test_only_images_that_look_like_colours_need_a_channel_axis(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    if len(shape) == 3:
        assert tf.denoise(image, levels=2, maxiter=0).shape == shape
    else:
        with pytest.raises(ValueError, match=r"expected two or three dimensions$"):
            tf.denoise(image, levels=2, maxiter=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_denoise_does_not_depend_on_the_scale_of_the_values(dtype):
    image = np.array([[0, 10, 20, 250], [5, 15, 240, 255], [0, 255, 3, 9]], np.uint8)
    restored = tf.denoise(image, **FEW)
    scaled = tf.denoise((image / 255).astype(dtype), rng=0, levels=np.array(FEW["levels"]) / 255)
    np.testing.assert_allclose(scaled * 255, restored, atol=0.2 if dtype == np.float16 else 1e-4)
    deep = tf.denoise(image.astype(np.int32) * 1000 - 99, rng=0, levels=np.array(FEW["levels"]) * 1000 - 99)
    np.testing.assert_array_equal(deep, restored.astype(np.int32) * 1000 - 99)


def test_denoise_passes_options_to_minimize():
    check_options(lambda **options: tf.denoise(NOISY, levels=FEW["levels"], **options))


def test_denoise_with_the_same_seed_gives_the_same_answer():
    check_same_seed(lambda **options: tf.denoise(NOISY, levels=FEW["levels"], maxiter=3, tol=0, **options))


def test_noise_estimate_is_close_to_the_true_sigma_and_share_of_impulses():
    rng = np.random.default_rng(4)
    clean = np.kron([[60, 180], [120, 90]], np.ones((60, 60)))
    for sigma in (8, 20):
        estimate, impulses = estimate_noise(rng.normal(clean, sigma)[None])
        assert 0.8 * sigma < estimate < 1.2 * sigma and impulses.sum() < 0.01
    hit = rng.random(clean.shape) < 0.2
    estimate, impulses = estimate_noise(np.where(hit, 255 * rng.integers(0, 2, clean.shape), clean)[None])
    assert estimate == 0 and 0.1 < impulses.sum() < 0.25
    assert min(impulses[[0, -1]]) > 0.05 and impulses[1:-1].sum() < 0.01
    sigma, impulses = estimate_noise(clean[None], hole=np.ones(clean.shape, bool))
    assert sigma == 0 and not impulses.any()  # nothing to look at


def test_outlier_cost_is_lower_for_values_that_impulses_have():
    salt = np.zeros(256)
    salt[255] = 0.1
    costs = outlier_costs(10.0, salt)
    assert costs[255] < 2 < 5 < costs[0] == costs[254]
    assert (outlier_costs(10.0, np.zeros(256)) > costs).all()
    assert (outlier_costs(1e9, np.full(256, 1 / 256)) == 0.5).all()


def psnr(image, clean):
    return 10 * np.log10(255**2 / np.mean((image.astype(float) - clean) ** 2))


@pytest.fixture(scope="module")
def camera():
    return pytest.importorskip("skimage.data").camera()[100:196, 190:286]


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_denoise_beats_median_and_total_variation_on_salt_and_pepper(camera, share):
    filters, restoration = pytest.importorskip("skimage.filters"), pytest.importorskip("skimage.restoration")
    rng = np.random.default_rng(5)
    noisy = np.where(rng.random(camera.shape) < share, 255 * rng.integers(0, 2, camera.shape), camera).astype(np.uint8)
    restored = psnr(tf.denoise(noisy, time_limit=3, rng=0), camera)
    peers = [filters.median(noisy)]
    peers += [255 * restoration.denoise_tv_chambolle(noisy / 255, weight=weight) for weight in (0.1, 0.3, 0.6)]
    assert restored >= max(psnr(peer, camera) for peer in peers)


def test_denoise_raises_psnr_under_gaussian_noise_by_4_db(camera):
    noisy = np.clip(np.random.default_rng(6).normal(camera, 20), 0, 255).astype(np.uint8)
    assert psnr(tf.denoise(noisy, time_limit=3, rng=0), camera) > psnr(noisy, camera) + 4


# --- no noise, text, and what lies between the levels -----------------------------------------------------------------


def page_of_text():
    """A white page with black marks, two to six pixels wide, and dots."""
    page = np.full((96, 128), 255, np.uint8)
    for row in range(8, 80, 16):
        for column in range(6, 120, 12):
            page[row : row + 10, column : column + 2] = 0
            page[row + 4 : row + 6, column : column + 6] = 0
            page[row + 11 : row + 13, column + 7 : column + 9] = 0
    return page


@pytest.mark.parametrize("name", ["camera", "page", "text", "coins", "moon", "brick", "horse"])
def test_picture_without_noise_is_returned_unchanged(name):
    image = getattr(pytest.importorskip("skimage.data"), name)()
    restored, res = tf.denoise(image, full_output=True)
    np.testing.assert_array_equal(restored, image)
    assert restored is not image and "no noise" in res.message and res.noise.is_none and res.success


def test_text_is_not_taken_for_impulses():
    page = page_of_text()
    np.testing.assert_array_equal(tf.denoise(page), page)
    noisy = np.clip(np.random.default_rng(0).normal(page, 20), 0, 255).astype(np.uint8)
    restored, res = tf.denoise(noisy, rng=0, full_output=True)
    assert not res.noise.has_impulses and psnr(restored, page) > psnr(noisy, page) + 2
    assert np.mean((restored < 128) == (page < 128)) > 0.999


def test_salt_and_pepper_on_a_page_is_found_and_its_share_is_in_the_result():
    page = page_of_text()
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(page.shape) < 0.1, 255 * rng.integers(0, 2, page.shape), page).astype(np.uint8)
    restored, res = tf.denoise(noisy, rng=0, full_output=True)
    assert 0.02 < res.noise.impulses.sum() < 0.12 and "impulses" in str(res.noise)
    assert psnr(restored, page) > psnr(noisy, page)


ROWS, COLUMNS = np.mgrid[:128, :160]
BAYER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
SHADES = 2.2 * np.hypot(ROWS - 60, COLUMNS - 70)  # smooth, 0 to 250


def diffused_error(image):
    """The image in black and white, the error of each pixel passed on to its neighbours (Floyd and Steinberg)."""
    rows, columns = image.shape
    sums, halftone = np.pad(image.astype(float), ((0, 1), (1, 1))), np.zeros(image.shape, np.uint8)
    for i in range(rows):
        for j in range(columns):
            halftone[i, j] = 255 * (sums[i, j + 1] > 127)
            error = (sums[i, j + 1] - halftone[i, j]) / 16
            sums[i, j + 2] += 7 * error
            sums[i + 1, j : j + 3] += error * np.array([3, 5, 1])
    return halftone


PATTERNS = {
    "checkerboard of single pixels": 255 * ((ROWS + COLUMNS) % 2),
    "faint checkerboard": 100 + 30 * ((ROWS + COLUMNS) % 2),
    "checkerboard of 4 pixels": 255 * ((ROWS // 4 + COLUMNS // 4) % 2),
    "grid of lines": 255 * ((COLUMNS % 7 > 0) & (ROWS % 11 > 0)),
    "diagonal dots": 255 * ((2 * ROWS + COLUMNS) % 9 > 0),
    "dots": np.where((ROWS % 10 == 0) & (COLUMNS % 10 == 0), 255, 100),
    "random squares": 255 * np.kron(np.random.default_rng(0).integers(0, 2, (64, 80)), np.ones((2, 2), int)),
    "ordered dither": 255 * (16 * np.tile(BAYER, (32, 40)) + 8 < SHADES),
    "diffused error": diffused_error(SHADES),
    "four levels of a photograph": np.clip(np.random.default_rng(0).normal(SHADES, 4), 0, 255) // 64 * 85,
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pattern_is_not_taken_for_noise(name, dtype):
    pattern = (PATTERNS[name] / (1 if dtype == np.uint8 else 255)).astype(dtype)
    restored, res = tf.denoise(pattern, full_output=True)
    assert res.noise.is_none
    np.testing.assert_array_equal(restored, pattern)


def test_thin_grey_strokes_under_noise_are_not_taken_for_impulses():
    rng = np.random.default_rng(0)
    page = np.full((96, 128), 255.0)
    for row, column in np.argwhere(rng.random((12, 16)) < 0.8) * 8:
        page[row : row + 6, column + 3] = rng.uniform(0, 150, 6)  # one pixel wide, of many greys
        page[row + 3, column : column + 6] = rng.uniform(0, 150, 6)
    noisy = np.clip(rng.normal(page, 4), 0, 255).astype(np.uint8)
    restored, res = tf.denoise(noisy, rng=0, full_output=True)
    assert not res.noise.has_impulses and psnr(restored, page) > psnr(noisy, page) - 0.1


def test_given_parameters_are_used_even_if_no_noise_is_found():
    page = page_of_text()
    assert np.unique(tf.denoise(page, levels=[0, 128, 255], rng=0)).tolist() == [0, 255]
    with pytest.warns(UserWarning, match="sigma=60 is far from the noise of the image, estimated as 0"):
        assert (tf.denoise(page, sigma=60, rng=0) != page).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16])
def test_restored_values_lie_between_the_levels(camera, dtype):
    scale = 65535 if dtype == np.uint16 else 1
    noisy = np.clip(np.random.default_rng(2).normal(camera / 255, 0.08), 0, 1)
    restored, res = tf.denoise((noisy * scale).astype(dtype), rng=0, full_output=True)
    assert res.mrf.n_labels < 80 and len(np.unique(restored)) > 1000
    clean = camera / 255
    error = lambda image: np.mean((image / scale - clean) ** 2)  # noqa: E731
    assert error(restored.astype(float)) < error(noisy * scale) / 4


def pad(grey):
    """An image with the border that `patch_means` needs."""
    sides = [(0, 0)] * (grey.ndim - 2) + [(BORDER, BORDER)] * 2
    return np.pad(grey.astype(np.float32), sides, mode="symmetric")


MIRRORED = [(BORDER, BORDER)] * 2


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (9, 13), (40, 33)])
def test_patch_means_are_the_naive_ones(shape):
    grey = np.random.default_rng(3).normal(120, 25, shape)
    means, counts = patch_means(pad(grey), 20.0, MIRRORED)
    expected_means, expected_counts = naive_apps.patch_means(grey, 20.0)
    np.testing.assert_allclose(means, expected_means, rtol=1e-4)
    np.testing.assert_allclose(counts, expected_counts, rtol=1e-3)


def test_patch_means_do_not_depend_on_threads():
    grey = pad(np.random.default_rng(4).normal(120, 25, (2, 80, 50)))
    for one, two in zip(
        patch_means(grey, 20.0, MIRRORED, threads=1), patch_means(grey, 20.0, MIRRORED, threads=3), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def level_model(image, **costs):
    """The model of an image, and the image as a channel."""
    model, _ = restoration_model([image], image.min(), image.max(), costs.pop("levels", None), Costs(**costs))
    return model


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (4, 5), (40, 33), (3, 8, 9)])
def test_costs_and_values_between_the_levels_are_the_naive_ones(shape, dtype):
    rng = np.random.default_rng(5)
    image = rng.integers(0, 256, shape).astype(dtype) / (1 if dtype == np.uint8 else 255)
    image = image.astype(dtype)
    model = level_model(image, sigma=30 if dtype == np.uint8 else 30 / 255, data="patches", levels=9)
    box = whole_box(shape)
    unary, levels = model.unary(image, box), model.scale.to_levels(model.values)
    planes = model.scale.to_levels(image).reshape(-1, *shape[-2:])
    pairs = [naive_apps.patch_means(plane, model.data.sigma) for plane in planes]
    means, counts = (np.array(arrays).reshape(shape) for arrays in zip(*pairs, strict=True))
    if model.clipping is not None:
        means = naive_apps.undo_clipping(means, model.data.sigma, *model.clipping)
    most = model.data.tau[np.round(model.scale.to_levels(image)).astype(int), 0]
    confidence = np.minimum(counts**0.7, model.data.sigma**2)[..., None]
    expected = np.minimum(confidence * (means[..., None] - levels) ** 2, most[..., None])
    np.testing.assert_allclose(unary, expected, rtol=2e-3, atol=0.51)
    x = rng.integers(len(levels), size=shape)
    restored = model.restore(image, x, box)
    averages = naive_apps.level_averages(expected, model.pairwise, x, levels, model.data.nat)
    np.testing.assert_allclose(model.scale.to_levels(restored), averages, atol=0.6)


@pytest.mark.parametrize("data", ["patches", "squared"])
@pytest.mark.parametrize("prepared", [False, True])
def test_costs_and_values_of_a_box_are_those_of_the_whole_image(data, prepared):
    rng = np.random.default_rng(6)
    image = np.clip(rng.normal(120, 30, (90, 70)), 0, 255).astype(np.float32) / 255
    image[rng.random(image.shape) < 0.1] = 1
    model = level_model(image, data=data)
    x = rng.integers(len(model.values), size=image.shape)
    box = (slice(37, 71), slice(11, 60))
    costs, values = model.unary(image, whole_box(image.shape)), model.restore(image, x, whole_box(image.shape))
    own = model.prepared(image) if prepared else model
    np.testing.assert_array_equal(own.unary(image, box), costs[box])
    np.testing.assert_array_equal(own.restore(image, x, box), values[box])


@pytest.mark.parametrize("channels", [None, 3])
def test_large_image_is_denoised_tile_by_tile_to_the_same_quality(camera, channels):
    clean = camera if channels is None else np.stack([camera] * channels, axis=-1)
    noisy = np.clip(np.random.default_rng(7).normal(clean, 20), 0, 255).astype(np.uint8)
    axis = None if channels is None else -1
    whole = tf.denoise(noisy, channel_axis=axis, rng=0)
    tiled, res = tf.denoise(noisy, channel_axis=axis, rng=0, memory_limit="8 MB", full_output=True)
    assert tiled.shape == noisy.shape and tiled.dtype == noisy.dtype
    assert abs(psnr(tiled, clean) - psnr(whole, clean)) < 0.05
    assert len(res.mrf) == (channels or 1) and all(isinstance(mrf, tf.TiledMRF) for mrf in res.mrf)
    labels = res.x.reshape(len(res.mrf), *res.mrf[0].shape)
    assert res.fun == sum(mrf.energy(x) for mrf, x in zip(res.mrf, labels, strict=True))
    assert res.success and 0 <= res.gap < 0.05 and str(res.noise).startswith("Gaussian")


def test_tiled_denoising_does_not_depend_on_threads(camera):
    noisy = np.clip(np.random.default_rng(8).normal(camera, 20), 0, 255).astype(np.uint8)
    one, two = (tf.denoise(noisy, rng=0, memory_limit="8 MB", threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_methods_that_need_the_whole_model_get_it(camera):
    noisy = np.clip(np.random.default_rng(9).normal(camera[:64, :64], 20), 0, 255).astype(np.uint8)
    options = {"rng": 0, "method": "trw", "maxiter": 2, "full_output": True}
    _, res = tf.denoise(noisy, memory_limit="50 MB", **options)
    assert isinstance(res.mrf, tf.GridMRF)
    with pytest.raises(MemoryError, match="memory_limit is 1 MB: take fewer levels"):
        tf.denoise(noisy, memory_limit="1 MB", **options)


@pytest.mark.parametrize(("name", "value"), [("sigma", 200), ("sigma", 2), ("weight", 0.1)])
def test_parameter_far_from_the_estimate_warns_at_the_callers_line(camera, name, value):
    noisy = np.clip(np.random.default_rng(10).normal(camera[:64, :64], 20), 0, 255).astype(np.uint8)
    with pytest.warns(UserWarning, match=f"{name}={value} is far from") as caught:
        tf.denoise(noisy, rng=0, **{name: value})
    assert caught[0].filename == __file__


def test_frame_without_noise_ignores_the_start_from_the_last_frame(camera):
    noisy = np.clip(np.random.default_rng(10).normal(camera, 20), 0, 255).astype(np.uint8)
    _, last = tf.denoise(noisy, maxiter=1, rng=0, full_output=True)
    for x0 in (last, last.x):
        np.testing.assert_array_equal(tf.denoise(camera, x0=x0, rng=0), camera)


@pytest.mark.parametrize("absent", [{"x0": None}, {"checkpoint": None}, {"keep_messages": False}])
def test_keywords_that_are_none_do_not_prevent_tiles(camera, absent):
    noisy = np.clip(np.random.default_rng(10).normal(camera, 20), 0, 255).astype(np.uint8)
    _, res = tf.denoise(noisy, memory_limit="2 MB", maxiter=0, rng=0, full_output=True, **absent)
    assert isinstance(res.mrf, list)


@pytest.mark.parametrize("scale", [1, 1 / 255])
def test_tau_below_the_noise_warns(camera, scale):
    noisy = np.clip(np.random.default_rng(10).normal(camera[:64, :64], 20), 0, 255).astype(np.uint8)
    image = noisy if scale == 1 else noisy * scale
    with pytest.warns(UserWarning, match="is far below .* almost all observed values are ignored"):
        tf.denoise(image, tau=0.1 * scale**2, maxiter=0, rng=0)
    tf.denoise(image, tau=900 * scale**2, maxiter=0, rng=0)


def test_time_limit_in_the_message_is_the_one_that_was_asked_for(camera):
    noisy = np.clip(np.random.default_rng(11).normal(camera[:64, :64], 20), 0, 255).astype(np.uint8)
    for memory in (None, "3 MB"):
        _, res = tf.denoise(noisy, rng=0, time_limit=0.01, tol=0, full_output=True, memory_limit=memory)
        assert "time_limit = 0.01 s reached" in res.message


def test_without_time_for_the_means_pixels_stand_for_themselves(camera):
    noisy = np.clip(np.random.default_rng(12).normal(camera[:64, :64], 20), 0, 255).astype(np.uint8)
    model = level_model(noisy)
    whole = whole_box(noisy.shape)
    costs = model.prepared(noisy, lambda: False).unary(noisy, whole)
    levels = model.scale.to_levels(model.values)
    most = model.data.tau[noisy, 0][..., None]
    np.testing.assert_allclose(costs, np.minimum((noisy[..., None] - levels) ** 2, most), atol=0.51)
    assert (model.prepared(noisy).unary(noisy, whole) != costs).any()

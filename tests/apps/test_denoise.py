"""Denoising: the energy, dtypes and layouts, and how much noise is removed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_apps
import treefield as tf
from odd_images import DTYPES, check_options, check_result, check_same_seed, layouts, of_dtype
from treefield.apps.denoise import denoise_problem
from treefield.apps.restoration import Costs

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


def test_denoise_passes_options_to_minimize(no_elimination):
    check_options(lambda **options: tf.denoise(NOISY, levels=FEW["levels"], **options))


def test_denoise_with_the_same_seed_gives_the_same_answer():
    check_same_seed(lambda **options: tf.denoise(NOISY, levels=FEW["levels"], maxiter=3, tol=0, **options))


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_denoise_beats_median_and_total_variation_on_salt_and_pepper(camera, share):
    filters, restoration = pytest.importorskip("skimage.filters"), pytest.importorskip("skimage.restoration")
    rng = np.random.default_rng(5)
    noisy = np.where(rng.random(camera.shape) < share, 255 * rng.integers(0, 2, camera.shape), camera).astype(np.uint8)
    restored = naive_apps.psnr(tf.denoise(noisy, time_limit=3, rng=0), camera)
    peers = [filters.median(noisy)]
    peers += [255 * restoration.denoise_tv_chambolle(noisy / 255, weight=weight) for weight in (0.1, 0.3, 0.6)]
    assert restored >= max(naive_apps.psnr(peer, camera) for peer in peers)


def test_denoise_raises_psnr_under_gaussian_noise_by_4_db(camera):
    noisy = np.clip(np.random.default_rng(6).normal(camera, 20), 0, 255).astype(np.uint8)
    assert naive_apps.psnr(tf.denoise(noisy, time_limit=3, rng=0), camera) > naive_apps.psnr(noisy, camera) + 4


@pytest.mark.parametrize("channels", [None, 3])
def test_large_image_is_denoised_tile_by_tile_to_the_same_quality(camera, channels):
    clean = camera if channels is None else np.stack([camera] * channels, axis=-1)
    noisy = np.clip(np.random.default_rng(7).normal(clean, 20), 0, 255).astype(np.uint8)
    axis = None if channels is None else -1
    whole = tf.denoise(noisy, channel_axis=axis, rng=0)
    tiled, res = tf.denoise(noisy, channel_axis=axis, rng=0, memory_limit="8 MB", full_output=True)
    assert tiled.shape == noisy.shape and tiled.dtype == noisy.dtype
    assert abs(naive_apps.psnr(tiled, clean) - naive_apps.psnr(whole, clean)) < 0.05
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

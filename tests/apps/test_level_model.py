"""Costs from similar patches, and values between the levels."""

import numpy as np
import pytest

import naive_apps
import treefield as tf
from treefield.apps.level_model import whole_box
from treefield.apps.patch_means import BORDER, patch_means
from treefield.apps.restoration import Costs, restoration_model


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


def test_without_time_for_the_means_pixels_stand_for_themselves(camera):
    noisy = np.clip(np.random.default_rng(12).normal(camera[:64, :64], 20), 0, 255).astype(np.uint8)
    model = level_model(noisy)
    whole = whole_box(noisy.shape)
    costs = model.prepared(noisy, lambda: False).unary(noisy, whole)
    levels = model.scale.to_levels(model.values)
    most = model.data.tau[noisy, 0][..., None]
    np.testing.assert_allclose(costs, np.minimum((noisy[..., None] - levels) ** 2, most), atol=0.51)
    assert (model.prepared(noisy).unary(noisy, whole) != costs).any()

"""Segmentation: regions from k-means or from seeds, and the weights between neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import treefield as tf
from odd_images import DTYPES, check_options, check_result, check_same_seed, layouts, of_dtype
from treefield.apps import colour_models
from treefield.apps.segment import segment_problem

BLOCKS = np.kron([[40, 200], [120, 40]], np.ones((5, 6)))
IMAGE = np.random.default_rng(0).normal(BLOCKS, 6).clip(0, 255).astype(np.uint8)
SEEDS = np.zeros(IMAGE.shape, int)
SEEDS[2, 3], SEEDS[2, 9], SEEDS[7, 3] = 5, 2, 9  # of the three greys


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1, 1), (1, 6), (4, 5), (2, 3, 3)]),
    channels=st.integers(1, 3),
    contrast=st.sampled_from([0, 0.5, 4, 1e300]),
)
def test_edge_weights_fall_with_contrast_and_distance(seed, shape, channels, contrast):
    rng = np.random.default_rng(seed)
    image, spacing = rng.random((*shape, channels)), rng.uniform(0.5, 3, len(shape))
    mrf = segment_problem(image, 2, weight=3, contrast=contrast, spacing=spacing, channel_axis=-1, rng=0).mrf
    scaled = (image - image.min()) / ((image.max() - image.min()) or 1)
    steps = {}
    for i in np.ndindex(*shape):
        for j in naive.neighbours(shape, i):
            if i < j:
                steps[i, j] = ((scaled[i] - scaled[j]) ** 2).sum()
    mean = np.mean(list(steps.values())) if steps else 1
    for (i, j), step in steps.items():
        axis = next(a for a in range(len(shape)) if i[a] != j[a])
        weight = 0.05 + 0.95 * np.exp(-min(contrast, 1e100) * step / (2 * mean))
        np.testing.assert_allclose(mrf.weights[axis][i], 3 * weight * spacing.min() / spacing[axis], rtol=1e-4)
    assert mrf.pairwise.weight == 1


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5), channels=st.integers(1, 3))
def test_kmeans_costs_are_squared_distances_from_the_centres(seed, k, channels):
    rng = np.random.default_rng(seed)
    colours = rng.random((30, channels))
    centres = colour_models.kmeans_centres(colours, k, rng)
    assert len(centres) == k and (np.diff(centres.sum(axis=1)) >= 0).all()
    distances = np.array([[sum((a - b) ** 2) for b in centres] for a in colours])
    variance = max(distances.min(axis=1).mean() / channels, (2 / 255) ** 2)
    expected = np.minimum((distances - distances.min(axis=1, keepdims=True)) / (2 * variance), 20)
    np.testing.assert_allclose(colour_models.costs_from_centres(colours, centres), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), channels=st.integers(1, 3))
def test_costs_of_few_seeds_are_those_of_one_gaussian_per_label(seed, channels):
    rng = np.random.default_rng(seed)
    colours = rng.random((30, channels))
    seeds = [np.arange(1), np.arange(5, 15)]
    expected = []
    for own in (colours[seed] for seed in seeds):
        mean, covariance = own.mean(axis=0), np.cov(own.T, bias=True).reshape(channels, channels) if len(own) > 1 else 0
        covariance = covariance + (2 / 255) ** 2 * np.eye(channels)
        away = [(c - mean) @ np.linalg.inv(covariance) @ (c - mean) for c in colours]
        expected.append([(a + np.log(np.linalg.det(covariance))) / 2 for a in away])
    expected = np.minimum(np.transpose(expected) - np.min(expected, axis=0)[:, None], 20)
    np.testing.assert_allclose(colour_models.costs_from_seeds(colours, seeds, rng), expected, rtol=1e-3, atol=1e-3)


def test_cost_of_a_colour_depends_on_its_share_of_the_seeds():
    dark, bright = np.full((15, 1), 0.2), np.full((45, 1), 0.8)
    colours = np.concatenate([dark, bright])
    costs = colour_models.costs_from_seeds(colours, [np.arange(60), np.arange(15)], np.random.default_rng(0))
    np.testing.assert_allclose(costs[:1], [[np.log(4), 0]], rtol=1e-5)  # a quarter of one label's, all of the other's


def test_regions_are_numbered_from_dark_to_bright():
    labels, res = tf.segment(IMAGE, 3, rng=0, full_output=True)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, np.select([BLOCKS == 40, BLOCKS == 120], [1, 2], 3))
    np.testing.assert_array_equal(labels, res.x + 1)
    check_result(res)


def test_seeds_and_left_out_pixels_keep_their_labels():
    seeds = SEEDS.copy()
    seeds[:, 0] = -1
    before = seeds.copy()
    labels, res = tf.segment(IMAGE, seeds, rng=0, full_output=True)
    check_result(res)
    np.testing.assert_array_equal(labels[seeds != 0], seeds[seeds != 0])
    np.testing.assert_array_equal(seeds, before)
    names = np.array([2, 5, 9])
    np.testing.assert_array_equal(labels[:, 1:], names[res.x][:, 1:])
    free = np.s_[5:, 1:]
    np.testing.assert_array_equal(labels[free], np.where(BLOCKS == 120, 9, 5)[free])


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), weight=st.sampled_from([0, 1, 1e6, 1e30]))
def test_random_seeds_keep_their_labels_for_any_weight(seed, weight):
    rng = np.random.default_rng(seed)
    image, seeds = rng.random((4, 5)), rng.integers(-1, 4, (4, 5))
    seeds[0, :3] = 1, 2, 3
    labels = tf.segment(image, seeds, weight=weight, rng=0, maxiter=2)
    np.testing.assert_array_equal(labels[seeds != 0], seeds[seeds != 0])
    assert set(np.unique(labels)) <= {-1, 1, 2, 3}


def test_left_out_pixels_have_no_costs_and_no_edges():
    seeds = SEEDS.copy()
    seeds[:, 6] = -1
    mrf = segment_problem(IMAGE, seeds).mrf
    assert not mrf.weights[1][:, 5:7].any() and not mrf.weights[0][:, 6].any() and not mrf.unary[:, 6].any()
    assert mrf.weights[1][:, :5].all() and mrf.weights[0][:, :6].all()


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.uint64, ">i4", list])
def test_seeds_may_be_of_any_integer_dtype(dtype):
    seeds = (SEEDS > 0).tolist() if dtype is list else (SEEDS > 0).astype(dtype)
    np.testing.assert_array_equal(tf.segment(IMAGE, seeds, rng=0), np.ones(IMAGE.shape, int))


@pytest.mark.parametrize("value", [0, 200, 0.5, -1e9, 1e99])
def test_constant_image_is_one_region(value):
    image = np.full((4, 5), value)
    np.testing.assert_array_equal(tf.segment(image, 3, rng=0), np.ones((4, 5)))


def test_regions_are_at_most_as_many_as_colours():
    image = np.array([[0, 0, 9], [9, 200, 200]], np.uint8)
    labels, res = tf.segment(image, 7, weight=0, rng=0, full_output=True)
    assert res.mrf.n_labels == 3
    np.testing.assert_array_equal(labels, [[1, 1, 2], [2, 3, 3]])


def test_one_region_covers_the_image():
    np.testing.assert_array_equal(tf.segment(IMAGE, 1, rng=0), np.ones(IMAGE.shape))


def test_weight_0_labels_pixels_independently_and_a_large_weight_gives_one_region():
    image = np.random.default_rng(1).random((6, 7))
    _, res = tf.segment(image, 3, weight=0, rng=0, full_output=True)
    assert not np.take_along_axis(res.mrf.unary, res.x[..., None], axis=-1).any()
    assert len(np.unique(tf.segment(image, 3, weight=1e5, rng=0))) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_segment_accepts_any_real_dtype(dtype):
    image = of_dtype(IMAGE, dtype)
    before = image.copy()
    labels = tf.segment(image, 2, rng=0)
    np.testing.assert_array_equal(labels[:5], np.where(BLOCKS == 40, 1, 2)[:5])
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1e9, 1e90])
def test_segment_does_not_depend_on_scale_and_brightness(scale):
    plain, res = tf.segment(IMAGE, 3, rng=0, full_output=True)
    scaled, same = tf.segment((IMAGE - 300.0) * scale, 3, rng=0, full_output=True)
    np.testing.assert_array_equal(scaled, plain)
    assert same.fun == pytest.approx(res.fun, rel=1e-3)


@pytest.mark.parametrize("name", layouts(IMAGE))
def test_segment_does_not_depend_on_memory_layout(name):
    image, seeds = layouts(IMAGE)[name], layouts(SEEDS)[name]
    np.testing.assert_array_equal(tf.segment(image, seeds, rng=0), tf.segment(IMAGE, SEEDS, rng=0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_segment_accepts_channels_on_any_axis(axis):
    same = np.full(IMAGE.shape, 90, np.uint8)  # seen only by its colour
    colour = np.stack([IMAGE, same, 255 - IMAGE], axis=-1)
    labels = tf.segment(np.moveaxis(colour, -1, axis), 3, channel_axis=axis, rng=0)
    assert labels.shape == IMAGE.shape
    np.testing.assert_array_equal(labels, tf.segment(colour, 3, channel_axis=-1, rng=0))
    assert len(np.unique(labels[:5, :6])) == len(np.unique(labels[:5, 6:])) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (1, 1, 1), (2, 3, 2)])
def test_segment_accepts_images_as_small_as_one_pixel(shape):
    image = np.random.default_rng(2).random(shape)
    labels, res = tf.segment(image, 2, rng=0, full_output=True)
    assert labels.shape == shape
    check_result(res)
    seeds = np.zeros(shape, int)
    seeds.flat[0] = 4
    np.testing.assert_array_equal(tf.segment(image, seeds, rng=0), np.full(shape, 4))


def test_edge_weights_are_inversely_proportional_to_spacing():
    volume = np.random.default_rng(3).random((3, 4, 5))
    near, far = (segment_problem(volume, 2, spacing=[gap, 1, 1], rng=0).mrf for gap in (1, 4))
    np.testing.assert_allclose(far.weights[0], near.weights[0] / 4, rtol=1e-6)
    np.testing.assert_array_equal(far.weights[1], near.weights[1])


def test_segment_passes_options_to_minimize(no_elimination):
    image = np.random.default_rng(4).random((7, 8))
    check_options(lambda **options: tf.segment(image, 3, **{"rng": 0} | options))


def test_segment_with_the_same_seed_gives_the_same_answer():
    image = np.random.default_rng(5).random((7, 8))
    check_same_seed(lambda **options: tf.segment(image, 4, weight=1, maxiter=3, tol=0, **options))


def test_coins_are_separated_from_the_background_with_smooth_borders():
    coins = pytest.importorskip("skimage.data").coins()[:120, :200]
    threshold = pytest.importorskip("skimage.filters").threshold_otsu(coins)
    labels = tf.segment(coins, 2, time_limit=3, rng=0)
    assert np.mean((labels == 2) == (coins > threshold)) > 0.85
    changes = [np.count_nonzero(np.diff(mask.astype(int), axis=0)) for mask in (labels == 2, coins > threshold)]
    assert changes[0] < changes[1]  # and their borders are smoother


def _distance_factors(shape, spacing):
    """The factor of the weight for each of the 8 or 26 neighbours on a flat image."""
    centre = np.array(shape) // 2
    steps = [np.array(step) - 1 for step in np.ndindex(*[3] * len(shape))]
    steps = [step for step in steps if step.any()]
    crossing = sum(1 / np.linalg.norm(step) for step in steps if step[0] > 0)
    return {
        (tuple(centre), tuple(centre + step)): min(spacing) / np.linalg.norm(step * spacing) / crossing
        for step in steps
    }


@pytest.mark.parametrize(("shape", "spacing"), [((5, 5), (1, 1)), ((5, 5), (2, 1)), ((3, 5, 5), (3, 1, 1))])
def test_diagonal_neighbours_are_joined_by_weights_that_fall_with_distance(shape, spacing):
    mrf = segment_problem(np.zeros(shape), 1, weight=3, spacing=spacing, connectivity=2, rng=0).mrf
    assert mrf.connectivity == 2
    edges, weights, _ = mrf.backend.graph_edges()
    found = {}
    for (first, second), weight in zip(edges.tolist(), weights, strict=True):
        ends = [tuple(map(int, np.unravel_index(site, shape))) for site in (first, second)]
        found[*ends] = found[*ends[::-1]] = weight
    for (i, j), factor in _distance_factors(shape, spacing).items():
        assert found[tuple(map(int, i)), tuple(map(int, j))] == pytest.approx(3 * factor, rel=1e-5)


def test_a_straight_border_costs_the_same_with_diagonal_neighbours():
    shape = (6, 40)
    halves = np.zeros(shape, int)
    halves[3:] = 1
    energies = []
    for connectivity in (1, 2):
        flat = {"probabilities": np.full((*shape, 2), 0.5), "connectivity": connectivity}
        energies.append(segment_problem(np.zeros(shape), weight=2, **flat).mrf.energy(halves))
    assert energies[0] == pytest.approx(2 * 40, rel=1e-6)
    assert energies[1] == pytest.approx(energies[0], rel=0.02)  # a pixel at each end has one diagonal neighbour


def test_diagonal_edges_of_pixels_left_out_have_no_weight():
    seeds = np.array([[1, 0, 0], [0, -1, 0], [0, 0, 2]])
    mrf = segment_problem(np.arange(9.0).reshape(3, 3), seeds, connectivity=2, rng=0).mrf
    edges, weights, _ = mrf.backend.graph_edges()
    assert not any(weight for edge, weight in zip(edges.tolist(), weights, strict=True) if 4 in edge)


def test_connectivity_must_be_1_or_2():
    with pytest.raises(ValueError, match=r"connectivity must be 1 .* or 2 .*, got 8"):
        tf.segment(IMAGE, connectivity=8)


PROBABILITIES = np.random.default_rng(3).dirichlet([1, 1, 1], IMAGE.shape)


def test_probabilities_give_costs_and_the_image_gives_the_edges():
    mrf = segment_problem(IMAGE, probabilities=PROBABILITIES).mrf
    costs = -np.log(PROBABILITIES)
    np.testing.assert_allclose(mrf.unary, costs - costs.min(axis=-1, keepdims=True), rtol=1e-5, atol=1e-6)
    by_colour = segment_problem(IMAGE, 3, rng=0).mrf
    for weights, same in zip(mrf.weights, by_colour.weights, strict=True):
        np.testing.assert_array_equal(weights, same)


def test_segment_takes_the_most_probable_class_where_borders_cost_nothing():
    labels = tf.segment(IMAGE, probabilities=PROBABILITIES, weight=0, rng=0)
    np.testing.assert_array_equal(labels, PROBABILITIES.argmax(axis=-1) + 1)
    np.testing.assert_array_equal(tf.segment(IMAGE, 3, probabilities=PROBABILITIES, weight=0, rng=0), labels)
    half = tf.segment(IMAGE, probabilities=PROBABILITIES.astype(np.float16), weight=0, rng=0)
    assert (half == labels).mean() > 0.95


def test_seeds_go_with_probabilities():
    seeds = np.zeros(IMAGE.shape, int)
    seeds[0, 0], seeds[0, 1] = 3, -1
    certain = np.eye(3)[np.zeros(IMAGE.shape, int)]
    labels = tf.segment(IMAGE, seeds, probabilities=certain, rng=0)
    assert labels[0, 0] == 3 and labels[0, 1] == -1 and (labels == 1).sum() == IMAGE.size - 2
    np.testing.assert_array_equal(tf.segment(IMAGE, 0 * seeds, probabilities=certain, rng=0), 1)


@pytest.mark.parametrize(
    ("labels", "probabilities", "message"),
    [
        (2, PROBABILITIES[0], r"probabilities has shape \(12, 3\), expected \(10, 12, classes\)"),
        (2, PROBABILITIES[..., :0], r"probabilities has shape \(10, 12, 0\), expected \(10, 12, classes\)"),
        (2, np.moveaxis(PROBABILITIES, -1, 0), r"shape \(3, 10, 12\), .*; give np\.moveaxis\(probabilities, 0, -1\)"),
        (2, np.log(PROBABILITIES), "probabilities holds values from .*, expected 0 to 1; .* give the softmax"),
        (2, PROBABILITIES * np.nan, "probabilities holds values from nan"),
        (2, PROBABILITIES / 2, r"probabilities must sum to 1 at each pixel, but a sum differs from it by 0\.5"),
        (4, PROBABILITIES, "labels is 4, but probabilities has 3 classes; leave labels out, or give seeds"),
        (4 * np.eye(10, 12, dtype=int), PROBABILITIES, "labels holds 4, expected at most 3, the number of classes"),
    ],
)
def test_bad_probabilities_raise(labels, probabilities, message):
    with pytest.raises(ValueError, match=message):
        tf.segment(IMAGE, labels, probabilities=probabilities)

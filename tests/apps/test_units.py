"""Parameters are in the image's own units: 0..255 for uint8, 0..65535 for uint16, 0..1 for floats in that range."""

import numpy as np
import pytest

import treefield as tf
from odd_images import check_raises_in_one_line
from treefield.apps.denoise import denoise_problem
from treefield.apps.inpaint import inpaint_problem
from treefield.apps.restoration import Costs
from treefield.apps.stereo import stereo_problem

IMAGE = np.random.default_rng(0).integers(0, 256, (8, 9), dtype=np.uint8)
IMAGE[0, :2] = 0, 255  # so that the range of the values is that of the dtype
UNITS = {"uint16": 257.0, "float32": 1 / 255, "float64": 1 / 255, "int32": 1000.0}


def in_dtype(image, dtype):
    return (image * UNITS[dtype]).astype(dtype) if dtype[0] == "f" else image.astype(dtype) * int(UNITS[dtype])


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize(("data", "power"), [("squared", 2), ("absolute", 1)])
@pytest.mark.parametrize(("smoothness", "degree"), [("linear", 1), ("quadratic", 2), ("potts", 0)])
@pytest.mark.parametrize("application", ["denoise", "inpaint"])
def test_model_of_a_scaled_image_is_the_same_if_its_costs_are_scaled(
    application, dtype, data, power, smoothness, degree
):
    unit, hole = UNITS[dtype], (IMAGE > 150) & (IMAGE < 200)
    given = Costs(data, tau=900.0, smoothness=smoothness, weight=3.0, cutoff=40.0)
    scaled = Costs(data, 900.0 * unit**power, smoothness, 3.0 * unit ** (power - degree), 40.0 * unit)
    if application == "denoise":
        expected, found = (
            denoise_problem(image, levels=256, costs=costs)
            for image, costs in ((IMAGE, given), (in_dtype(IMAGE, dtype), scaled))
        )
    else:
        expected = inpaint_problem(IMAGE, hole, keep_known=False, costs=given)
        found = inpaint_problem(in_dtype(IMAGE, dtype), hole, keep_known=False, costs=scaled)
    if expected.mrf.n_labels == found.mrf.n_labels:
        np.testing.assert_allclose(found.mrf.unary, expected.mrf.unary, rtol=1e-3, atol=0.05)
    assert found.mrf.pairwise.weight == pytest.approx(expected.mrf.pairwise.weight, rel=1e-9)
    if smoothness != "potts":
        assert found.mrf.pairwise.cutoff == pytest.approx(expected.mrf.pairwise.cutoff, rel=1e-9)


@pytest.mark.parametrize("dtype", UNITS)
def test_sigma_is_in_the_units_of_the_image(dtype):
    levels = np.arange(0, 256, 15)
    expected = tf.denoise(IMAGE, sigma=20, levels=levels, rng=0)
    scaled = tf.denoise(in_dtype(IMAGE, dtype), sigma=20 * UNITS[dtype], levels=levels * UNITS[dtype], rng=0)
    np.testing.assert_allclose(scaled, expected * UNITS[dtype], rtol=1e-6)


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize(("cost", "power"), [("census", 0), ("birchfield-tomasi", 1), ("absolute", 1), ("squared", 2)])
def test_contrast_and_weight_of_stereo_are_in_the_units_of_the_image(dtype, cost, power):
    pair = IMAGE[:, :7], IMAGE[:, 2:]
    pair[1][-1, :2] = 0, 255
    expected = stereo_problem(*pair, 3, cost=cost, weight=6.0, contrast=60.5).mrf
    given = {"weight": 6.0 * UNITS[dtype] ** power, "contrast": 60.5 * UNITS[dtype]}
    found = stereo_problem(*(in_dtype(image, dtype) for image in pair), 3, cost=cost, **given).mrf
    assert found.pairwise.weight == pytest.approx(expected.pairwise.weight, rel=1e-9)
    for weights, others in zip(found.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(weights, others)


@pytest.mark.parametrize(
    ("image", "name", "value", "message"),
    [
        (
            IMAGE,
            "sigma",
            0.08,
            r"sigma=0\.08 is less than one grey level of a uint8 image, expected 0\.\.255; .* 20\.4\?",
        ),
        (
            IMAGE,
            "cutoff",
            0.4,
            r"cutoff=0\.4 is less than one grey level of a uint8 image, expected 0\.\.255; .* 102\?",
        ),
        (IMAGE.astype(np.uint16), "sigma", 0.08, r"of a uint16 image, expected 0\.\.65535; did you mean 5242\.8\?"),
    ],
)
def test_parameter_below_one_grey_level_of_an_integer_image_raises(image, name, value, message):
    check_raises_in_one_line(lambda: tf.denoise(image, **{name: value}), ValueError, message)
    check_raises_in_one_line(lambda: tf.denoise_tiled(image, **{name: value}), ValueError, message)
    check_raises_in_one_line(lambda: tf.inpaint(image, image > 200, **{name: value}), ValueError, message)


CALLS = {
    "denoise": lambda: tf.denoise(IMAGE / 255, levels=2, sigma=20, maxiter=0),
    "denoise_tiled": lambda: tf.denoise_tiled(IMAGE / 255, levels=2, sigma=20, maxiter=0),
    "inpaint": lambda: tf.inpaint(IMAGE / 255, IMAGE > 200, levels=2, sigma=20, maxiter=0),
    "stereo": lambda: tf.stereo(IMAGE / 255, IMAGE / 255, num_disparities=2, contrast=8, maxiter=0),
}
SUGGESTIONS = {"stereo": r"contrast=8 .* did you mean 0\.0314\?"}


@pytest.mark.parametrize("application", CALLS)
def test_parameter_above_the_range_of_a_float_image_warns_at_the_callers_line(application):
    message = SUGGESTIONS.get(application, r"sigma=20 .* did you mean 0\.0784\?")
    with pytest.warns(UserWarning, match=message) as caught:
        CALLS[application]()
    assert [warning.filename for warning in caught] == [__file__]
    assert "is more than the whole range of a float64 image in 0..1, expected 0..1" in str(caught[0].message)


@pytest.mark.parametrize(
    "image",
    [IMAGE / 1.0, IMAGE.astype(np.int32) // 40, IMAGE / 255 - 0.5],
    ids=["float in 0..255", "integers in 0..6", "float in -0.5..0.5"],
)
def test_parameter_of_an_image_without_a_fixed_range_may_be_of_any_size(image):
    for sigma in (0.08, 20):
        assert tf.denoise(image, levels=2, sigma=sigma, cutoff=sigma, maxiter=0).shape == image.shape

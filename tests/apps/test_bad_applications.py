"""Errors of the applications for bad images and parameters: one line that says what came and what was expected."""

import inspect

import numpy as np
import pytest

import treefield as tf
from odd_images import check_raises_in_one_line
from small import HUGE, with_value

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 7), dtype=np.uint8)
COLOUR = np.stack([IMAGE] * 3, axis=-1)
FLOATS = IMAGE / 255
HOLE = IMAGE > 200

APPLICATIONS = {
    "denoise": lambda image, **keywords: tf.denoise(image, **keywords),
    "inpaint": lambda image, **keywords: tf.inpaint(image, _no_hole(image), **keywords),
    "segment": lambda image, **keywords: tf.segment(image, **keywords),
    "left": lambda image, **keywords: tf.stereo(image, IMAGE, num_disparities=2, **keywords),
    "right": lambda image, **keywords: tf.stereo(IMAGE, image, num_disparities=2, **keywords),
}


def _no_hole(image):
    return np.zeros(() if isinstance(image, list) else np.shape(image))


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (None, TypeError, "must hold real numbers, got dtype object"),
        ("camera.png", TypeError, "must hold real numbers, got dtype <U10"),
        (FLOATS * 1j, TypeError, "must hold real numbers, got dtype complex128"),
        (IMAGE.astype(object), TypeError, "must hold real numbers, got dtype object"),
        (IMAGE.astype("M8[s]"), TypeError, r"must hold real numbers, got dtype datetime64\[s\]"),
        ([[1, 2], [3]], TypeError, "must be an array of numbers, but its rows differ in length"),
        (7, ValueError, r"has shape \(\), expected two"),
        (IMAGE[0], ValueError, r"has shape \(7,\), expected two"),
        (IMAGE[None, None, None], ValueError, r"has shape \(1, 1, 1, 6, 7\), expected two"),
        (IMAGE[:0], ValueError, r"is empty: its shape is \(0, 7\)"),
        (IMAGE[:, :0], ValueError, r"is empty: its shape is \(6, 0\)"),
        (with_value(FLOATS, np.nan), ValueError, "holds 1 values that are NaN or infinite; inpaint them"),
        (with_value(FLOATS, -np.inf), ValueError, "holds 1 values that are NaN or infinite"),
        (FLOATS * 1e101, ValueError, r"holds values up to .*e\+100, expected at most 1e\+100; scale it"),
        (
            np.array([[-(2**63), 2**63 - 1]]),
            ValueError,
            r"holds values up to 9\.2.*e\+18, expected at most .*; scale it",
        ),
        (np.array([[2**64 - 1, 0]], np.uint64), ValueError, r"holds values up to 1\.8.*e\+19"),
    ],
)
def test_every_application_raises_for_a_bad_image(application, image, error, message):
    name = application if application in ("left", "right") else "image"
    check_raises_in_one_line(lambda: APPLICATIONS[application](image), error, f"^{name} {message}")


@pytest.mark.parametrize("application", ["denoise", "segment", "left"])
@pytest.mark.parametrize(
    ("image", "axis", "error", "message"),
    [
        (COLOUR, 3, ValueError, "channel_axis must be between -3 and 2, got 3"),
        (COLOUR, -4, ValueError, "channel_axis must be at least -3, got -4"),
        (COLOUR, 1.0, TypeError, r"channel_axis must be an integer, got 1\.0"),
        (COLOUR, "last", TypeError, "channel_axis must be an integer, got 'last'"),
        (COLOUR, True, TypeError, "channel_axis must be an integer, got True"),
        (IMAGE, -1, ValueError, r"has shape \(6, 7\), expected two or three dimensions and an axis for its channels"),
        (COLOUR[..., :0], -1, ValueError, r"is empty: its shape is \(6, 7, 0\)"),
    ],
)
def test_a_bad_channel_axis_raises(application, image, axis, error, message):
    check_raises_in_one_line(lambda: APPLICATIONS[application](image, channel_axis=axis), error, message)


NUMBERS = [
    (None, TypeError),
    ("3", TypeError),
    (True, TypeError),
    (1j, TypeError),
    ([1.0], TypeError),
    (np.nan, ValueError),
    (-1.0, ValueError),
    (-np.inf, ValueError),
    (HUGE, ValueError),
]
CALLS = {
    "denoise": lambda **keywords: tf.denoise(IMAGE, **keywords),
    "inpaint": lambda **keywords: tf.inpaint(IMAGE, HOLE, **keywords),
    "segment": lambda **keywords: tf.segment(IMAGE, **keywords),
    "stereo": lambda **keywords: tf.stereo(IMAGE, IMAGE, num_disparities=3, **keywords),
}
PARAMETERS = [
    *((name, parameter) for name in ("denoise", "inpaint") for parameter in ("tau", "weight", "cutoff", "sigma")),
    *(("segment", parameter) for parameter in ("weight", "contrast")),
    *(("stereo", parameter) for parameter in ("weight", "cutoff", "contrast", "contrast_factor")),
]


@pytest.mark.parametrize(("value", "error"), NUMBERS, ids=[repr(value)[:20] for value, _ in NUMBERS])
@pytest.mark.parametrize(("application", "parameter"), PARAMETERS)
def test_a_parameter_that_is_not_a_number_raises_and_is_named(application, parameter, value, error):
    if value is None and inspect.signature(getattr(tf, application)).parameters[parameter].default is None:
        return  # None is the default
    check_raises_in_one_line(lambda: CALLS[application](**{parameter: value}), error, f"^{parameter} must be")


@pytest.mark.parametrize(
    ("application", "keywords", "message"),
    [
        ("denoise", {"tau": 0}, "tau must be above 0, got 0"),
        ("denoise", {"sigma": 0}, "sigma must be above 0, got 0"),
        ("denoise", {"sigma": 1e200}, r"sigma must be at most 1e\+06 for a uint8 image of this range, got 1e\+200"),
        ("denoise", {"sigma": 0.08}, r"sigma=0.08 is less than one grey level of a uint8 image, .* mean 20\.4\?"),
        ("inpaint", {"sigma": 0.08}, r"sigma=0.08 is less than one grey level of a uint8 image, .* mean 20\.4\?"),
        (
            "denoise",
            {"cutoff": 0.4},
            r"cutoff=0.4 is less than one grey level of .*, expected 0\.\.255; did you mean 102\?",
        ),
        ("stereo", {"contrast": 0.03}, r"contrast=0.03 is less than one grey level of .*; did you mean 7\.6\?"),
        ("denoise", {"cutoff": 0}, "cutoff must be above 0, got 0"),
        ("denoise", {"cutoff": np.inf}, "cutoff must be finite, got inf"),
        ("denoise", {"weight": np.inf}, "weight must be finite, got inf"),
        ("stereo", {"cutoff": 0}, "cutoff must be above 0, got 0"),
        ("stereo", {"contrast_factor": 0}, "contrast_factor must be above 0, got 0"),
        ("stereo", {"contrast_factor": 1e200}, r"contrast_factor must be at most 1e\+30, got 1e\+200"),
        ("segment", {"weight": 1e39}, r"weight must be at most 1e\+30, got 1e\+39"),
    ],
)
def test_a_parameter_out_of_range_raises(application, keywords, message):
    check_raises_in_one_line(lambda: CALLS[application](**keywords), ValueError, f"^{message}")


@pytest.mark.parametrize("word", ["", "cubic", "LINEAR", 3, ["linear"], np.array(["linear"])])
@pytest.mark.parametrize(
    ("application", "parameter", "first"),
    [
        ("denoise", "data", "patches"),
        ("denoise", "smoothness", "linear"),
        ("inpaint", "data", "patches"),
        ("inpaint", "smoothness", "linear"),
        ("stereo", "smoothness", "linear"),
        ("stereo", "cost", "census"),
        ("stereo", "occlusion", "keep"),
    ],
)
def test_an_unknown_word_raises_and_lists_the_known_ones(application, parameter, first, word):
    check_raises_in_one_line(
        lambda: CALLS[application](**{parameter: word}), ValueError, f"^{parameter} must be one of '{first}', "
    )


@pytest.mark.parametrize("application", ["denoise", "inpaint"])
@pytest.mark.parametrize(
    ("levels", "error", "message"),
    [
        (0, ValueError, "levels must be at least 1, got 0"),
        (-3, ValueError, "levels must be at least 1, got -3"),
        (16.0, TypeError, r"levels must be an integer, got 16\.0"),
        (np.nan, TypeError, "levels must be an integer, got nan"),
        ([[1, 2], [3, 4]], ValueError, r"levels has shape \(2, 2\), expected a number"),
        ("all", TypeError, "levels must be an integer, got 'all'"),
        (True, TypeError, "levels must be an integer, got True"),
        ([], ValueError, "levels must be a number of levels, or a list of finite values"),
        ([0, np.nan], ValueError, "levels must be a number of levels, or a list of finite values"),
        ([0, np.inf], ValueError, "levels must be a number of levels, or a list of finite values"),
        (["black", "white"], TypeError, "levels must hold real numbers, got dtype <U5"),
        ([0, [1, 2]], TypeError, "levels must be an array of numbers, but its rows differ in length"),
        ([0, 0.5], ValueError, "levels holds values that an image of uint8 cannot have"),
        ([-1, 0], ValueError, "levels holds values that an image of uint8 cannot have"),
        ([0, 256], ValueError, "levels holds values that an image of uint8 cannot have"),
        ([0, 1e300], ValueError, "levels holds values that an image of uint8 cannot have"),
    ],
)
def test_bad_levels_raise(application, levels, error, message):
    check_raises_in_one_line(lambda: CALLS[application](levels=levels), error, f"^{message}")


def test_levels_far_beyond_the_image_raise():
    for image in (FLOATS, FLOATS.astype(np.float32), FLOATS.astype(np.float16)):
        check_raises_in_one_line(
            lambda image=image: tf.denoise(image, levels=[0, 1e300]), ValueError, r"levels .* 1e\+300, much more"
        )


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (HOLE[:5], ValueError, r"mask has shape \(5, 7\), but the image's is \(6, 7\)"),
        (HOLE[..., None], ValueError, r"mask has shape \(6, 7, 1\), but the image's is \(6, 7\)"),
        (True, ValueError, r"mask has shape \(\), but"),
        ("hole", TypeError, "mask must hold real numbers, got dtype <U4"),
        (HOLE * 1j, TypeError, "mask must hold real numbers, got dtype complex128"),
        ([[True], [True, False]], TypeError, "mask must be an array of numbers, but its rows differ"),
    ],
)
def test_a_mask_that_does_not_fit_the_image_raises(mask, error, message):
    check_raises_in_one_line(lambda: tf.inpaint(IMAGE, mask), error, message)
    check_raises_in_one_line(lambda: tf.stereo(IMAGE, IMAGE, num_disparities=2, mask=mask), error, message)


def test_a_mask_with_channels_raises():
    mask = np.zeros(COLOUR.shape, bool)
    check_raises_in_one_line(
        lambda: tf.inpaint(COLOUR, mask, channel_axis=-1), ValueError, r"\(6, 7, 3\), but the image's is \(6, 7\)"
    )


@pytest.mark.parametrize("application", CALLS)
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"rng": -1}, ValueError, "rng must be None, a non-negative integer"),
        ({"rng": "seed"}, TypeError, "rng must be None, a non-negative integer"),
        ({"time_limit": -1}, ValueError, "time_limit must be at least 0, got -1"),
        ({"tol": "small"}, TypeError, "tol must be a number, got 'small'"),
        ({"callback": 3}, TypeError, "callback must be a function"),
        ({"x0": IMAGE[:2] * 0}, ValueError, r"x0 has shape \(2, 7\), but the model's is \([68], 7\)"),
        ({"speed": 11}, TypeError, "takes no speed"),
        ({"jump": None}, TypeError, 'method="auto" takes no jump; name a method that does: method="t_ils"'),
    ],
)
def test_every_application_raises_for_bad_options_of_minimize(application, keywords, error, message):
    check_raises_in_one_line(lambda: CALLS[application](**keywords), error, message)


MISSPELT = {
    "random_state": "rng",
    "multichannel": "channel_axis",
    "n_iter": "maxiter",
    "timeout": "time_limit",
    "verbose": "progress",
    "n_jobs": "threads",
    "wieght": "weight",
    "Contrast": "contrast",
}


@pytest.mark.parametrize("application", CALLS)
@pytest.mark.parametrize(("name", "meant"), MISSPELT.items())
def test_a_misspelt_keyword_raises_with_the_one_that_was_meant(application, name, meant):
    if meant == "contrast" and application in ("denoise", "inpaint"):
        return  # they have none
    message = rf"^{application} takes no {name}; did you mean {meant}\? It takes .*, and the keywords of minimize$"
    with pytest.raises(TypeError, match=message):
        CALLS[application](**{name: 3})


def test_words_for_the_number_of_labels_are_understood():
    with pytest.raises(TypeError, match=r"segment takes no n_segments; did you mean labels\?"):
        tf.segment(IMAGE, n_segments=3)
    with pytest.raises(TypeError, match=r"denoise takes no n_labels; did you mean levels\?"):
        tf.denoise(IMAGE, n_labels=3)


def test_keywords_of_a_named_method_are_suggested():
    with pytest.raises(TypeError, match=r"denoise takes no jmp; did you mean jump\? It takes .* keywords of t_ils$"):
        tf.denoise(IMAGE, method="t_ils", jmp=None)


@pytest.mark.parametrize(
    "call",
    [tf.denoise, tf.denoise_tiled, tf.segment, lambda image: tf.stereo(image, IMAGE, num_disparities=2)],
    ids=["denoise", "denoise_tiled", "segment", "stereo"],
)
def test_masked_pixels_raise_with_a_hint_at_inpaint(call):
    masked = np.ma.array(IMAGE, mask=HOLE)
    message = rf"(image|left) is a masked array with {HOLE.sum()} masked values; fill them with inpaint\(image, mask"
    check_raises_in_one_line(lambda: call(masked), ValueError, message)


def test_inpaint_takes_a_masked_array_whose_masked_pixels_are_in_the_holes():
    few = {"levels": 4, "maxiter": 1, "rng": 0}
    masked = np.ma.array(COLOUR, mask=np.stack([HOLE] * 3, axis=-1))
    restored = tf.inpaint(masked, HOLE, channel_axis=-1, **few)
    np.testing.assert_array_equal(restored, tf.inpaint(COLOUR, HOLE, channel_axis=-1, **few))
    smaller = HOLE & (np.arange(7) > 2)
    message = rf"image is a masked array with {3 * (HOLE & ~smaller).sum()} masked values outside of the mask;"
    check_raises_in_one_line(lambda: tf.inpaint(masked, smaller, channel_axis=-1, **few), ValueError, message)


def test_an_image_that_masks_nothing_is_an_image():
    image = np.ma.array(IMAGE)
    np.testing.assert_array_equal(tf.segment(image, rng=0), tf.segment(IMAGE, rng=0))

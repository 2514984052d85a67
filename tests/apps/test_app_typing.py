"""mypy --strict on a user's script: it knows what the applications return, and finds mistakes in their keywords."""

import inspect
import pathlib
import re

import pytest

import treefield
from treefield.apps.keywords import SearchKeywords
from treefield.results import MAPResult
from treefield.solvers.minimize import METHODS, takes

api = pytest.importorskip("mypy.api", reason="mypy is not installed")

SOURCE = pathlib.Path(treefield.__file__).parents[1]
CACHE = SOURCE.parent / ".mypy_cache" / "user-scripts"

SCRIPT = """\
import numpy as np
import treefield as tf

image, seed = np.zeros((8, 9)), 3
mask: np.ndarray = image > 1

restored = tf.denoise(image, sigma=0.1, levels=[0, 0.5, 1], rng=seed)
restored.shape
pair = tf.denoise(image, full_output=True, method="t_ils", maxiter=3, inner_iter=2)
pair[0].shape
pair[1].fun
tf.inpaint(image, mask, denoise=True, time_limit=2.0).dtype
tf.segment(image, 3, spacing=(1, 2)).max()
tf.segment(image, mask.astype(int), full_output=True)[1].mrf
tf.segment(image, probabilities=np.ones((8, 9, 1)), connectivity=2, channel_axis=None).max()
tf.denoise(image, channel_axis="auto").max()
tf.ising(image, -1, periodic=(True, False)).sum()
tf.stereo(image, image, num_disparities=3, occlusion="fill", contrast=0.1).min()
tf.ising([[0.5, -1.0]], [0, np.ones((1, 1))], threads=1).sum()
tf.ising(image, -1, full_output=True)[0].sum()
out = np.zeros((8, 9), np.float32)
tf.denoise_tiled(image, tile=(4, 4), memory_limit="1 GB").shape
tf.denoise_tiled(image, out, full_output=True)[0].dtype
for item in tf.batch(tf.denoise, [image, "b.png"], workers=2, sigma=0.1):
    if item.value is not None:
        item.value.shape

restored.energy  # error
pair.shape  # error
pair[1].gap.upper()  # error if MAPResult is typed
tf.denoise(image, sigma="0.1")  # error
tf.denoise(image, smothness="linear")  # error
tf.denoise(image, smoothness="cubic")  # error
tf.inpaint(image)  # error
tf.segment(image, 3, full_output=True).max()  # error
tf.stereo(image, image, num_disparities=2.5)  # error
tf.ising(image, -1, full_output=True).sum()  # error
tf.segment(image, connectivity=8)  # error
tf.denoise(image, channel_axis="last")  # error
tf.denoise_tiled(image, full_output=True).shape  # error
tf.denoise_tiled(image, 3)  # error
tf.batch(tf.denoise, [image])[0].value.shape  # error
"""


@pytest.fixture(scope="module")
def lines_with_errors(tmp_path_factory):
    script = tmp_path_factory.mktemp("user") / "script.py"
    script.write_text(SCRIPT)
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", f"--cache-dir={CACHE}"]
    with pytest.MonkeyPatch.context() as patch:
        if "site-packages" not in SOURCE.parts:
            patch.setenv("MYPYPATH", str(SOURCE))
        report, problems, _ = api.run([*options, str(script)])
    assert problems == ""
    return {int(line) for line in re.findall(r"script\.py:(\d+): error", report)}


def marked(comment):
    return {number for number, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith(comment)}


def test_mypy_accepts_correct_uses_and_finds_every_mistake(lines_with_errors):
    assert lines_with_errors - marked("# error if MAPResult is typed") == marked("# error")


@pytest.mark.skipif("gap" not in inspect.get_annotations(MAPResult), reason="MAPResult has no annotations")
def test_mypy_knows_that_the_gap_of_a_result_is_a_number(lines_with_errors):
    assert marked("# error if MAPResult is typed") <= lines_with_errors


def test_search_keywords_are_those_of_minimize_and_of_all_solvers():
    accepted = {name for method in METHODS for name in takes(method)} | {"method"}
    assert accepted - set(SearchKeywords.__annotations__) == set()

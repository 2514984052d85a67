"""The command denoise on images larger than the memory it may use."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from treefield.io import new_image, open_image, read_image, write_image

# the command, and then the most memory that its process had, as Linux counts it
PEAK = """
import pathlib
from treefield.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print(next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""
LIMIT = ("--memory-limit", "9GB", "--levels", 8, "--seed", 0)  # this process may have come to be large


@pytest.mark.parametrize("suffix", [".tif", ".npy", ".zarr", ".png"])
def test_tiled_denoise_of_a_file_equals_denoise_in_memory(command, files, grey, suffix):
    with new_image(files / "in.tif", grey.shape, grey.dtype, channels=False) as image:
        image[:, :] = grey
    done = command("denoise", "in.tif", f"out{suffix}", *LIMIT, "--data", "squared", "--tol", 1e-6)
    assert done.code == 0 and f"out{suffix}" in done.out and "gap" in done.out and not done.err
    assert command("denoise", "in.tif", "whole.tif", *LIMIT[2:], "--data", "squared", "--tol", 1e-6).code == 0
    with open_image(files / f"out{suffix}") as found:
        np.testing.assert_array_equal(found[:, :], read_image(files / "whole.tif"))


def test_tiled_denoise_restores_colours_and_keeps_alpha(command, files, grey):
    image = np.stack([grey, grey[::-1], grey[:, ::-1], np.arange(grey.size).reshape(grey.shape) % 251], axis=-1)
    write_image(files / "rgba.tif", image.astype(np.uint8))
    done = command("denoise", "rgba.tif", "out.tif", *LIMIT, "--json")
    summary, restored = json.loads(done.out), read_image(files / "out.tif")
    assert done.code == 0 and summary["output"] == "out.tif" and summary["energy"] >= summary["lower_bound"]
    assert restored.shape == image.shape and np.array_equal(restored[..., 3], image[..., 3])
    assert not np.array_equal(restored[..., :3], image[..., :3])


def test_quiet_tiled_denoise_prints_nothing_and_leaves_no_other_file(command, files):
    before = {path.name for path in files.iterdir()}
    done = command("denoise", "grey.png", "out.tif", *LIMIT, "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert {path.name for path in files.iterdir()} == before | {"out.tif"}


REFUSED = {
    "little": (("grey.png", "out.tif", "--memory-limit", "100MB"), "--memory-limit 100 MB is too little"),
    "no size": (("grey.png", "out.tif", "--memory-limit", "much"), "--memory-limit must be"),
    "report": (("grey.png", "out.tif", *LIMIT, "--report", "page.html"), "--report needs the whole image"),
    "method": (("grey.png", "out.tif", *LIMIT, "--method", "trw"), "must be one of 'auto', 't_icm', 't_ils'"),
    "no image": (("none.tif", "out.tif", *LIMIT), "there is no file none.tif"),
    "no room for alpha": (("rgba.tif", "out.jpg", *LIMIT), "no room for the image's alpha channel"),
    "there": (("grey.png", "mask.png", *LIMIT), "mask.png exists"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tiled_denoise_refuses_bad_arguments_in_one_line(command, files, name):
    write_image(files / "rgba.tif", np.zeros((9, 9, 4), np.uint8))
    arguments, message = REFUSED[name]
    done = command("denoise", *arguments)
    assert done.code == 2 and message in done.err and done.err.count("\n") == 1
    assert not (files / "out.tif").exists()


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_tiled_denoise_stays_below_its_memory_limit(tmp_path):
    image = np.clip(np.random.default_rng(0).normal(128, 40, (1400, 1500)), 0, 255).astype(np.uint8)
    write_image(tmp_path / "in.tif", image)
    arguments = ["denoise", "in.tif", "out.tif", "--levels", "16", "--memory-limit", "600MB", "-q", "--method", "t_icm"]
    done = subprocess.run([sys.executable, "-c", PEAK, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and 100e6 < 1024 * int(done.stdout.split()[1]) < 600e6
    assert read_image(tmp_path / "out.tif").shape == image.shape

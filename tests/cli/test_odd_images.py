"""Images that are unlike most: they just work, and keep their shape, dtype and alpha channel."""

import numpy as np
import pytest
from PIL import Image

from treefield.io import read_image, read_labels, write_image

FEW = ("--levels", 8, "--seed", 0)
SHAPES = {"one row": np.s_[:1], "one column": np.s_[:, :1], "one pixel": np.s_[:1, :1]}


@pytest.mark.parametrize("levels", [8, 256])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_row_one_column_and_one_pixel_are_restored(command, tmp_path, grey, shape, levels):
    image = grey[SHAPES[shape]]
    write_image(tmp_path / "in.png", image)
    assert command("denoise", "in.png", "out.png", "--levels", levels, "--report", "page.html").code == 0
    assert read_image(tmp_path / "out.png").shape == image.shape


@pytest.mark.parametrize("shape", SHAPES)
def test_every_command_accepts_one_row_one_column_and_one_pixel(command, tmp_path, grey, shape):
    image = grey[SHAPES[shape]]
    write_image(tmp_path / "in.png", image)
    write_image(tmp_path / "fields.npy", image.astype(np.float32) - 128)
    assert command("segment", "in.png", "labels.png").code == 0
    assert command("stereo", "in.png", "in.png", "depth.npy", "--num-disparities", 1).code == 0
    assert command("ising", "fields.npy", "spins.npy", "--coupling", 0).code == 0
    labels, depth, spins = read_labels(tmp_path / "labels.png"), np.load(tmp_path / "depth.npy"), "spins.npy"
    assert labels.shape == depth.shape == image.shape and labels.min() == 1 and not depth.any()
    np.testing.assert_array_equal(np.load(tmp_path / spins), np.where(image < 128, 1, -1))
    mask = np.arange(image.size).reshape(image.shape) == 1
    write_image(tmp_path / "mask.png", mask)
    assert command("inpaint", "in.png", "mask.png", "filled.png", *FEW, "--smoothness", "linear").code == 0
    assert (read_image(tmp_path / "filled.png") == image)[~mask].all()


@pytest.mark.parametrize("suffix", ["png", "tif", "npy"])
@pytest.mark.parametrize("channels", [2, 4])
def test_denoise_leaves_an_alpha_channel_unchanged(command, tmp_path, grey, channels, suffix):
    image = np.stack([grey, grey[::-1], grey.T.reshape(grey.shape), grey // 2][4 - channels :], axis=-1)
    write_image(tmp_path / f"in.{suffix}", image)
    write_image(tmp_path / "mask.png", grey > 190)
    given = (*FEW, "--smoothness", "linear")
    assert command("denoise", f"in.{suffix}", f"out.{suffix}", *given).code == 0
    assert command("inpaint", f"in.{suffix}", "mask.png", f"filled.{suffix}", *given).code == 0
    for name in (f"out.{suffix}", f"filled.{suffix}"):
        restored = read_image(tmp_path / name)
        assert restored.shape == image.shape and restored.dtype == image.dtype
        np.testing.assert_array_equal(restored[..., -1], image[..., -1])
        assert (restored[..., :-1] != image[..., :-1]).any()


@pytest.mark.parametrize("name", ["out.jpg", "out.ppm", "out.pnm"])
def test_a_format_without_alpha_loses_it_and_says_so(command, tmp_path, grey, name):
    write_image(tmp_path / "in.png", np.stack([grey] * 4, axis=-1))
    done = command("denoise", "in.png", name, *FEW)
    assert done.code == 0 and f"{name} (without its alpha channel)" in done.out
    assert read_image(tmp_path / name).shape == (*grey.shape, 3)
    assert "alpha" not in command("denoise", "in.png", "out.tif", *FEW).out


def test_alpha_is_no_colour_to_segment_or_match_by(command, tmp_path, grey):
    opaque, rng = np.full_like(grey, 255), np.random.default_rng(3)
    for name, alpha in (("opaque", opaque), ("mottled", rng.integers(0, 256, grey.shape, np.uint8))):
        write_image(tmp_path / f"{name}.png", np.stack([grey, grey, grey, alpha], axis=-1))
        assert command("segment", f"{name}.png", f"{name}-labels.png", "--seed", 0).code == 0
        given = ("stereo", f"{name}.png", "opaque.png", f"{name}-depth.npy", "--num-disparities", 3, "--seed", 0)
        assert command(*given).code == 0
    for one, two in (("opaque-labels.png", "mottled-labels.png"), ("opaque-depth.npy", "mottled-depth.npy")):
        np.testing.assert_array_equal(read_image(tmp_path / one), read_image(tmp_path / two))


@pytest.mark.parametrize("name", ["denoise", "segment"])
def test_an_image_of_one_colour_stays_unchanged(command, tmp_path, grey, name):
    write_image(tmp_path / "in.png", np.full_like(grey, 7))
    assert command(name, "in.png", "out.png", "--report", "page.html").code == 0
    assert set(np.unique(read_labels(tmp_path / "out.png"))) == {7 if name == "denoise" else 1}


@pytest.mark.parametrize("suffix", ["png", "tif", "pgm", "npy", "npz"])
def test_an_image_of_16_bits_stays_16_bits(command, tmp_path, grey, suffix):
    image = grey.astype(np.uint16) * 257
    write_image(tmp_path / f"in.{suffix}", image)
    assert command("denoise", f"in.{suffix}", f"out.{suffix}", *FEW).code == 0
    restored = read_image(tmp_path / f"out.{suffix}")
    assert restored.dtype == np.uint16 and restored.max() > 255
    assert np.abs(restored - image.astype(float)).mean() < 50 * 257


def test_a_float_image_stays_a_float_image(command, tmp_path, grey):
    image = (grey / 255).astype(np.float32)
    for name in ("x.pfm", "x.tif", "x.npy"):
        write_image(tmp_path / name, image)
        assert command("denoise", name, f"out-{name}", *FEW).code == 0
    first, second, third = (read_image(tmp_path / f"out-x.{suffix}") for suffix in ("pfm", "tif", "npy"))
    assert first.dtype == np.float32 and first.max() <= 1
    assert (first == second).all() and (first == third).all()


def test_an_image_of_one_bit_stays_one(command, tmp_path, grey):
    write_image(tmp_path / "in.png", grey > 100)
    assert command("denoise", "in.png", "out.png", "--seed", 0).code == 0
    assert read_image(tmp_path / "out.png").dtype == np.bool_


def test_a_palette_is_restored_in_its_colours(command, tmp_path, grey):
    picture = Image.fromarray(grey // 86).convert("P")
    picture.putpalette([200, 0, 0, 0, 200, 0, 0, 0, 200])
    picture.save(tmp_path / "in.png")
    assert command("denoise", "in.png", "out.png", *FEW).code == 0
    assert read_image(tmp_path / "out.png").shape == (*grey.shape, 3)
    assert command("segment", "in.png", "labels.png", "--labels", 3, "--seed", 0).code == 0
    assert read_labels(tmp_path / "labels.png").max() == 3


@pytest.mark.parametrize("suffix", ["tif", "npy"])
def test_volumes_are_denoised_inpainted_and_segmented(command, tmp_path, grey, suffix):
    volume = np.stack([grey] * 5)
    hole = np.zeros(volume.shape, bool)
    hole[2, 4:7, 5:9] = True
    write_image(tmp_path / f"in.{suffix}", volume)
    write_image(tmp_path / "hole.npy", hole)
    given = (*FEW, "--smoothness", "linear", "--report")
    assert command("denoise", f"in.{suffix}", f"out.{suffix}", *given, "1.html").code == 0
    assert command("inpaint", f"in.{suffix}", "hole.npy", f"filled.{suffix}", *given, "2.html").code == 0
    done = command("segment", f"in.{suffix}", f"labels.{suffix}", "--spacing", "2,1,1", "--report", "3.html")
    assert done.code == 0
    restored, filled, labels = (read_image(tmp_path / f"{name}.{suffix}") for name in ("out", "filled", "labels"))
    assert restored.shape == filled.shape == labels.shape == volume.shape
    assert (filled == volume)[~hole].all() and (filled != volume).any()


def test_denoise_reads_and_writes_jpeg(command, tmp_path, grey):
    write_image(tmp_path / "in.jpg", grey)
    assert command("denoise", "in.jpg", "out.jpeg", *FEW).code == 0
    assert read_image(tmp_path / "out.jpeg").shape == grey.shape

"""Images and label maps come back from their files as they were."""

import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from one_line import check_one_line_error
from treefield.io import read_image, read_labels, write_image, write_labels
from treefield.io.images.image_formats import read_seeds
from treefield.io.images.pillow_files import label_colours

GREY = np.arange(20, dtype=np.uint8).reshape(4, 5)
RGB = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
ANY_DTYPE = ("bool", "uint8", "uint16", "int16", "int32", "int64", "uint32", "float16", "float32", "float64")
# what each format holds: dtypes and the axes after (M, N); "volume" stands for (P, M, N)
HELD = {
    "png": (("uint8", "uint16"), ((), (2,), (3,), (4,))),
    "pgm": (("uint8", "uint16"), ((),)),
    "ppm": (("uint8", "uint16"), ((3,),)),
    "pnm": (("uint8", "uint16"), ((), (3,))),
    "pfm": (("float32",), ((), (3,))),
    "tif": (ANY_DTYPE, ((), (2,), (3,), (4,), "volume")),
    "npy": (ANY_DTYPE, ((), (2,), (3,), (4,), "volume")),
    "NPZ": (ANY_DTYPE, ((), (3,), "volume")),
}


def random_array(seed, shape, dtype):
    data = np.random.default_rng(seed).bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    array = np.frombuffer(data, "uint8" if dtype == "bool" else dtype).reshape(shape)
    array = array & 1 == 1 if dtype == "bool" else array
    return np.nan_to_num(array) if array.dtype.kind == "f" else array


@st.composite
def files(draw):
    suffix = draw(st.sampled_from(sorted(HELD)))
    dtypes, axes = HELD[suffix]
    last = draw(st.sampled_from(axes))
    size = (draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    shape = (draw(st.integers(1, 5)), *size) if last == "volume" else (*size, *last)
    return suffix, random_array(draw(st.integers(0, 2**32)), shape, draw(st.sampled_from(dtypes)))


@given(files())
def test_a_written_image_comes_back_unchanged(tmp_path_factory, case):
    suffix, array = case
    path = tmp_path_factory.mktemp("image") / f"image.{suffix}"
    write_image(path, array)
    found = read_image(path)
    assert found.dtype == array.dtype and found.shape == array.shape
    assert np.array_equal(found, array)
    found[...] = 0  # it is the caller's own


@given(st.sampled_from(["png", "PNG", "tif", "npy", "npz", "pgm"]), st.integers(1, 65536), st.data())
def test_written_labels_come_back_unchanged(tmp_path_factory, suffix, count, data):
    shape = data.draw(st.tuples(*[st.integers(1, 6)] * (2 if suffix in ("png", "PNG", "pgm") else 3)))
    labels = np.random.default_rng(count).integers(0, count, shape)
    path = tmp_path_factory.mktemp("labels") / f"labels.{suffix}"
    write_labels(path, labels)
    found = read_labels(path)
    assert found.dtype.kind in "ui" and found.shape == shape and np.array_equal(found, labels)


@pytest.mark.parametrize("suffix", ["tif", "npy", "npz"])
def test_negative_labels_and_volumes_with_three_columns_come_back(tmp_path, suffix):
    labels = np.arange(-12, 12, dtype=np.int32).reshape(2, 4, 3)
    write_labels(tmp_path / f"x.{suffix}", labels)
    assert np.array_equal(read_labels(tmp_path / f"x.{suffix}"), labels)
    assert read_labels(tmp_path / f"x.{suffix}").dtype == np.int32


def test_a_png_of_labels_is_a_palette_image_whose_indices_are_the_labels(tmp_path):
    labels = np.arange(256).reshape(16, 16)
    write_labels(tmp_path / "x.png", labels)
    with Image.open(tmp_path / "x.png") as image:
        assert image.mode == "P" and np.array_equal(np.asarray(image), labels)
    assert (tmp_path / "x.png").read_bytes()[24] == 8  # bits
    assert len(np.unique(read_image(tmp_path / "x.png").reshape(-1, 3), axis=0)) == 256
    assert np.array_equal(read_image(tmp_path / "x.png").reshape(-1, 3), label_colours())
    write_labels(tmp_path / "more.png", labels + 1)
    assert read_image(tmp_path / "more.png").dtype == np.uint16


def test_a_bool_image_is_read_as_bool_and_as_labels_0_and_1(tmp_path):
    mask = GREY % 3 == 0
    for suffix in ("png", "tif", "npy"):
        write_image(tmp_path / f"mask.{suffix}", mask)
        assert read_image(tmp_path / f"mask.{suffix}").dtype == bool
        assert np.array_equal(read_labels(tmp_path / f"mask.{suffix}"), mask.astype(np.uint8))
        assert read_labels(tmp_path / f"mask.{suffix}").dtype == np.uint8


def test_jpeg_images_come_back_with_small_error(tmp_path):
    smooth = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8)
    for image in (smooth, np.dstack([smooth, smooth + 50, 2 * smooth])):
        write_image(tmp_path / "x.jpg", image, force=True)
        assert np.abs(read_image(tmp_path / "x.jpg").astype(int) - image).max() <= 4
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "cmyk.jpg")
    assert np.abs(read_image(tmp_path / "cmyk.jpg").astype(int) - [255, 0, 0]).max() <= 4


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_rotated_by_their_exif_orientation(tmp_path, orientation):
    image = Image.fromarray(RGB)
    exif = Image.Exif()
    exif[274] = orientation
    image.save(tmp_path / "x.png", exif=exif)
    with Image.open(tmp_path / "x.png") as stored:
        turned = np.asarray(ImageOps.exif_transpose(stored))
    assert np.array_equal(read_image(tmp_path / "x.png"), turned)
    image.save(tmp_path / "x.tif", tiffinfo={274: orientation})
    assert np.array_equal(read_image(tmp_path / "x.tif"), turned)


@pytest.mark.parametrize("suffix", ["png", "tif", "gif", "bmp"])
def test_a_palette_gives_colours_or_indices(tmp_path, suffix):
    image = Image.fromarray(GREY % 4)
    image.putpalette([1, 2, 3, 9, 8, 7, 100, 200, 0, 50, 60, 70])
    image.save(tmp_path / f"x.{suffix}")
    assert np.array_equal(read_labels(tmp_path / f"x.{suffix}"), GREY % 4)
    assert np.array_equal(read_image(tmp_path / f"x.{suffix}"), np.asarray(image.convert("RGB")))


def test_transparency_becomes_alpha(tmp_path):
    image = Image.fromarray(GREY)
    image.save(tmp_path / "grey.png", transparency=3)
    assert np.array_equal(read_image(tmp_path / "grey.png"), np.dstack([GREY, np.where(GREY == 3, 0, 255)]))
    assert np.array_equal(read_labels(tmp_path / "grey.png"), GREY)
    image.putpalette(list(range(60)))
    for suffix in ("png", "gif"):
        image.save(tmp_path / f"x.{suffix}", transparency=3)
        assert np.array_equal(read_image(tmp_path / f"x.{suffix}")[..., 3], np.where(GREY == 3, 0, 255))


def test_grey_png_of_2_and_4_bits_is_unchanged_as_labels_and_stretched_as_image(tmp_path):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 1, 4, 0, 0, 0, 0))
    (tmp_path / "x.png").write_bytes(start + chunk(b"IDAT", zlib.compress(b"\0\x12\x3f")) + chunk(b"IEND", b""))
    assert read_labels(tmp_path / "x.png").tolist() == [[1, 2, 3, 15]]
    assert read_image(tmp_path / "x.png").tolist() == [[17, 34, 51, 255]]


@pytest.mark.parametrize(
    ("content", "dtype", "expected"),
    [
        (b"P2\n# a comment\n3 1 # more\n9\n1 2\n9", np.uint8, [[1, 2, 9]]),
        (b"P5 3 1 9\n\x01\x02\x09", np.uint8, [[1, 2, 9]]),
        (b"P5 3 1 999\n\0\x01\0\x02\x03\xe7", np.uint16, [[1, 2, 999]]),
        (b"P3 1 1 300 1 2 300", np.uint16, [[[1, 2, 300]]]),
        (b"P6\n1 1\n255\n\x0a\x0b\x0c", np.uint8, [[[10, 11, 12]]]),
        (b"P1\n3 2\n101\n0 1 0", bool, [[False, True, False], [True, False, True]]),
        (b"P4\n3 2\n\xa0\x40", bool, [[False, True, False], [True, False, True]]),
    ],
)
def test_netpbm_of_every_kind_is_read_with_its_values(tmp_path, content, dtype, expected):
    (tmp_path / "x.pnm").write_bytes(content)
    found = read_image(tmp_path / "x.pnm")
    assert found.dtype == dtype and found.tolist() == expected


def test_pfm_is_read_bottom_up_in_either_byte_order(tmp_path):
    rows = np.array([[1.5, -2], [3, 4]], np.float32)
    (tmp_path / "little.pfm").write_bytes(b"Pf\n2 2\n-1.0\n" + rows[::-1].astype("<f4").tobytes())
    (tmp_path / "big.pfm").write_bytes(b"Pf\n2 2\n1.0\n" + rows[::-1].astype(">f4").tobytes())
    for name in ("little.pfm", "big.pfm"):
        assert read_image(tmp_path / name).tolist() == rows.tolist()
    write_image(tmp_path / "own.pfm", rows)
    with Image.open(tmp_path / "own.pfm") as image:
        assert np.array_equal(np.asarray(image), rows)


@pytest.mark.parametrize("compression", [None, "lzw", "zlib", "packbits", "zstd"])
def test_tiff_files_of_other_programs_are_read(tmp_path, compression):
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, RGB, photometric="rgb", compression=compression, rowsperstrip=2)
    assert np.array_equal(read_image(path), RGB)
    tifffile.imwrite(path, RGB.transpose(2, 0, 1), photometric="rgb", planarconfig="separate", compression=compression)
    assert np.array_equal(read_image(path), RGB)
    pages = np.random.default_rng(0).random((3, 20, 30)).astype(np.float32)
    tifffile.imwrite(path, pages, photometric="minisblack", metadata=None, compression=compression, tile=(16, 16))
    assert np.array_equal(read_image(path), pages)
    tifffile.imwrite(path, 255 - GREY, photometric="miniswhite", compression=compression)
    assert np.array_equal(read_image(path), GREY) and np.array_equal(read_labels(path), 255 - GREY)


def test_the_first_frame_of_a_gif_is_read(tmp_path):
    frames = [Image.fromarray(GREY), Image.fromarray(255 - GREY)]
    frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:])
    assert np.array_equal(read_labels(tmp_path / "x.gif"), GREY)


def test_the_only_array_or_the_one_named_image_of_an_npz_is_read(tmp_path):
    np.savez(tmp_path / "one.npz", depth=GREY)
    np.savez_compressed(tmp_path / "more.npz", other=RGB, image=np.asfortranarray(GREY.astype(">i4")))
    np.savez(tmp_path / "which.npz", left=GREY, right=GREY)
    assert np.array_equal(read_image(tmp_path / "one.npz"), GREY)
    found = read_image(tmp_path / "more.npz")
    assert np.array_equal(found, GREY) and found.dtype == np.int32  # of this machine's byte order
    check_one_line_error(lambda: read_image(tmp_path / "which.npz"), ValueError, "left, right", "image")


def test_equal_channels_are_labels_and_a_photograph_is_not(tmp_path):
    write_image(tmp_path / "grey.png", np.dstack([GREY, GREY, GREY, 255 - GREY]))
    assert np.array_equal(read_labels(tmp_path / "grey.png"), GREY)
    write_image(tmp_path / "photo.png", RGB)
    check_one_line_error(lambda: read_labels(tmp_path / "photo.png"), ValueError, "photo.png", "colour")
    np.save(tmp_path / "floats.npy", np.ones((2, 2)))
    check_one_line_error(lambda: read_labels(tmp_path / "floats.npy"), ValueError, "float64", "integer labels")
    np.save(tmp_path / "many.npy", np.ones((2, 2, 2, 2), int))
    check_one_line_error(lambda: read_labels(tmp_path / "many.npy"), ValueError, "(2, 2, 2, 2)")


def test_image_decoders_are_imported_only_when_a_file_needs_them():
    code = "import sys, treefield.io; print([m for m in ('PIL', 'tifffile', 'imagecodecs') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path, monkeypatch):
    write_image(tmp_path / "x.png", GREY)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    error = check_one_line_error(lambda: read_image(tmp_path / "x.png"), ImportError)
    assert str(error) == 'reading images needs Pillow: pip install "treefield[cli]"'
    check_one_line_error(lambda: write_image(tmp_path / "y.png", GREY), ImportError, "writing images needs Pillow")


@pytest.mark.parametrize("suffix", ["png", "tif", "ppm"])
@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("uint8", ["#000001", "#00ff00", "#ff0000"]),
        ("uint16", ["#000000000001", "#0000ffff0000", "#ffff00000000"]),
    ],
)
def test_strokes_are_numbered_in_the_order_of_their_colours(tmp_path, dtype, suffix, names):
    strokes, high = np.zeros((2, 4, 3), dtype), np.iinfo(dtype).max
    strokes[0, 1:3], strokes[1, 0], strokes[1, 3] = (high, 0, 0), (0, high, 0), (0, 0, 1)
    write_image(tmp_path / f"x.{suffix}", strokes)
    labels, colours = read_seeds(tmp_path / f"x.{suffix}")
    assert labels.tolist() == [[0, 3, 3, 0], [2, 0, 0, 1]]
    assert list(colours) == names and list(colours.values()) == [1, 1, 2]


def test_transparent_pixels_of_strokes_are_no_seeds(tmp_path):
    image = Image.fromarray(np.where(GREY[..., None] % 3 == 0, np.uint8(255), np.array([9, 0, 0], np.uint8)))
    image.save(tmp_path / "key.png", transparency=(255, 255, 255))
    Image.fromarray(np.dstack([GREY, np.where(GREY % 3 == 0, 0, 7).astype(np.uint8)]), "LA").save(tmp_path / "la.png")
    labels, colours = read_seeds(tmp_path / "key.png")
    assert colours == {"#090000": 13} and np.array_equal(labels, GREY % 3 > 0)
    labels, colours = read_seeds(tmp_path / "la.png")
    assert np.array_equal(labels > 0, GREY % 3 > 0) and min(colours) == "#010101"


def test_seeds_of_one_channel_or_with_a_palette_are_labels(tmp_path):
    write_image(tmp_path / "grey.png", GREY)
    write_labels(tmp_path / "palette.png", GREY)
    for name in ("grey.png", "palette.png"):
        labels, colours = read_seeds(tmp_path / name)
        assert np.array_equal(labels, GREY) and colours == {}

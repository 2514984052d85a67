"""Images that cannot be read or written are refused in one line, quickly and without much memory."""

import errno
import os
import pathlib
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from one_line import check_one_line_error
from treefield.io import read_image, read_labels, write_image, write_labels

GREY = np.arange(20, dtype=np.uint8).reshape(4, 5)
RGB = np.random.default_rng(0).integers(0, 256, (15, 17, 3), np.uint8)
SUFFIXES = ("png", "jpg", "jpeg", "tif", "tiff", "pgm", "ppm", "pnm", "pfm", "npy", "npz", "bmp", "gif", "webp")
UNREADABLE = "is not an image that can be read: "


def npy(shape, descr="'<f8'"):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def png(width, height, depth=8, colour=2):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("read", [read_image, read_labels])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_not_an_image_is_refused(tmp_path, suffix, read):
    path = tmp_path / f"x.{suffix}"
    check_one_line_error(lambda: read(path), FileNotFoundError, f"there is no file {path}")
    path.write_bytes(b"")
    check_one_line_error(lambda: read(path), ValueError, f"{path} {UNREADABLE}the file is empty")
    for content in (
        b"hello",
        bytes(1000),
        b"II*\0",
        b"\x89PNG\r\n\x1a\n",
        b"P5 1",
        b"Pf 1 1 x ",
        b"PK\x05\x06" + bytes(18),
    ):
        path.write_bytes(content)
        check_one_line_error(lambda: read(path), ValueError, f"{path} {UNREADABLE}")
    path.unlink()
    path.mkdir()
    check_one_line_error(lambda: read(path), IsADirectoryError, f"{path} is a folder")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truncated_image_is_refused(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    array = {"pgm": RGB[..., 0], "pfm": RGB.astype(np.float32)}.get(suffix, RGB)
    if suffix in ("bmp", "gif", "webp"):
        Image.fromarray(RGB).save(path)
    else:
        write_image(path, array)
    whole = path.read_bytes()
    for part in (0.9, 0.5, 0.1):
        path.write_bytes(whole[: int(part * len(whole))])
        check_one_line_error(lambda: read_image(path), ValueError, f"{path} {UNREADABLE}")


def test_a_damaged_16_bit_png_is_refused(tmp_path):
    path = tmp_path / "x.png"
    write_image(path, RGB.astype(np.uint16) * 257)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    check_one_line_error(lambda: read_image(path), ValueError, "truncated")
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    check_one_line_error(lambda: read_image(path), ValueError, "checksum")


CLAIMS = {
    "x.npy": npy((10**6, 10**6)),
    "y.npy": npy((2**62, 2**62, 2**62)),
    "z.npy": npy((-1, 5)),
    "x.png": png(2**31 - 1, 2**31 - 1),
    "y.png": png(900_000, 900_000, 16, 6),
    "x.pgm": b"P5\n999999999 999999999\n255\nabc",
    "y.pgm": b"P2\n999999999 999999999\n255\n1 2 3",
    "z.pnm": b"P4\n999999999 999999999\nabc",
    "x.pfm": b"PF\n999999999 999999999\n-1\nabc",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_an_image_header_that_claims_too_much_is_refused_without_allocating(tmp_path, name):
    (tmp_path / name).write_bytes(CLAIMS[name])
    tracemalloc.start()
    try:
        check_one_line_error(lambda: read_image(tmp_path / name), ValueError, name)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("claimed", [None, 2**32 - 2])
def test_an_npz_member_that_claims_too_much_is_refused(tmp_path, claimed):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("image.npy", npy((10_000, 50_000)))
    whole = bytearray((tmp_path / "x.npz").read_bytes())
    if claimed:  # the archive's list of contents says that there is enough, too
        at = whole.index(b"PK\x01\x02") + 24
        whole[at : at + 4] = claimed.to_bytes(4, "little")
    (tmp_path / "x.npz").write_bytes(whole)
    check_one_line_error(lambda: read_image(tmp_path / "x.npz"), ValueError, "x.npz", "(10000, 50000)", "too short")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "pgm", "pfm", "npy", "npz", "bmp", "gif", "webp"])
def test_an_image_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"x.{suffix}"
    array = np.zeros((1000, 1000), np.float32 if suffix == "pfm" else np.uint8)
    if suffix in ("bmp", "gif", "webp"):
        Image.fromarray(array).save(path)
    else:
        write_image(path, array)
    assert read_image(path).shape[:2] == (1000, 1000)
    monkeypatch.setattr("treefield.io.limits.available_memory", lambda: 900_000)
    check_one_line_error(
        lambda: read_image(path), MemoryError, f"{path} unpacks to ", "MB, but only 900 kB of memory are free"
    )


def test_a_tiff_of_absurd_size_is_refused(tmp_path):
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, GREY)
    whole = path.read_bytes()
    for tag in (256, 257):  # width and length, 2-byte tags to 4-byte ones
        at = whole.index(struct.pack("<HH", tag, 4))
        whole = whole[: at + 8] + struct.pack("<I", 2**31 - 1) + whole[at + 12 :]
    path.write_bytes(whole)
    check_one_line_error(lambda: read_image(path), (ValueError, MemoryError), str(path))


def test_a_tiff_without_all_its_data_is_refused_rather_than_filled_with_zeros(tmp_path):
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, RGB[..., 0] | 1, compression="zlib", rowsperstrip=20, metadata=None)
    whole = path.read_bytes()
    at = whole.index(struct.pack("<H", 279))  # the bytes of the only strip
    for field, words in ((bytes(4), "without data"), (b"\xff\xff\0\0", "truncated")):
        path.write_bytes(whole[: at + 8] + field + whole[at + 12 :])
        check_one_line_error(lambda: read_image(path), ValueError, str(path), words)
    at = whole.index(struct.pack("<H", 278))  # rows of a strip
    path.write_bytes(whole[: at + 8] + b"\5\0\0\0" + whole[at + 12 :])
    check_one_line_error(lambda: read_image(path), ValueError, str(path), "fewer strips")


@pytest.mark.parametrize("bigtiff", [False, True])
def test_a_tiff_whose_pages_form_a_ring_is_refused(tmp_path, bigtiff):
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, GREY, bigtiff=bigtiff, metadata=None)
    whole, size = bytearray(path.read_bytes()), 8 if bigtiff else 4
    first = int.from_bytes(whole[size : 2 * size], "little")
    count = int.from_bytes(whole[first : first + (8 if bigtiff else 2)], "little")
    following = first + (8 + 20 * count if bigtiff else 2 + 12 * count)
    assert not any(whole[following : following + size])  # the last page
    whole[following : following + size] = first.to_bytes(size, "little")
    path.write_bytes(whole)
    check_one_line_error(lambda: read_image(path), ValueError, "ring")


def test_large_images_are_read_despite_the_limit_of_pillow(tmp_path, monkeypatch):
    write_image(tmp_path / "x.png", RGB)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.array_equal(read_image(tmp_path / "x.png"), RGB)
    assert not caught and Image.MAX_IMAGE_PIXELS == 10


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([print], object), "Python objects"),
        (np.zeros((2, 2), complex), "complex128"),
        (np.zeros((2, 2), "U3"), "<U3"),
        (np.zeros((2, 2), [("a", int)]), "expected numbers"),
        (np.zeros((0, 5)), "empty"),
        (np.zeros(5), "(5,)"),
        (np.zeros((1, 1, 1, 1, 1)), "(1, 1, 1, 1, 1)"),
    ],
)
def test_write_image_refuses_an_array_that_is_not_an_image(tmp_path, array, words):
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", array)
    for name in ("x.npy", "x.npz"):
        check_one_line_error(lambda name=name: read_image(tmp_path / name), ValueError, name, UNREADABLE, words)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("x.jpg", np.zeros((2, 2), np.uint16), "uint16"),
        ("x.jpg", np.zeros((2, 2, 4), np.uint8), "(2, 2, 4)"),
        ("x.jpg", np.zeros((1, 70000), np.uint8), "65500"),
        ("x.png", np.zeros((2, 2), np.float32), ".tif or .npy (or .pfm)"),
        ("x.png", np.zeros((6, 4, 7), np.uint8), "(6, 4, 7)"),
        ("x.png", np.zeros((2, 2, 1), np.uint8), "(2, 2, 1)"),
        ("x.png", np.full((2, 2), -1), "int64"),
        ("x.png", np.zeros((2, 2, 3), bool), "(2, 2, 3)"),
        ("x.pgm", np.zeros((2, 2, 3), np.uint8), "(2, 2, 3)"),
        ("x.ppm", np.zeros((2, 2), np.uint8), "(2, 2)"),
        ("x.pfm", np.zeros((2, 2)), "float64"),
        ("x.npy", np.zeros((0, 2)), "empty"),
        ("x.npy", np.zeros(2), "(2,)"),
        ("x.xyz", GREY, ".png .jpg"),
        ("x", GREY, "no suffix"),
        ("x.gif", GREY, ".gif"),
    ],
)
def test_an_image_that_the_format_cannot_hold_is_refused_before_writing(tmp_path, name, array, words):
    check_one_line_error(lambda: write_image(tmp_path / name, array), ValueError, name, words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "labels", "error", "words"),
    [
        ("x.png", -GREY.astype(int), ValueError, "-19 to 0; .tif or .npy"),
        ("x.png", GREY * np.int64(10000), ValueError, "65535"),
        ("x.png", np.zeros((2, 2, 2), int), ValueError, "(2, 2, 2)"),
        ("x.npy", np.zeros((2, 2, 2, 2), int), ValueError, "(2, 2, 2, 2)"),
        ("x.npy", GREY / 2, TypeError, "float64"),
        ("x.jpg", GREY, ValueError, ".jpg"),
        ("x.npy", "labels", TypeError, "real numbers"),
    ],
)
def test_write_labels_refuses_an_array_that_is_not_a_label_map(tmp_path, name, labels, error, words):
    check_one_line_error(lambda: write_labels(tmp_path / name, labels), error, words)
    assert not list(tmp_path.iterdir())


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    write_image(tmp_path / "x.png", GREY)

    def refuse(*_, **__):  # root may read everything
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "open", refuse)
    check_one_line_error(lambda: read_image(tmp_path / "x.png"), PermissionError, "x.png may not be read", "permission")


def test_a_bad_image_path_is_refused(tmp_path):
    check_one_line_error(lambda: read_image(None), TypeError, "path")
    check_one_line_error(lambda: read_image(tmp_path / "x.doc"), ValueError, ".doc", ".png", ".npz")
    check_one_line_error(lambda: read_image("a\0b.png"), FileNotFoundError, "a\\x00b.png")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.png")
        check_one_line_error(lambda: read_image(tmp_path / "pipe.png"), ValueError, "regular file")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_image_is_read_or_refused_in_one_line(tmp_path, suffix, capfd):
    path = tmp_path / f"x.{suffix}"
    if suffix in ("bmp", "gif", "webp"):
        Image.fromarray(RGB).save(path)
    else:
        write_image(path, {"pgm": RGB[..., 0], "pfm": RGB.astype(np.float32)}.get(suffix, RGB))
    good, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        bad = bytearray(good)
        for place in rng.integers(0, min(len(bad), rng.choice([60, 10000])), 3):
            bad[place] = rng.integers(256)
        path.write_bytes(bad[: rng.integers(1, len(bad))] if rng.random() < 0.3 else bad)
        try:
            assert read_image(path).size
        except (ValueError, MemoryError) as error:
            refused += 1
            assert "\n" not in str(error) and str(path) in str(error)
    assert refused > 40
    assert capfd.readouterr() == ("", "")

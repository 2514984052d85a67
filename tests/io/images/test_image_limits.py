"""Readers of images take time and memory in proportion to the file."""

import struct

import numpy as np
import pytest
import tifffile
from PIL import Image

from file_limits import VARIABLE, flat_png, memory_below
from one_line import check_one_line_error
from treefield.io import open_image, read_image
from treefield.io.limits import TooLargeError


def test_values_behind_a_text_image_are_not_read(tmp_path):
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P2\n2 2\n255\n# four\n1 2 3 4 " + b"7 " * 10_000_000)
    with memory_below(30_000_000):
        assert read_image(path).tolist() == [[1, 2], [3, 4]]


def test_a_png_chunk_that_claims_more_than_the_file_is_refused_without_allocating(tmp_path):
    path = tmp_path / "x.png"
    flat_png(path, 10, 10)
    whole = path.read_bytes()
    at = whole.index(b"IDAT") - 4
    path.write_bytes(whole[:at] + struct.pack(">I", 2**31 - 1) + whole[at + 4 :])
    with memory_below(10_000_000):
        check_one_line_error(lambda: read_image(path), ValueError, str(path), "claim 2147483647 bytes")
    path.write_bytes(whole + b"\xff" * 100)  # whatever follows the image is not read
    assert read_image(path).shape == (10, 10)


def test_a_jpeg_of_many_scans_is_refused(tmp_path):
    path = tmp_path / "x.jpg"
    Image.new("RGB", (64, 64)).save(path, progressive=True)
    assert read_image(path).shape == (64, 64, 3)
    whole = path.read_bytes()
    scan = whole[whole.rindex(b"\xff\xda") : -2]
    path.write_bytes(whole[:-2] + scan * 200 + whole[-2:])
    check_one_line_error(lambda: read_image(path), ValueError, str(path), "scans, expected up to 100")


def test_a_zarr_chunk_larger_than_memory_is_refused(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.zarr"
    zarr.create_array(store=str(path), shape=(2**20, 2**20), chunks=(2**20, 2**20), dtype=np.uint8)
    monkeypatch.setattr("treefield.io.limits.available_memory", lambda: 10**9)

    def read():
        with open_image(path):
            pass

    check_one_line_error(read, TooLargeError, str(path), "1.1 TB")


def test_a_tiff_tile_larger_than_the_limit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, np.zeros((64, 64), np.uint8), tile=(1024, 1024), compression="zlib")
    assert read_image(path).shape == (64, 64)
    monkeypatch.setenv(VARIABLE, "1MB")
    check_one_line_error(lambda: read_image(path), TooLargeError, str(path), "unpacks to 1.05 MB")

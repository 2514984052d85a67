"""Damaged Zarr stores give an image or one line that names them; `fuzz_zarr.py --mutations 1000` tries more of them."""

import numpy as np
import pytest

from fuzz_zarr import IMAGE, STORES, check_damaged, write_store
from one_line import check_one_line_error
from treefield.io import open_image


@pytest.mark.parametrize("kind", STORES)
def test_damaged_store_is_denoised_or_refused_in_one_line(tmp_path, monkeypatch, kind):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    write_store(tmp_path / "good.zarr", kind)
    read = [check_damaged(work, kind, number, tmp_path / "good.zarr") for number in range(12)]
    assert not all(read)


def test_damaged_chunk_is_refused_when_it_is_read(tmp_path):
    path = tmp_path / "image.zarr"
    write_store(path, "zstd")
    chunk = path / "c" / "1" / "2"
    chunk.write_bytes(chunk.read_bytes()[:9])
    with open_image(path) as image:
        np.testing.assert_array_equal(image[:6, :6], IMAGE[:6, :6].astype(np.uint8))
        assert image.shape == IMAGE.shape and image.dtype == np.uint8
        check_one_line_error(lambda: image[6:, 6:], ValueError, f"{path} is not an image that can be read")
        chunk.unlink()  # Zarr takes a chunk that is not there for one of zeros
        assert (image[6:, 12:] == 0).all()

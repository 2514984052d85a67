"""The limit on unpacked data, TREEFIELD_MAX_UNPACKED."""

import lzma

import numpy as np
import pytest

import treefield as tf
from file_limits import SPINS, VARIABLE, flat_png, memory_below
from one_line import check_one_line_error
from treefield.io import read_image, read_model, write_image, write_model
from treefield.io.limits import TooLargeError, check_unpacked


def packed_model(path):
    mrf = tf.GraphMRF(np.zeros((30_000, 2)), [(0, 1)], tf.Potts(1))
    if path.suffix == ".npz":
        np.savez_compressed(path, unary=np.zeros((30, 1000, 2)), potts=1.0)
    else:
        write_model(path, mrf)


def packed_image(path):
    if path.suffix == ".png":
        flat_png(path, 1000, 600)
    elif path.suffix == ".npz":
        np.savez_compressed(path, image=np.zeros((600, 1000), np.uint8))
    else:
        write_image(path, np.zeros((600, 1000), np.uint8))


@pytest.mark.parametrize(
    ("name", "make", "read"),
    [(f"x{suffix}", packed_model, read_model) for suffix in (".uai.gz", ".uai.xz", ".cfn.gz", ".npz")]
    + [(f"x{suffix}", packed_image, read_image) for suffix in (".png", ".jpg", ".tif", ".npz")],
)
def test_a_file_that_unpacks_to_more_than_the_limit_is_refused_until_it_is_raised(
    tmp_path, monkeypatch, name, make, read
):
    path = tmp_path / name
    make(path)
    monkeypatch.setenv(VARIABLE, "100kB")
    error = check_one_line_error(
        lambda: read(path), TooLargeError, str(path), "unpacks to", "the limit is 100 kB", VARIABLE
    )
    assert error.args[0].endswith("MB to read it")
    advice = "5MB" if "more than" in error.args[0] else error.args[0].partition("=")[2].split()[0]
    for enough in ("5 MB", "5000000", advice):
        monkeypatch.setenv(VARIABLE, enough)
        assert read(path).size
    monkeypatch.setenv(VARIABLE, "plenty")
    check_one_line_error(lambda: read(path), TooLargeError, str(path), f"{VARIABLE} must be", "'plenty'")


def test_the_limit_on_unpacked_bytes_grows_with_the_file(tmp_path, monkeypatch):
    path = tmp_path / "x.png"
    for size, limit in ((1000, 512_000_000), (10_000_000, 1_000_000_000)):
        with path.open("wb") as file:
            file.truncate(size)
        check_unpacked(path, limit)
        check_one_line_error(
            lambda limit=limit: check_unpacked(path, limit + 1), TooLargeError, str(path), "the limit is"
        )
    check_one_line_error(
        lambda: check_unpacked(path, 2 * limit), TooLargeError, "unpacks to 2 GB", f"{VARIABLE}=2000MB"
    )


def test_a_small_text_that_unpacks_to_much_is_refused_by_default(tmp_path):
    path = tmp_path / "x.uai.xz"
    path.write_bytes(lzma.compress(b"MARKOV" + b" " * 40_000_000, preset=0))
    check_one_line_error(lambda: read_model(path), TooLargeError, str(path), "more than 32 MB", VARIABLE)


def test_a_small_png_that_unpacks_to_much_is_refused_by_default(tmp_path):
    path = tmp_path / "x.png"
    flat_png(path, 24_000, 24_000)
    with memory_below(10_000_000):
        check_one_line_error(
            lambda: read_image(path), TooLargeError, str(path), "unpacks to 576 MB", "512 MB", "=576MB"
        )


def test_files_that_are_not_packed_have_no_limit(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1kB")
    write_model(tmp_path / "x.uai", SPINS)
    write_image(tmp_path / "x.npy", np.zeros((100, 100)))
    write_image(tmp_path / "x.pgm", np.zeros((100, 100), np.uint8))
    assert read_model(tmp_path / "x.uai").size == 40
    assert read_image(tmp_path / "x.npy").shape == read_image(tmp_path / "x.pgm").shape == (100, 100)

"""Model files whose arrays are not what their headers say, and paths that are no regular files."""

import os
import pathlib
import zipfile

import numpy as np
import pytest

import treefield as tf
from file_limits import GRAPH, VARIABLE, memory_below, npy
from one_line import check_one_line_error
from treefield.io import read_model, save_model, write_model
from treefield.io.limits import TooLargeError


def npz(path, unary):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("unary.npy", unary)
        archive.writestr("potts.npy", npy((), bytes(8)))


@pytest.mark.parametrize(
    ("unary", "words"),
    [
        (npy((2**40,)), "too short"),
        (npy((2,), bytes(100), descr="|O"), "Python objects"),
        (npy((2, 2, 2), bytes(1000)), "unary.npy holds more data"),
        (npy((2, 2, 2), bytes(5_000_000), version=2, claimed=2**32 - 1), "header claims 4294967295 bytes"),
    ],
)
def test_a_member_of_a_model_holds_what_its_header_announces(tmp_path, unary, words):
    npz(tmp_path / "x.npz", unary)
    with memory_below(10_000_000):
        check_one_line_error(lambda: read_model(tmp_path / "x.npz"), ValueError, "x.npz", words)


def test_a_flipped_bit_in_a_saved_model_is_found(tmp_path):
    path = tmp_path / "x.npz"
    save_model(path, tf.GridMRF(np.arange(24.0).reshape(2, 3, 4), tf.Potts(1)))
    data = bytearray(path.read_bytes())
    data[data.index(np.float64(7).tobytes()) + 6] ^= 1
    path.write_bytes(data)
    check_one_line_error(lambda: read_model(path), ValueError, "x.npz", "CRC")


def test_hdf5_data_in_other_files_and_repeated_kinds_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")

    def write(name, kinds, **values):
        with h5py.File(tmp_path / name, "w") as file:
            header = [2, 0, 1, 1, kinds, *[16000, 1] * kinds, 1]
            arrays = {"header": header, "numbers-of-states": [2], "factors": [0, 0, 1, 0]}
            for key, array in {**arrays, "function-id-16000/indices": [1, 2]}.items():
                file.create_dataset(f"gm/{key}", data=np.array(array, np.uint64))
            file.create_dataset("gm/function-id-16000/values", **values)
        return tmp_path / name

    assert read_model(write("good.h5", 1, data=np.array([1.0, 2.0]))).unaries[0].tolist() == [1, 2]
    (tmp_path / "values.bin").write_bytes(bytes(16))
    path = write("external.h5", 1, shape=(2,), dtype="f8", external=[(str(tmp_path / "values.bin"), 0, 16)])
    check_one_line_error(lambda: read_model(path), ValueError, str(path), "stored in other files")
    path = write("kinds.h5", 2, data=np.array([1.0, 2.0]))
    check_one_line_error(lambda: read_model(path), ValueError, str(path), "a kind of functions twice")


def test_the_limit_on_unpacked_bytes_applies_to_hdf5(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    write_model(path, GRAPH)
    with h5py.File(path, "r+") as file:
        del file["gm/function-id-16000/values"]
        file.create_dataset("gm/function-id-16000/values", data=np.zeros(100_000), compression="gzip")
    monkeypatch.setenv(VARIABLE, "500kB")
    check_one_line_error(lambda: read_model(path), TooLargeError, str(path), "unpacks to 800 kB", VARIABLE)


@pytest.mark.parametrize("suffix", [".uai", ".wcsp", ".cfn", ".mc", ".coo", ".qubo", ".bqm", ".npz", ".h5"])
def test_a_model_path_that_is_not_a_regular_file_is_refused(tmp_path, suffix):
    (tmp_path / f"folder{suffix}").mkdir()
    check_one_line_error(lambda: read_model(tmp_path / f"folder{suffix}"), IsADirectoryError, "is a folder")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        check_one_line_error(lambda: read_model(tmp_path / f"pipe{suffix}"), ValueError, "not a regular file")
    if pathlib.Path("/dev/zero").exists():
        (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
        check_one_line_error(lambda: read_model(tmp_path / f"zero{suffix}"), ValueError, "not a regular file")


@pytest.mark.parametrize("suffix", [".uai", ".wcsp", ".cfn", ".mc", ".coo", ".qubo", ".bqm", ".npz", ".h5"])
def test_a_sparse_file_of_zeros_is_refused_at_its_first_bytes(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    with path.open("wb") as file:
        file.truncate(20_000_000_000)
    with memory_below(10_000_000):
        check_one_line_error(lambda: read_model(path), ValueError, str(path))

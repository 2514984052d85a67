"""Files of labels have their space on disk before they are mapped."""

import errno
import os

import numpy as np
import pytest

from one_line import check_one_line_error
from treefield.tiling.stores import NoSpaceError, keep_file, new_npy, reserve_mapped

SHAPE = (300, 400)


def no_fallocate(monkeypatch, how):
    """Let no file be preallocated: the system has no such call, or the file system does not know it."""
    if how == "no such call":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    else:

        def refuse(*given):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)


def is_allocated(path):
    return path.stat().st_blocks * 512 >= path.stat().st_size


WAYS = ("fallocate", "no such call", "not supported")
on_posix = pytest.mark.skipif(os.name != "posix", reason="only POSIX counts the blocks of a file")


@on_posix
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_a_new_store_is_zeros_with_all_its_space_reserved(tmp_path, monkeypatch, way, dtype):
    if way != "fallocate":
        no_fallocate(monkeypatch, way)
    array = new_npy(tmp_path / "a.npy", SHAPE, dtype)
    assert is_allocated(array.path)
    loaded = np.load(array.path)
    assert loaded.dtype == dtype and loaded.shape == SHAPE and not loaded.any()
    array[10:20, 5:7] = 3
    assert np.load(array.path).sum() == 60


@on_posix
@pytest.mark.parametrize("way", WAYS)
def test_a_sparse_memmap_gets_its_space_and_keeps_its_content(tmp_path, monkeypatch, way):
    mapped = np.memmap(tmp_path / "own", np.uint8, "w+", offset=4096, shape=(600, 5000))
    mapped[7, 7] = 9
    before = mapped.copy()
    if way != "fallocate":
        no_fallocate(monkeypatch, way)
    reserve_mapped(np.asarray(mapped)[2:5])
    assert (tmp_path / "own").stat().st_blocks * 512 >= mapped.nbytes
    np.testing.assert_array_equal(mapped, before)
    assert (tmp_path / "own").stat().st_size == 4096 + mapped.nbytes


def test_stores_without_a_writable_file_need_no_space(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros(SHAPE))
    private = np.load(tmp_path / "a.npy", mmap_mode="c")
    removed = np.memmap(tmp_path / "gone", np.uint8, "w+", shape=SHAPE)
    if os.name == "posix":  # elsewhere a mapped file cannot be removed
        (tmp_path / "gone").unlink()
    reserved = []
    monkeypatch.setattr("treefield.tiling.stores._reserve", lambda *given: reserved.append(given))
    for array in (np.zeros(3), private, private[2:], [0, 1], *([removed] if os.name == "posix" else [])):
        reserve_mapped(array)
    assert not reserved


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_store_on_a_full_disk_is_an_error_and_leaves_no_file(tmp_path, monkeypatch, number):
    def raise_full_disk(*given):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("treefield.tiling.stores._reserve", raise_full_disk)
    error = check_one_line_error(
        lambda: new_npy(tmp_path / "a.npy", SHAPE, np.uint8), NoSpaceError, os.strerror(number)
    )
    assert "120,000 more bytes are needed on the disk of " in str(error) and error.errno == number
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_while_zeros_are_written_is_an_error(tmp_path, monkeypatch):
    no_fallocate(monkeypatch, "no such call")

    def raise_full_disk(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", raise_full_disk)
    check_one_line_error(lambda: new_npy(tmp_path / "a.npy", SHAPE, np.uint8), NoSpaceError, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_new_store_never_replaces_a_file(tmp_path):
    (tmp_path / "a.npy").write_text("mine")
    with pytest.raises(FileExistsError):
        new_npy(tmp_path / "a.npy", SHAPE, np.uint8)
    assert (tmp_path / "a.npy").read_text() == "mine"


def test_a_file_is_kept_under_a_name_that_is_free(tmp_path):
    for name in ("a.npy", "kept.npy", "kept-2.npy"):
        (tmp_path / name).write_text(name)
    assert keep_file(tmp_path / "a.npy", tmp_path / "kept.npy") == tmp_path / "kept-3.npy"
    assert (tmp_path / "kept-3.npy").read_text() == "a.npy" and (tmp_path / "kept.npy").read_text() == "kept.npy"

"""A full disk ends a run in tiles with one line and exit code 2: no crash, no temporary files, no lost search."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from command import ENTRY, arguments_of, check_command_refused, in_a_process, listing
from small_disks import KINDS, mounted, names
from treefield.io import read_image, write_image

LIMIT = ("--memory-limit", "9GB", "--levels", 4, "--method", "t_icm", "--seed", 0)
SUFFIXES = (".npy", ".tif", ".zarr", ".png")
SHAPES = {"tmpfs": (300, 400), "ext4": (1200, 1500)}  # on ext4 the image fits, but not with its labels


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("source", ["in.npy", "in.tif"])
def test_a_full_disk_is_refused_in_one_line_before_the_search(tmp_path, kind, source, suffix):
    write_image(tmp_path / source, np.random.default_rng(0).integers(0, 256, SHAPES[kind], dtype=np.uint8))
    with mounted(kind, tmp_path) as disk:
        done = in_a_process("denoise", tmp_path / source, disk / f"out{suffix}", *LIMIT)
        check_command_refused(done, "No space left on device", "more bytes are needed", str(disk), "use another disk")
        assert names(disk) == []


STORE = """
import pathlib, sys, numpy as np, treefield as tf
disk, kind, shape = pathlib.Path(sys.argv[1]), sys.argv[2], tuple(map(int, sys.argv[3:]))
store = np.memmap(disk / "own", "u1", "w+", shape=shape) if kind == "memmap" else disk / f"labels.{kind}"
mrf = tf.TiledMRF(lambda box: np.zeros([part.stop - part.start for part in box] + [2]), tf.Potts(1), shape=shape,
                  n_labels=2, tile=100, store=store)
try:
    tf.t_icm(mrf, rng=0)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("store", ["npy", "zarr", "memmap"])
def test_labels_that_do_not_fit_on_the_disk_are_refused(tmp_path, kind, store):
    rows, columns = SHAPES[kind]
    with mounted(kind, tmp_path) as disk:
        given = arguments_of(disk, store, 2 * rows, columns)
        given["args"][2] = STORE
        done = subprocess.run(**given, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0 and "No space left on device" in done.stdout and done.stdout.count("\n") == 1
        assert names(disk) == (["own"] if store == "memmap" else [])


FILLED = """
import pathlib, treefield.io.images.tiff as tiff
whole = tiff.write_tiles
def write_tiles(path, *given):
    try:
        with path.with_name("filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))
    except OSError:
        whole(path, *given)
tiff.write_tiles = write_tiles
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_is_full_when_the_tiff_is_packed_keeps_the_finished_image(tmp_path, kind):
    image = np.random.default_rng(0).integers(0, 256, (90, 110), dtype=np.uint8)
    write_image(tmp_path / "in.npy", image)
    with mounted(kind, tmp_path) as place:
        given = arguments_of("denoise", tmp_path / "in.npy", place / "out.tif", *LIMIT)
        given["args"][2] = FILLED + ENTRY
        done = subprocess.run(**given, capture_output=True, text=True, timeout=100)
        kept = place / "out.tif.npy"
        expected = f"could not write {place / 'out.tif'}: No space left on device; the finished image is kept in {kept}"
        assert done.returncode == 2 and done.stderr.splitlines()[-1] == f"treefield: {expected}"
        assert names(place) == ["filler", "out.tif.npy"]
        assert in_a_process("denoise", tmp_path / "in.npy", tmp_path / "whole.npy", *LIMIT).code == 0
        np.testing.assert_array_equal(np.load(kept), np.load(tmp_path / "whole.npy"))


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_limit_on_the_size_of_files_is_reported_in_one_line(tmp_path, suffix):
    pytest.importorskip("resource")
    write_image(tmp_path / "in.npy", np.arange(120000, dtype=np.uint16).reshape(300, 400))
    given = arguments_of("denoise", "in.npy", f"out{suffix}", *LIMIT)
    given["args"][2] = LIMITED + ENTRY
    done = subprocess.run(**given, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "File too large: 240,000 more bytes are needed" in done.stderr
    assert names(tmp_path) == ["in.npy"]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space is reserved by writing zeros here")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("place", range(2))
def test_space_that_cannot_be_reserved_ends_the_command_before_the_search(command, files, monkeypatch, suffix, place):
    reserved = []

    def reserve_or_fail(file, start, size):
        reserved.append(size)
        if len(reserved) > place:  # the image, then the labels
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", reserve_or_fail)
    before = listing(files)
    done = command("denoise", "grey.png", f"out{suffix}", *LIMIT)
    check_command_refused(done, "No space left on device: 192 more bytes are needed")
    assert len(reserved) == place + 1 and listing(files) == before


PACKERS = {
    ".tif": "treefield.io.images.tiff.write_tiles",
    ".zarr": "treefield.io.images.large_images._write_zarr",
    ".png": "treefield.cli.commands.denoise_by_tiles.write_image",
    ".npy": "os.fsync",
}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), MemoryError("full"), ValueError("too\nwide")])
def test_a_finished_image_that_cannot_be_written_is_kept(command, files, monkeypatch, suffix, error):
    assert command("denoise", "grey.png", "whole.npy", *LIMIT).code == 0
    (files / f"out{suffix}.npy").write_text("mine")
    before = listing(files)

    def fails(*given, **options):
        if suffix != ".npy" or sys._getframe(1).f_code.co_name == "move_into_place":
            raise error

    monkeypatch.setattr(PACKERS[suffix], fails)
    done = command("denoise", "grey.png", f"out{suffix}", *LIMIT)
    check_command_refused(done, f"the finished image is kept in out{suffix}-2.npy")
    assert listing(files).keys() - before.keys() == {(files / f"out{suffix}-2.npy").relative_to(files)}
    assert listing(files).items() >= before.items()
    np.testing.assert_array_equal(np.load(files / f"out{suffix}-2.npy"), read_image(files / "whole.npy"))


def test_a_finished_image_is_kept_when_another_program_has_written_the_output(command, files, monkeypatch):
    def slow(path, array, channels):
        (files / "out.tif").write_text("theirs")
        path.write_text("packed")

    monkeypatch.setattr("treefield.io.images.tiff.write_tiles", slow)
    done = command("denoise", "grey.png", "out.tif", *LIMIT)
    check_command_refused(done, "out.tif exists", "kept in out.tif.npy")
    assert (files / "out.tif").read_text() == "theirs" and np.load(files / "out.tif.npy").shape == (12, 16)

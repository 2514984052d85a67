"""A file is there whole or not at all, and nobody's file is lost."""

import errno
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import treefield as tf
from one_line import check_one_line_error
from treefield.io import save_model, write_image, write_labels
from treefield.io.files import write_atomically
from treefield.io.paths import as_output_path

IMAGE = np.arange(12, dtype=np.uint8).reshape(3, 4)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_file_holds_what_was_written_and_nothing_else_is_left(tmp_path):
    with write_atomically(tmp_path / "note.txt") as temporary:
        temporary.write_text("done")
        assert names(tmp_path) == [temporary.name]
        assert temporary.suffix == ".txt" and temporary.name.startswith(".") and str(os.getpid()) in temporary.name
    assert names(tmp_path) == ["note.txt"]
    assert (tmp_path / "note.txt").read_text() == "done"


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_usual_permissions(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_image(tmp_path / "image.png", IMAGE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "image.png").stat().st_mode) == 0o666 & ~mask


def test_a_path_that_cannot_be_an_output_is_refused(tmp_path):
    (tmp_path / "old.png").write_text("old")
    check_one_line_error(lambda: as_output_path(tmp_path / "no" / "x.png"), FileNotFoundError, "no folder", "x.png")
    check_one_line_error(lambda: as_output_path(tmp_path), IsADirectoryError, "folder")
    check_one_line_error(lambda: as_output_path(tmp_path, force=True), IsADirectoryError, "folder")
    check_one_line_error(
        lambda: as_output_path(tmp_path / "old.png"), FileExistsError, "exists; give another name", "force"
    )
    check_one_line_error(lambda: as_output_path("/dev/null", force=True), FileExistsError, "regular file")
    check_one_line_error(lambda: as_output_path(3), TypeError, "path")
    assert as_output_path(tmp_path / "old.png", force=True) == tmp_path / "old.png"
    assert as_output_path(str(tmp_path / "new.png")) == tmp_path / "new.png"


def test_a_name_with_a_line_break_still_gives_one_line(tmp_path):
    check_one_line_error(lambda: as_output_path(tmp_path / "a\nb" / "x.png"), FileNotFoundError, "a\\nb")


@pytest.mark.parametrize("name", ["image.png", "image.tif", "image.npy", "image.npz", "image.pgm", "image.jpg"])
def test_an_old_file_is_replaced_only_by_force(tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    check_one_line_error(lambda: write_image(path, IMAGE), FileExistsError, name)
    assert path.read_text() == "old"
    write_image(path, IMAGE, force=True)
    assert path.read_bytes()[:3] != b"old" and names(tmp_path) == [name]


def test_labels_and_models_are_replaced_only_by_force(tmp_path):
    mrf = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1))
    for name, write in (("labels.png", write_labels), ("model.npz", save_model)):
        what = IMAGE if write is write_labels else mrf
        write(tmp_path / name, what)
        check_one_line_error(
            lambda name=name, write=write, what=what: write(tmp_path / name, what), FileExistsError, name
        )
        write(tmp_path / name, what, force=True)


def test_a_file_that_appeared_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "note.txt"

    def write():
        with write_atomically(path) as temporary:
            temporary.write_text("new")
            path.write_text("another program's")

    check_one_line_error(write, FileExistsError, "exists")
    assert path.read_text() == "another program's" and names(tmp_path) == ["note.txt"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError("no"), OSError(errno.ENOSPC, "No space left on device")]
)
@pytest.mark.parametrize("old", [None, "old"])
def test_a_failed_write_leaves_no_temporary_and_keeps_the_old_file(tmp_path, error, old):
    path = tmp_path / "note.txt"
    if old:
        path.write_text(old)
    with pytest.raises(type(error)), write_atomically(path, force=True) as temporary:
        temporary.write_text("half")
        raise error
    assert names(tmp_path) == (["note.txt"] if old else [])
    assert not old or path.read_text() == old


def test_a_write_to_a_full_disk_is_an_error_in_one_line(tmp_path):
    def write():
        with write_atomically(tmp_path / "note.txt") as temporary, temporary.open("wb") as file:
            file.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(temporary))

    error = check_one_line_error(write, OSError)
    path = tmp_path / "note.txt"
    assert str(error) == f"could not write {path}: No space left on device; nothing was left behind"
    assert error.errno == errno.ENOSPC


LIMITED = """
import resource, sys, numpy as np, treefield as tf
from treefield.io import save_model, write_image, write_model
path = sys.argv[1]
noise = np.random.default_rng(0).integers(0, 256, (300, 300), np.uint8)
what = noise.astype(np.float32) if path.endswith("pfm") else noise
mrf = tf.GridMRF(noise[..., None].repeat(2, -1), tf.Potts(1))
graph = tf.GraphMRF(np.zeros((400, 2)), np.stack([np.arange(399), np.arange(1, 400)], 1), tf.Potts(1))
import h5py
import PIL.Image, PIL.PngImagePlugin, PIL.JpegImagePlugin, tifffile, imagecodecs  # their caches may be written
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    if "graph" in path:
        write_model(path, graph, force=True)
    elif "model" in path:
        save_model(path, mrf, force=True)
    else:
        write_image(path, what, force=True)
except OSError as error:
    sys.stdout.write(str(error))
"""


@pytest.mark.parametrize(
    "name", ["a.png", "a.jpg", "a.tif", "a.pgm", "a.pfm", "a.npy", "a.npz", "model.npz", "graph.h5"]
)
def test_a_write_that_the_system_stops_half_way_leaves_the_old_file(tmp_path, name):
    pytest.importorskip("resource")  # its limit on the size of files stands in for a full disk
    path = tmp_path / name
    path.write_text("old")
    run = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True)
    assert run.stdout == f"could not write {path}: File too large; nothing was left behind", run.stderr
    assert run.stderr == ""
    assert names(tmp_path) == [name] and path.read_text() == "old"


def test_a_symbolic_link_is_kept_and_its_target_replaced(tmp_path):
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "link.npy").symlink_to(tmp_path / "real.npy")
    write_image(tmp_path / "link.npy", IMAGE, force=True)
    assert (tmp_path / "link.npy").is_symlink()
    assert np.array_equal(np.load(tmp_path / "real.npy"), IMAGE)


def test_a_long_name_leaves_room_for_the_temporary_one(tmp_path):
    name = "ü" * 123 + ".npy"
    write_image(tmp_path / name, IMAGE)
    assert names(tmp_path) == [name]

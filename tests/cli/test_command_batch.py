"""Many images with one command: each has its own file, its own line and its own error."""

import contextvars
import json

import numpy as np
import pytest

import treefield as tf
from command import check_command_refused, in_a_process, listing
from treefield.apps import memory
from treefield.cli import memory_plan
from treefield.io import read_image, write_image

pytestmark = pytest.mark.usefixtures("no_hang")
FEW = ("--levels", 8, "--seed", 0)
PAIRS = ("stereo", "left/*.png", "right/*.png", "out", "--num-disparities", 4, "--seed", 0)


@pytest.fixture
def scans(tmp_path, grey):
    """A folder of images, one of which is none."""
    folder = tmp_path / "scans"
    folder.mkdir()
    write_image(folder / "a.png", grey)
    write_image(folder / "b.tif", grey[::-1])
    (folder / "c.png").write_text("no image")
    (folder / "notes.txt").write_text("no image, and not taken for one")
    return folder


@pytest.fixture
def pairs(tmp_path):
    """Two stereo pairs, in two folders."""
    scene = np.random.default_rng(1).integers(0, 256, (10, 24), dtype=np.uint8)
    for side, shift in (("left", 0), ("right", 2)):
        (tmp_path / side).mkdir()
        for k in range(2):
            write_image(tmp_path / side / f"{side}{k}.png", scene[k:, shift : shift + 18])
    return tmp_path


def check_restored(folder, grey, suffix=".tif"):
    """The outputs for the good images, and no others."""
    assert set(map(str, listing(folder))) == {f"a{'.png' if suffix == '.tif' else suffix}", f"b{suffix}"}
    for name, image in (("a", grey), ("b", grey[::-1])):
        restored = read_image(next(folder.glob(f"{name}.*")))
        np.testing.assert_array_equal(restored, tf.denoise(image, levels=8, rng=0))


def test_one_bad_image_in_a_folder_does_not_stop_the_rest(scans, tmp_path, grey):
    done = in_a_process("denoise", "scans", "out", *FEW, "--workers", 2, cwd=tmp_path)
    assert done.code == 1
    check_restored(tmp_path / "out", grey)
    lines = done.out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["out/a.png", "out/b.tif", "3 images"]
    assert "energy" in lines[0] and lines[2] == "3 images: 2 written, 1 failed"
    assert done.err.startswith("treefield: scans/c.png is not an image") and done.err.count("\n") == 1


def test_a_list_of_images_is_written_in_another_format_and_reported_as_json(command, scans, tmp_path, grey):
    given = ("denoise", "scans/c.png", "scans/a.png", "scans/b.*", "out", *FEW, "--workers", 1)
    done = command(*given, "--json", "--suffix", "npy")
    assert done.code == 1 and done.err == ""
    check_restored(tmp_path / "out", grey, ".npy")
    bad, first, second = map(json.loads, done.out.splitlines())
    assert bad["inputs"] == ["scans/c.png"] and bad["output"] is None and "not an image" in bad["error"]
    assert first["output"] == "out/a.npy" and second["output"] == "out/b.npy" and first["error"] is None
    alone = command("denoise", "scans/a.png", "a.png", *FEW, "--json")
    assert first["energy"] == json.loads(alone.out)["energy"]


def test_one_image_is_written_quietly_into_a_folder(command, scans, tmp_path, grey):
    (tmp_path / "out").mkdir()
    done = command("denoise", "scans/a.png", "out", *FEW, "--workers", 1, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    np.testing.assert_array_equal(read_image(tmp_path / "out" / "a.png"), tf.denoise(grey, levels=8, rng=0))


def test_formats_that_are_only_read_become_png(command, tmp_path, grey):
    from PIL import Image

    Image.fromarray(grey).save(tmp_path / "a.bmp")
    Image.fromarray(grey).save(tmp_path / "b.gif")
    assert command("denoise", "*.[bg]*", "out", *FEW, "--workers", 1).code == 0
    assert set(map(str, listing(tmp_path / "out"))) == {"a.png", "b.png"}


def test_a_cluster_denoises_a_folder(scans, tmp_path, grey, command):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=":0") as local:
        done = command("denoise", "scans/*", "out", *FEW, "--scheduler", local.scheduler_address)
    assert done.code == 1 and "4 images: 2 written, 2 failed" in done.out and "notes.txt" in done.err
    check_restored(tmp_path / "out", grey)


def test_large_images_go_tile_by_tile_and_a_zarr_folder_is_one_image(command, tmp_path, grey):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", data=grey)
    write_image(tmp_path / "b.tif", grey)
    given = (*FEW, "--memory-limit", "9GB")  # this process may have come to be large
    assert command("denoise", "a.zarr", "alone.npy", *given).code == 0
    done = command("denoise", "*.[zt]*", "out", *given, "--workers", 1)
    assert done.code == 0 and done.out.splitlines()[-1] == "2 images: 2 written", done.err
    alone = np.load(tmp_path / "alone.npy")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out" / "a.zarr")[:], alone)
    np.testing.assert_array_equal(read_image(tmp_path / "out" / "b.tif"), alone)


def test_stereo_takes_pairs_by_name(command, pairs):
    done = command(*PAIRS, "--workers", 1)
    assert done.code == 0 and done.out.splitlines()[-1] == "2 images: 2 written"
    assert "out/left1.png (disparities times 85): energy" in done.out
    for k in range(2):
        images = [read_image(pairs / side / f"{side}{k}.png") for side in ("left", "right")]
        disparity = tf.stereo(*images, num_disparities=4, rng=0)
        assert np.median(disparity) == 2
        np.testing.assert_array_equal(read_image(pairs / "out" / f"left{k}.png"), 85 * disparity)


def test_a_batch_that_writes_nothing_leaves_no_folder(command, scans, tmp_path):
    done = command("denoise", "scans/c.*", "out", "--workers", 1)
    assert done.code == 1 and done.out == "1 image: 1 failed\n" and not (tmp_path / "out").exists()


def denoise(*arguments):
    return ("denoise", *arguments)


REFUSED = {
    "no match": (denoise("scans/*.jpg", "out"), "no file matches scans/*.jpg"),
    "no images": (denoise("empty", "out"), "empty is a folder without images"),
    "missing": (denoise("scans/a.png", "gone.png", "out"), "there is no file gone.png"),
    "existing": (denoise("scans", "taken"), "taken/b.tif exists", "--force"),
    "inputs": (denoise("scans", "scans", "--force"), "scans/a.png is one of the images that are read"),
    "two of a name": (denoise("scans/b.tif", "taken/b.tif", "out"), "would both be written to out/b.tif"),
    "into a file": (denoise("scans/a.png", "scans/b.tif", "scans/notes.txt"), "notes.txt is no folder"),
    "no folder": (denoise("scans", "no/out"), "there is no folder no"),
    "suffix": (denoise("scans", "out", "--suffix", "gif"), "--suffix must be one of .png", ".gif"),
    "report": (denoise("scans", "out", "--report", "r.html"), "--report is for one image"),
    "model": (denoise("scans", "out", "--save-model", "m.npz"), "--save-model is for one image"),
    "workers": (denoise("scans", "out", "--workers", 0), "--workers must be at least 1, got 0"),
    "method": (denoise("scans", "out", "--method", "magic"), "magic"),
    "both": (denoise("scans", "out", "--workers", 2, "--scheduler", "tcp://localhost:1"), "give one of them"),
    "suffix of one": (denoise("scans/a.png", "a.png", "--suffix", "png"), "--suffix is for many images"),
    "one half": (("stereo", "left", "right/right0.png", "out", "--num-disparities", 4), "2 for LEFT, 1 for RIGHT"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_batch_refuses_bad_input_before_any_work(command, scans, pairs, case):
    (pairs / "empty").mkdir()
    (pairs / "taken").mkdir()
    write_image(pairs / "taken" / "b.tif", np.zeros((4, 5), np.uint8))
    before = sorted(pairs.rglob("*"))
    arguments, *words = REFUSED[case]
    check_command_refused(command(*arguments), *words)
    assert sorted(pairs.rglob("*")) == before


def test_parallel_searches_of_a_batch_share_the_memory(monkeypatch):
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 1000)

    def planned(at_once):
        memory.searches_at_once.set(at_once)
        return memory_plan.plan_memory(100, 4, 1, quiet=True)

    assert contextvars.copy_context().run(planned, 1) == 900 - 400
    assert contextvars.copy_context().run(planned, 2) == 450 - 400
    with pytest.raises(MemoryError, match="only 333 bytes of memory are free for each of 3 at once"):
        contextvars.copy_context().run(planned, 3)


def test_parallel_applications_of_a_batch_share_the_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10_000)

    def left(at_once):
        memory.searches_at_once.set(at_once)
        return memory.memory_left_by_costs(10, 100, 1, None, "fewer labels")

    assert contextvars.copy_context().run(left, 1) == 8000 - 1000
    assert contextvars.copy_context().run(left, 2) == 4000 - 1000
    with pytest.raises(
        MemoryError, match=r"only 1\.6 kB of the memory are free for each of 5 at once .*: take fewer labels"
    ):
        contextvars.copy_context().run(left, 5)

"""Bad input: one line on stderr, exit code 2, and the folder is left unchanged."""

import errno
import os
import pathlib

import numpy as np
import pytest
from PIL import Image

from command import check_command_refused, in_a_process, listing
from treefield.io import read_image, write_image

STEREO = ("stereo", "left.png", "right.png")


@pytest.fixture
def folder(files, grey):
    """The files, and some that are bad."""
    (files / "text.png").write_text("no image")
    (files / "empty.png").write_bytes(b"")
    (files / "taken.png").write_bytes(b"precious")
    write_image(files / "grey16.png", grey.astype(np.uint16) * 257)
    write_image(files / "float.npy", grey / 255)
    write_image(files / "volume.npy", np.stack([grey] * 5))
    write_image(files / "wide.png", np.zeros((12, 17), np.uint8))
    write_image(files / "white.png", np.ones((12, 16), bool))
    write_image(files / "black.png", np.zeros((12, 16, 3), np.uint8))
    write_image(files / "soft.png", np.dstack([np.arange(1, 193, dtype=np.uint8).reshape(12, 16)] * 3))
    holes = np.where(grey > 100, np.nan, grey / 255)
    for name, array in (("nan", holes), ("inf", np.where(np.isnan(holes), np.inf, holes)), ("none", holes[:0])):
        np.save(files / f"{name}.npy", array)
    np.save(files / "pickle.npy", np.array([[print]], object), allow_pickle=True)
    np.save(files / "signs.npy", np.where(grey > 150, 1, np.where(grey < 60, -1, 2)))
    np.savez(files / "odd.npz", fields=np.zeros((3, 3)), couplings_0=np.zeros((2, 3)))
    return files


@pytest.fixture
def no_search(monkeypatch):
    """Fail if a search starts: bad input must be refused before it, as it may take hours."""
    monkeypatch.setattr("treefield.solvers.minimize.search_auto", lambda *_, **__: pytest.fail("it searched"))


BAD = {
    # what is read
    "missing": (("denoise", "gone.png", "o.png"), "there is no file gone.png"),
    "a folder": (("denoise", "folder.png", "o.png"), "is a folder"),
    "text": (("denoise", "text.png", "o.png"), "text.png is not an image"),
    "empty": (("denoise", "empty.png", "o.png"), "the file is empty"),
    "no pixels": (("denoise", "none.npy", "o.npy"), "none.npy", "it is empty"),
    "pickles": (("denoise", "pickle.npy", "o.npy"), "Python objects"),
    "NaN": (("denoise", "nan.npy", "o.npy"), "NaN"),
    "infinity": (("segment", "inf.npy", "o.npy"), "infinite"),
    "NaN fields": (("ising", "nan.npy", "o.npy", "--coupling", 1), "NaN"),
    "no kind of image": (("denoise", "model.xyz", "o.png"), ".xyz"),
    "mask of another size": (("inpaint", "grey.png", "wide.png", "o.png"), "wide.png has shape (12, 17)"),
    "mask of everything": (("inpaint", "grey.png", "white.png", "o.png"), "covers the whole image"),
    "flat mask of a volume": (("inpaint", "volume.npy", "mask.png", "o.npy"), "(5, 12, 16)"),
    "sizes": (("stereo", "left.png", "wide.png", "o.npy", "--num-disparities", 2), "(10, 18)", "(12, 17)"),
    "colour and grey": (("stereo", "rgb.png", "grey.png", "o.npy", "--num-disparities", 2), "must be alike"),
    "volumes": (("stereo", "volume.npy", "volume.npy", "o.npy", "--num-disparities", 2), "expected two dimensions"),
    "mask of stereo": ((*STEREO, "o.npy", "--num-disparities", 2, "--mask", "wide.png"), "wide.png has shape"),
    "seeds of another size": (("segment", "grey.png", "o.png", "--seeds", "wide.png"), "(12, 17)"),
    "seeds with soft edges": (
        ("segment", "grey.png", "o.png", "--seeds", "soft.png"),
        "soft.png holds no seeds: it has 192 colours, expected at most 64",
        "without anti-aliasing",
    ),
    "black seeds": (("segment", "grey.png", "o.png", "--seeds", "black.png"), "no seed"),
    "no seeds": (("segment", "grey.png", "o.png", "--seeds", "mask0.npy"), "no seed"),
    "no couplings": (("ising", "fields.npy", "o.npy"), "--coupling"),
    "too few couplings": (("ising", "odd.npz", "o.npy"), "couplings_1"),
    "no model": (("solve", "grey.png", "o.npy"), "grey.png is not a model"),
    "another archive": (("solve", "odd.npz", "o.npy"), "no array unary"),
    # what is asked for
    "no command": (("restore",), "restore"),
    "no files": (("denoise",), "IN"),
    "one file too many": (("denoise", "grey.png", "o.png", "p.png"), "p.png"),
    "unknown option": (("denoise", "grey.png", "o.png", "--colour"), "--colour"),
    "seed in words": (("denoise", "grey.png", "o.png", "--seed", "one"), "--seed"),
    "negative seed": (("denoise", "grey.png", "o.png", "--seed", -1), "-1"),
    "negative time": (("denoise", "grey.png", "o.png", "--time-limit", -1), "time_limit"),
    "no time": (("denoise", "grey.png", "o.png", "--time-limit", "nan"), "NaN"),
    "negative tol": (("denoise", "grey.png", "o.png", "--tol", -1), "tol"),
    "no threads": (("denoise", "grey.png", "o.png", "--threads", 0), "threads"),
    "unknown method": (("denoise", "grey.png", "o.png", "--method", "magic"), "magic", "t_ils"),
    "method without tol": (("denoise", "grey.png", "o.png", "--method", "icm", "--tol", 0), "takes no tol"),
    "no levels": (("denoise", "grey.png", "o.png", "--levels", 0), "levels"),
    "data": (("denoise", "grey.png", "o.png", "--data", "cubed"), "cubed"),
    "cutoff": (("denoise", "grey.png", "o.png", "--cutoff", "nan"), "cutoff"),
    "no labels": (("segment", "grey.png", "o.png", "--labels", 0), "labels"),
    "connectivity": (("segment", "grey.png", "o.png", "--connectivity", "3"), "connectivity must be 1"),
    "spacing": (("segment", "grey.png", "o.png", "--spacing", "1,x"), "--spacing"),
    "spacing of a volume": (("segment", "grey.png", "o.png", "--spacing", "1,1,1"), "2 numbers"),
    "no disparities": ((*STEREO, "o.npy"), "--num-disparities"),
    "more than columns": ((*STEREO, "o.npy", "--num-disparities", 19), "18 columns"),
    "too far away": ((*STEREO, "o.npy", "--num-disparities", 2, "--min-disparity", 17), "18 columns"),
    "occlusion": ((*STEREO, "o.npy", "--num-disparities", 2, "--occlusion", "hide"), "hide"),
    # where it is written to
    "taken": (("denoise", "grey.png", "taken.png"), "taken.png exists", "--force"),
    "itself": (("denoise", "grey.png", "grey.png"), "grey.png exists"),
    "no folder": (("denoise", "grey.png", "no/o.png"), "there is no folder no"),
    "into a folder": (("denoise", "grey.png", "folder.png"), "folder.png: it is a folder"),
    "no folder for the report": (("denoise", "grey.png", "o.png", "--report", "no/r.html"), "no folder no"),
    "report that is taken": (("denoise", "grey.png", "o.png", "--report", "taken.png"), "taken.png exists"),
    "report as picture": (("denoise", "grey.png", "o.png", "--report", "r.png"), ".html"),
    "model as text": (("denoise", "grey.png", "o.png", "--save-model", "m.txt"), ".npz"),
    "twice": (("denoise", "grey.npy", "o.npz", "--save-model", "./o.npz"), "named twice"),
    "long name": (("denoise", "grey.png", "o" * 300 + ".png"), "name too long"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_command_refuses_bad_input_in_one_line(command, folder, no_search, case):
    (folder / "folder.png").mkdir()
    np.save(folder / "mask0.npy", np.zeros((12, 16), np.int32))
    before = listing(folder)
    (arguments, *words) = BAD[case]
    check_command_refused(command(*arguments), *words)
    assert listing(folder) == before


CANNOT_HOLD = {
    "unknown suffix": (("denoise", "grey.png", "o.xyz"), ".xyz"),
    "no suffix": (("denoise", "grey.png", "o"), "no suffix"),
    "16 bits": (("denoise", "grey16.png", "o.jpg", "--levels", 8), "JPG holds uint8"),
    "floats": (("denoise", "float.npy", "o.png", "--levels", 8), "float64"),
    "colours": (("denoise", "rgb.png", "o.pgm", "--levels", 8), "(12, 16, 3)"),
    "grey": (("inpaint", "grey.png", "mask.png", "o.ppm"), "(12, 16)"),
    "volumes": (("denoise", "volume.npy", "o.png", "--levels", 8), "(5, 12, 16)"),
    "volumes of labels": (("segment", "volume.npy", "o.png"), "(5, 12, 16)"),
    "labels": (("segment", "grey.png", "o.jpg"), ".jpg"),
    "what was left out": (("segment", "grey.png", "o.png", "--seeds", "signs.npy"), "-1 to 2"),
    "labels of a model": (("solve", "model.npz", "o.pfm"), ".pfm"),
    "spins": (("ising", "fields.npy", "o.pfm", "--coupling", 1), "PFM holds float32"),
    "negative": ((*STEREO, "o.png", "--num-disparities", 6, "--min-disparity", -2), "negative"),
    "disparities": ((*STEREO, "o.ppm", "--num-disparities", 6), "PPM"),
    "scaled": ((*STEREO, "o.jpg", "--num-disparities", 6, "--scale", 100), "JPG holds uint8"),
    "scaled too far": ((*STEREO, "o.png", "--num-disparities", 6, "--scale", 20000), "65536"),
    "scaled to nothing": ((*STEREO, "o.png", "--num-disparities", 6, "--scale", 0), "--scale"),
}


@pytest.mark.parametrize("case", CANNOT_HOLD)
def test_an_output_format_that_cannot_hold_the_result_is_refused_before_the_search(command, folder, no_search, case):
    before = listing(folder)
    (arguments, *words) = CANNOT_HOLD[case]
    check_command_refused(command(*arguments), *words)
    assert listing(folder) == before


def test_a_tree_solver_does_not_take_a_grid(command, files):
    before = listing(files)
    check_command_refused(command("denoise", "grey.png", "o.png", "--levels", 8, "--method", "tree_bp"), "cycles")
    assert listing(files) == before


@pytest.mark.parametrize("name", ["grey.png", "left.png", "model.npz"])
def test_an_image_that_unpacks_to_more_than_memory_is_refused(command, files, no_search, monkeypatch, name):
    monkeypatch.setattr("treefield.io.limits.available_memory", lambda: 100)
    before = listing(files)
    commands = {"grey.png": "denoise", "left.png": "segment", "model.npz": "solve"}
    check_command_refused(
        command(commands[name], name, "o.npy"), f"{name} unpacks to", "only 100 bytes of memory are free"
    )
    assert listing(files) == before


PLANNED = [
    ("denoise", "grey.png", "o.png"),
    ("ising", "fields.npy", "o.npy", "--coupling", 1),
    ("compare", "denoise", "grey.png", "--out", "d"),
]
GUARDED = [
    ("inpaint", "grey.png", "mask.png", "o.png"),
    ("inpaint", "grey.png", "mask.png", "o.png", "--denoise"),
    ("segment", "grey.png", "o.png", "--labels", 400),
    (*STEREO, "o.png", "--num-disparities", 17),
    ("compare", "segment", "grey.png", "--out", "d", "--labels", 400),
    ("compare", "stereo", "left.png", "right.png", "--out", "d", "--num-disparities", 17),
]


@pytest.mark.parametrize("arguments", PLANNED, ids=lambda arguments: "-".join(arguments[:2]))
def test_a_model_of_more_than_memory_is_refused(command, files, no_search, monkeypatch, arguments):
    monkeypatch.setattr("treefield.cli.memory_plan.available_memory", lambda: 3000)
    before = listing(files)
    check_command_refused(command(*arguments), "labels need", "only 3 kB of memory are free")
    assert listing(files) == before


@pytest.mark.parametrize("arguments", GUARDED, ids=lambda arguments: "-".join(arguments[:2]))
def test_an_application_whose_costs_are_more_than_the_free_memory_is_refused(
    command, files, no_search, monkeypatch, arguments
):
    monkeypatch.setattr("treefield.apps.memory.available_memory", lambda: 3750)
    before = listing(files)
    check_command_refused(command(*arguments), "labels need", "only 3 kB of the memory are free", "--memory-limit")
    assert listing(files) == before


@pytest.mark.parametrize("arguments", GUARDED[:4], ids=lambda arguments: "-".join(arguments[:2]))
def test_an_application_whose_costs_are_more_than_the_memory_limit_is_refused(command, files, no_search, arguments):
    before = listing(files)
    check_command_refused(command(*arguments, "--memory-limit", "3kB"), "labels need", "memory_limit is 3 kB")
    assert listing(files) == before


def test_a_decompression_bomb_is_refused(command, files, no_search, monkeypatch):
    Image.fromarray(np.zeros((4000, 5000), np.uint8)).save(files / "bomb.png")
    assert (files / "bomb.png").stat().st_size < 100_000
    monkeypatch.setattr("treefield.io.limits.available_memory", lambda: 10_000_000)
    check_command_refused(command("denoise", "bomb.png", "o.png"), "bomb.png unpacks to", "only 10 MB")


def fill_disk(monkeypatch, after):
    """The disk is full after the given number of files."""
    synced = []

    def fsync(file):
        if len(synced) == after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced.append(file)

    monkeypatch.setattr(os, "fsync", fsync)


FULL = ("denoise", "grey.png", "o.png", "--levels", 8, "--save-model", "m.npz", "--report", "r.html")


@pytest.mark.parametrize("name", ["o.png", "m.npz", "r.html"])
def test_a_command_on_a_full_disk_leaves_no_partial_file(command, files, monkeypatch, name):
    fill_disk(monkeypatch, after=["o.png", "m.npz", "r.html"].index(name))
    before = listing(files)
    check_command_refused(command(*FULL), f"could not write {name}: No space left on device")
    order = ["o.png", "m.npz", "r.html"]  # what is whole already is not thrown away
    assert set(listing(files)) == set(before) | set(map(pathlib.Path, order[: order.index(name)]))


def test_force_keeps_the_old_file_if_the_disk_is_full(command, files, monkeypatch):
    fill_disk(monkeypatch, after=0)
    before = listing(files)
    check_command_refused(command("denoise", "grey.png", "grey.png", "--levels", 8, "--force"), "No space left")
    assert listing(files) == before


def test_a_folder_that_may_not_be_written_to_is_refused_before_the_search(command, files, no_search, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everywhere
    check_command_refused(command("denoise", "grey.png", "o.png", "--levels", 8), "cannot write o.png", "permission")


@pytest.mark.parametrize(
    "arguments",
    [
        ("denoise", "grey.png", "loop.png"),
        ("denoise", "grey.png", "loop.png", "--force"),
        ("denoise", "grey.png", "loop.png/o.png"),
        ("denoise", "grey.png", "o.png", "--report", "loop.html"),
        ("denoise", "grey.png", "loop.zarr", "--memory-limit", "90GB"),
        ("denoise", "grey.png", "loop.npy", "--memory-limit", "90GB"),
        ("denoise", "grey.png", "left.png", "loop"),
        ("denoise", "grey.png", "left.png", "links"),
        ("compare", "solve", "model.npz", "--out", "loop"),
    ],
    ids=" ".join,
)
def test_loop_of_links_as_output_is_refused(command, files, no_search, arguments):
    (files / "links").mkdir()
    for name in ("loop", "loop.png", "loop.html", "loop.zarr", "loop.npy", "links/left.png"):
        (files / name).symlink_to(pathlib.Path(name).name)
    before = listing(files)
    check_command_refused(command(*arguments), "loop of symbolic links")
    assert listing(files) == before and (files / "loop.png").is_symlink()


def test_errors_about_odd_file_names_are_one_line(command, files, no_search):
    check_command_refused(command("denoise", "a\nb\x1b[31m.png", "o.png"), r"a\nb\x1b[31m.png")
    (files / "a\nb.png").write_bytes((files / "grey.png").read_bytes())
    check_command_refused(command("stereo", "a\nb.png", "wide\n.png", "o.npy", "--num-disparities", 2), r"wide\n.png")
    check_command_refused(command("inpaint", "left.png", "a\nb.png", "o.npy"), r"a\nb.png")


def test_a_bug_is_not_taken_for_bad_input(command, files, monkeypatch):
    def broken(path):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("treefield.cli.commands.restore_commands.read_image", broken)
    with pytest.raises(ZeroDivisionError):
        command("denoise", "grey.png", "o.png")
    assert read_image(files / "grey.png").shape == (12, 16) and not (files / "o.png").exists()


def test_errors_are_printed_on_a_console_with_few_characters(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    check_command_refused(in_a_process("compare", "λ", "a.png", "--out", "d", cwd=tmp_path), "got '?'", "denoise")


MISSING = {
    "denoise grey.png": ("argument OUT: the image to write", "denoise grey.png out.png"),
    "denoise grey.png --sigma 5": ("argument OUT: the image", "denoise grey.png --sigma 5 out.png"),
    "denoise --sigma 5": ("argument IN: the image: PNG", "denoise --sigma 5 photo.png out.png"),
    "denoise": ("argument IN: the image: PNG", "denoise photo.png out.png"),
    "denoise .": ("argument OUT: the image to write", "denoise . out/"),
    "denoise scan*.tif": ("argument OUT: the image to write", "denoise 'scan*.tif' out/"),
    "inpaint grey.png": ("argument MASK: an image", "inpaint grey.png mask.png out.png"),
    "inpaint grey.png mask.png": ("argument OUT: the image", "inpaint grey.png mask.png out.png"),
    "segment grey.png": ("argument OUT: the labels", "segment grey.png out.png"),
    "ising": ("argument FIELDS: NPY or an image", "ising fields.npz out.png"),
    "stereo left.png": ("argument RIGHT: the right image", "stereo left.png right.png out.png --num-disparities 64"),
    "stereo left.png right.png o.png": ("option --num-disparities: number", "o.png --num-disparities 64"),
    "stereo left.png right.png --num-disparities 3": ("argument OUT: disp", "right.png --num-disparities 3 out.png"),
    "compare denoise grey.png": ("option --out: the folder", "compare denoise grey.png --out out/"),
    "compare denoise": ("argument FILES: the inputs of the command of that name: IN; LEFT RIGHT; ...;", "--out out/"),
    "solve": ("argument MODEL: NPZ", "solve model.uai"),
}


@pytest.mark.parametrize("line", MISSING)
def test_a_missing_argument_is_explained_with_an_example(command, folder, line):
    what, example = MISSING[line]
    done = command(*line.split())
    check_command_refused(done, f"treefield: missing {what}", "; e.g. treefield ")
    assert done.err.endswith(f"{example}\n")

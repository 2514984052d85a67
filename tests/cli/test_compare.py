"""compare: a table, pictures, a plot and figures of several methods on one problem."""

import json
import os
import signal

import numpy as np
import pytest

from command import check_command_refused, listing
from treefield.io import read_image

FEW = ("--levels", 8, "--seed", 0)
ALWAYS = ["compare.json", "energies.png", "report.html"]


def written(folder):
    return sorted(path.name for path in folder.iterdir())


def test_compare_gives_every_method_a_row_a_picture_and_figures(command, files, grey):
    done = command("compare", "denoise", "grey.png", "--out", "d", "--methods", "icm, t_icm,auto", *FEW)
    assert done.code == 0 and done.err == ""
    lines = [line.split() for line in done.out[done.out.index("method") :].splitlines()]
    assert lines[0] == ["method", "energy", "lower", "bound", "gap", "time", "iterations"]
    assert [line[0] for line in lines[1:4]] == ["icm", "t_icm", "auto"]
    assert written(files / "d") == sorted([*ALWAYS, "icm.png", "t_icm.png", "auto.png"])
    for name in ("icm", "t_icm", "auto"):
        assert read_image(files / "d" / f"{name}.png").shape == grey.shape
    figures = json.loads((files / "d" / "compare.json").read_text())
    assert figures["auto"]["energy"] <= figures["t_icm"]["energy"] <= figures["icm"]["energy"]
    assert figures["icm"]["lower_bound"] is None and 0 <= figures["auto"]["gap"] <= 1e-3
    assert lines[3][1].replace(",", "") == f"{figures['auto']['energy']:.6g}"


def test_compare_prints_the_content_of_its_json_file(command, files):
    done = command("compare", "denoise", "grey.png", "--out", "d", "--methods", "icm,icm", *FEW, "--json")
    assert json.loads(done.out) == json.loads((files / "d" / "compare.json").read_text())
    assert list(json.loads(done.out)) == ["icm"] and done.err == ""


PROBLEMS = {
    "segment": ("segment", "rgb.png"),
    "stereo": ("stereo", "left.png", "right.png", "--num-disparities", 6),
    "ising": ("ising", "fields.npy", "--coupling", -0.5),
    "solve": ("solve", "model.npz"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_compare_finds_the_energy_of_the_command_on_every_problem(command, files, problem):
    done = command("compare", *PROBLEMS[problem], "--out", "d", "--methods", "auto", "--seed", 0, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert written(files / "d") == sorted([*ALWAYS, "auto.png"])
    summary = json.loads((files / "d" / "compare.json").read_text())["auto"]
    alone = {"segment": "rgb.png", "ising": "fields.npy", "solve": "model.npz"}.get(problem)
    given = ("left.png", "right.png") if alone is None else (alone,)
    done = command(problem, *given, "o.npy", *PROBLEMS[problem][1 + len(given) :], "--seed", 0, "--json")
    assert json.loads(done.out)["energy"] == summary["energy"]
    assert len(np.unique(read_image(files / "d" / "auto.png"))) > 1


def test_compare_starts_every_method_from_the_given_start(command, files):
    first = {}
    for start in ("unary", "scan-line"):
        given = ("--out", start, "--methods", "icm", "--time-limit", 0, "--start", start, "--json")
        first[start] = json.loads(command("compare", "solve", "model.npz", *given).out)["icm"]["energy"]
    assert first["scan-line"] < first["unary"]


def test_an_interrupted_compare_writes_the_finished_methods(command, files, monkeypatch):
    def pressed(watch, intermediate_result):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("treefield.cli.progress_display.SearchDisplay.__call__", pressed)
    done = command("compare", "denoise", "grey.png", "--out", "d", "--methods", "t_ils,icm", *FEW, "--time-limit", 60)
    assert done.code == 130
    assert written(files / "d") == sorted([*ALWAYS, "t_ils.png"])
    assert "interrupted" in json.loads((files / "d" / "compare.json").read_text())["t_ils"]["message"]


BAD = {
    "problem": (("restore", "grey.png", "--out", "d"), "restore", "denoise"),
    "one file": (("stereo", "left.png", "--out", "d", "--num-disparities", 2), "LEFT RIGHT", "1 file"),
    "two files": (("denoise", "grey.png", "rgb.png", "--out", "d"), "IN", "2 files"),
    "no disparities": (("stereo", "left.png", "right.png", "--out", "d"), "num_disparities"),
    "no folder named": (("denoise", "grey.png"), "--out"),
    "no folder to be in": (("denoise", "grey.png", "--out", "no/d"), "there is no folder no"),
    "a file in its place": (("denoise", "grey.png", "--out", "rgb.png"), "rgb.png"),
    "method": (("denoise", "grey.png", "--out", "d", "--methods", "icm,magic"), "magic"),
    "no method": (("denoise", "grey.png", "--out", "d", "--methods", ""), "--methods"),
    "start": (("denoise", "grey.png", "--out", "d", "--start", "here"), "here"),
    "negative time": (("denoise", "grey.png", "--out", "d", "--time-limit", -1), "time_limit"),
    "missing": (("solve", "gone.npz", "--out", "d"), "there is no file gone.npz"),
    "an option of others": (("denoise", "grey.png", "--out", "d", "--report", "r.html"), "--report"),
}


@pytest.mark.parametrize("case", BAD)
def test_compare_refuses_bad_input_and_creates_no_folder(command, files, case):
    before, (arguments, *words) = listing(files), BAD[case]
    check_command_refused(command("compare", *arguments), *words)
    assert listing(files) == before and not (files / "d").exists()


def test_compare_replaces_existing_files_only_with_force(command, files):
    given = ("compare", "solve", "model.npz", "--out", "d", "--methods", "icm", "--quiet")
    (files / "d").mkdir()
    (files / "d" / "energies.png").write_bytes(b"precious")
    (files / "d" / "notes.txt").write_text("mine")
    before = listing(files)
    check_command_refused(command(*given), "energies.png exists", "--force")
    assert listing(files) == before
    assert command(*given, "--force").code == 0
    after = listing(files / "d")
    assert sorted(map(str, after)) == sorted([*ALWAYS, "icm.png", "notes.txt"])
    assert (files / "d" / "energies.png").read_bytes().startswith(b"\x89PNG")


def test_compare_leaves_out_a_method_that_the_problem_does_not_allow(command, files):
    done = command("compare", "denoise", "grey.png", "--out", "d", "--methods", "tree_bp,icm", *FEW, "--quiet")
    assert done.code == 0 and done.err.startswith("treefield: tree_bp is left out: ") and done.err.count("\n") == 1
    assert written(files / "d") == sorted([*ALWAYS, "icm.png"])
    before = listing(files)
    done = command("compare", "denoise", "grey.png", "--out", "e", "--methods", "tree_bp", *FEW)
    assert done.code == 2 and "none of the methods" in done.err and listing(files) == before

"""`treefield solve` reads the files of graph models, and writes what is asked for."""

import json

import numpy as np
import pytest

import treefield as tf
from command import check_command_refused, listing
from graph_files import data_file
from treefield.io import load_model, read_mpe, read_uai, write_model

QUICK = ("--method", "t_ils", "--time-limit", 0.3, "--seed", 0)
THREE = "MARKOV 3  2 2 2  2  3 0 1 2  1 0  8 1 2 3 4 5 6 7 8  2 9 1"  # 4 * 9 is the greatest product


@pytest.fixture
def models(tmp_path):
    """The folder with small models of one answer, 1 0 1."""
    mrf = tf.GraphMRF([[3, 0], [0, 5], [9, 0]], [(0, 1), (1, 2)], tf.Potts(1))
    for suffix in (".uai", ".wcsp", ".cfn.gz", ".h5", ".npz"):
        write_model(tmp_path / f"model{suffix}", mrf)
    (tmp_path / "three.uai").write_text(THREE)
    (tmp_path / "e.evid").write_text("1 0 1")
    np.savez(tmp_path / "grid.npz", unary=np.zeros((2, 3, 2)), potts=1.0)
    return tmp_path


@pytest.mark.parametrize("name", ["model.uai", "model.wcsp", "model.cfn.gz", "model.h5", "model.npz"])
def test_the_labels_of_a_graph_go_into_an_mpe_file(command, models, name):
    done = command("solve", name, "--out", "x.MPE", *QUICK)
    assert done.code == 0 and "x.MPE (3 sites, labels 0 to 1)" in done.out
    assert (models / "x.MPE").read_text() == "MPE\n3 1 0 1\n"


def test_the_output_of_solve_may_be_an_argument_or_an_option(command, models):
    for given in (("a.npy",), ("--out", "b.npy")):
        assert command("solve", "model.uai", *given, *QUICK).code == 0
    for name in ("a.npy", "b.npy"):
        np.testing.assert_array_equal(np.load(models / name), [1, 0, 1])
    both = ("a.npy", "--out", "b.npy", "--force")
    check_command_refused(command("solve", "model.uai", *both, *QUICK), "takes one file", "--out OUT")


@pytest.mark.parametrize(("name", "labels"), [("model.uai", "1 0 1"), ("three.uai", "0 1 1")])
def test_solve_without_an_output_prints_energy_and_labels(command, models, name, labels):
    before = listing(models)
    lines = [line.strip() for line in command("solve", name, *QUICK).out.splitlines()]
    assert lines[0].startswith("energy: ") and f"labels: {labels}" in lines
    assert command("solve", name, "--quiet", *QUICK).out == f"{labels}\n"
    figures = json.loads(command("solve", name, "--json", *QUICK).out)
    assert figures["output"] is None and figures["labels"] == [int(label) for label in labels.split()]
    assert listing(models) == before


def test_solve_prints_the_first_labels_of_a_large_grid_and_their_number(command, models):
    np.savez(models / "large.npz", unary=np.broadcast_to([1.0, 0.0], (30, 40, 2)), potts=1.0)
    out = command("solve", "large.npz", "--quiet", *QUICK).out
    assert out == f"{' '.join(['1'] * 100)} ... (100 of 1200; give OUT for all)\n"


def test_solve_without_an_output_still_writes_the_report(command, models):
    done = command("solve", "grid.npz", "--report", "r.html", *QUICK)
    assert done.code == 0 and (models / "r.html").exists()
    assert "wrote: r.html" in done.out and "labels: " in done.out


def test_solve_leaves_auxiliary_sites_out_and_obeys_evidence(command, models):
    assert command("solve", "three.uai", "free.MPE", *QUICK).code == 0
    assert command("solve", "three.uai", "known.MPE", "--evid", "e.evid", *QUICK).code == 0
    assert read_mpe(models / "free.MPE").tolist() == [0, 1, 1]
    assert read_mpe(models / "known.MPE").tolist() == [1, 1, 1]


def test_the_option_values_names_the_contents_of_uai_tables(command, models):
    (models / "costs.uai").write_text("MARKOV 1  3  1  1 0  3  -4 -7 2")
    for values, label in (("cost", 1), ("log", 2)):
        done = command("solve", "costs.uai", f"{values}.npy", "--values", values, "--json", *QUICK)
        assert json.loads(done.out)["energy"] == {"cost": -7, "log": -2}[values]
        assert np.load(models / f"{values}.npy").tolist() == [label]
    check_command_refused(command("solve", "costs.uai", "x.npy", *QUICK), "costs.uai", "no potential", "costs")


def test_solve_saves_and_reports_a_graph_without_pictures(command, models):
    given = ("--save-model", "saved.npz", "--report", "page.html")
    assert command("solve", "model.uai", "x.npy", *given, *QUICK).code == 0
    assert load_model(models / "saved.npz").energy([1, 0, 1]) == pytest.approx(2)
    assert "energy" in (models / "page.html").read_text()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("model.uai", "x.png"), ["x.png", ".npy or .MPE"]),
        (("grid.npz", "x.MPE"), ["x.MPE"]),
        (("model.wcsp", "x.npy", "--values", "log"), ["model.wcsp", "without the option values"]),
        (("model.wcsp", "x.npy", "--evid", "e.evid"), ["model.wcsp", "without the option evidence"]),
        (("model.uai", "x.npy", "--evid", "gone.evid"), ["there is no file gone.evid"]),
        (("model.uai", "x.npy", "--values", "odds"), ["'odds'"]),
        (("gone.uai", "x.npy"), ["there is no file gone.uai"]),
        (("e.evid", "x.npy"), ["e.evid", "not a model by its suffix"]),
    ],
)
def test_solve_refuses_bad_graph_files(command, models, given, words):
    check_command_refused(command("solve", *given, *QUICK), *words)
    assert not (models / given[1]).exists()


def test_compare_refuses_graphs(command, models):
    check_command_refused(
        command("compare", "solve", "model.npz", "--out", "d"), "model.npz", "graph", "treefield solve"
    )


def test_a_competition_file_is_solved_to_its_known_optimum(command, tmp_path):
    path = data_file("uai/grid10x10.f10.uai")
    done = command("solve", path, "--out", "x.MPE", "--time-limit", 10, "--seed", 0, "--json")
    summary = json.loads(done.out)
    assert summary["energy"] == pytest.approx(-695.8248704390794) and summary["lower_bound"] <= summary["energy"] + 1e-9
    assert summary["energy"] == pytest.approx(read_uai(path).energy(read_mpe(tmp_path / "x.MPE")))

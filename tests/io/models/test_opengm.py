"""OpenGM's HDF5 files."""

import math

import numpy as np
import pytest
from hypothesis import given

import treefield as tf
from graph_files import check_round_trip, check_same_energies, data_file, energy, graph_models, labellings
from one_line import check_one_line_error
from treefield.io import read_opengm, write_opengm

h5py = pytest.importorskip("h5py")

FUNCTIONS = {  # id: indices and values, and the table that they mean
    16000: ([2, 2, 3], [1, 2, 3, 4, 5, 6], [[1, 3, 5], [2, 4, 6]]),  # the first label runs fastest
    16002: ([2, 3], [0.5], [[0, 0.5, 1], [0.5, 0, 0.5]]),
    16003: ([2, 3], [1, 0.5], [[0, 0.5, 0.5], [0.5, 0, 0.5]]),
    16004: ([2, 3], [0.5], [[0, 0.5, 2], [0.5, 0, 0.5]]),
    16005: ([2, 3], [3, 0.5], [[0, 0.5, 1.5], [0.5, 0, 0.5]]),
    16006: ([2, 3], [0.25, 2], [[0.25, 2, 2], [2, 0.25, 2]]),
}


def make(path, kind=16000, indices=(2, 2, 3), values=(1, 2, 3, 4, 5, 6), factors=(0, 0, 2, 0, 1), **other):
    arrays = {"header": [2, 0, 2, 1, 1, kind, 1, 1], "numbers-of-states": [2, 3], "factors": factors} | other
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            if array is not None:
                file[f"gm/{name}"] = np.asarray(array, np.uint64)
        file[f"gm/function-id-{kind}/indices"] = np.asarray(indices, np.uint64)
        file[f"gm/function-id-{kind}/values"] = np.asarray(values, float)
    return path


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_opengm_functions_become_tables(tmp_path, kind):
    indices, values, table = FUNCTIONS[kind]
    mrf = read_opengm(make(tmp_path / "a.h5", kind, indices, values))
    assert mrf.edge_costs(0).tolist() == table and mrf.edges.tolist() == [[0, 1]]


def test_the_energy_of_an_opengm_file_is_the_sum_over_its_factors():
    path = data_file("opengm/triplepoint4-plain-ring.h5")
    mrf = read_opengm(path)
    with h5py.File(path) as file:
        factors, values = file["gm/factors"][()].tolist(), file["gm/function-id-16000/values"][()]
    for x in labellings(mrf, 2):
        at, costs = 0, []
        while at < len(factors):
            number, _, arity = factors[at : at + 3]
            labels = [x[site] for site in factors[at + 3 : at + 3 + arity]]
            costs.append(values[4 * number + sum(label * 4**k for k, label in enumerate(labels))])  # four labels each
            at += 3 + arity
        assert mrf.energy(x) == pytest.approx(math.fsum(costs), rel=1e-12)


@given(mrf=graph_models())
def test_an_opengm_file_read_and_written_again_has_the_same_bytes(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("opengm"), ".h5", mrf, read_opengm, write_opengm, rel=1e-13, abs=1e-12)


def test_models_of_an_opengm_file_are_chosen_by_name(tmp_path):
    mrf = tf.GraphMRF([[0, 1]], np.zeros((0, 2), int), tf.Potts(1))
    write_opengm(tmp_path / "a.h5", mrf)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file.copy("gm", "other")
    check_one_line_error(lambda: read_opengm(tmp_path / "a.h5"), ValueError, "2 models", "group=", "gm, other")
    check_one_line_error(lambda: read_opengm(tmp_path / "a.h5", group="third"), ValueError, "'third'")
    check_same_energies(mrf, read_opengm(tmp_path / "a.h5", group="other"))
    assert energy(mrf, [1]) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": 16007}, ["Potts functions of several sites", "16007"]),
        ({"kind": 16001}, ["sparse functions", "16001"]),
        ({"kind": 123}, ["functions (id 123)"]),
        ({"header": [1, 0, 2, 1, 1, 16000, 1, 1]}, ["[1, 0]", "version 2, 0"]),
        ({"header": [2, 0, 2, 1, 9, 16000, 1, 1]}, ["9 kinds"]),
        ({"header": [2, 0, 3, 1, 1, 16000, 1, 1]}, ["3 sites", "of 2"]),
        ({"header": [2, 0, 2, 2**40, 1, 16000, 1, 1]}, ["1099511627776 factors"]),
        ({"header": [2, 0, 2, 1, 1, 16000, 2**40, 1]}, ["1099511627776 functions", "3 indices"]),
        ({"header": None}, ["0 models"]),
        ({"factors": None}, ["no factors"]),
        ({"numbers-of-states": [2, 2**63]}, ["no count"]),
        ({"numbers-of-states": [2, 0]}, ["from 1 on"]),
        ({"factors": [0, 0, 2, 0, 2]}, ["factor 0", "site 2", "0 to 1"]),
        ({"factors": [0, 0, 2, 1, 0]}, ["factor 0", "(2, 3)", "(3, 2)"]),
        ({"factors": [0, 0, 2, 0]}, ["end in factor 0"]),
        ({"factors": [0, 0, 2, 0, 1, 5]}, ["1 numbers too many"]),
        ({"factors": [1, 0, 2, 0, 1]}, ["function 1 of kind 0", "not there"]),
        ({"indices": [2, 2, 4]}, ["values end", "which has 8"]),
        ({"indices": [9, 2, 3]}, ["indices end"]),
        ({"values": [1, 2, 3, 4, 5, math.nan]}, ["NaN"]),
    ],
)
def test_a_bad_opengm_model_is_refused(tmp_path, changes, words):
    path = make(tmp_path / "a.h5", **changes)
    check_one_line_error(lambda: read_opengm(path), ValueError, str(path), "is not an OpenGM model", *words)


def test_a_file_that_is_not_hdf5_is_refused(tmp_path):
    (tmp_path / "a.h5").write_text("no HDF5")
    check_one_line_error(lambda: read_opengm(tmp_path / "a.h5"), ValueError, "a.h5 is not an OpenGM model")


def test_an_opengm_array_that_is_only_claimed_is_not_allocated(tmp_path):
    path = make(tmp_path / "a.h5", factors=None)
    with h5py.File(path, "a") as file:
        file.create_dataset("gm/factors", shape=(2**45,), dtype=np.uint64)
    check_one_line_error(lambda: read_opengm(path), ValueError, "claims 35184372088832 numbers", "too short")


def test_opengm_without_h5py_names_the_extra_to_install(tmp_path, monkeypatch):
    path = make(tmp_path / "a.h5")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    check_one_line_error(lambda: read_opengm(path), ImportError, "h5py", "treefield[formats]")

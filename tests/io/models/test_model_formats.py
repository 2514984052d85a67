"""Models by suffix, packed files, and graphs among the .npz files."""

import gzip
import lzma
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

import treefield as tf
import treefield.io
from graph_files import check_round_trip, check_same_energies, graph_models, spin_models
from one_line import check_one_line_error
from treefield.io import load_model, read_model, save_model, write_model

SPINS = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2)], tf.Table([[1, -1], [-1, 1]]), weights=[2, -3])
POSITIVE = tf.GraphMRF([[0, 1], [2, 0, 4]], [(0, 1)], tf.Potts(3), offset=2)


@pytest.mark.parametrize("suffix", [".npz", ".uai", ".wcsp", ".cfn", ".h5", ".UAI", ".wcsp.gz", ".cfn.xz", ".uai.gz"])
def test_the_suffix_of_a_model_file_selects_the_format(tmp_path, suffix):
    write_model(tmp_path / f"model{suffix}", POSITIVE)
    check_same_energies(POSITIVE, read_model(tmp_path / f"model{suffix}"), abs=1e-9)


@pytest.mark.parametrize("suffix", [".mc", ".rud", ".coo", ".coo.gz", ".qubo", ".qubo.xz", ".bqm", ".npz"])
def test_the_suffix_of_a_spin_model_selects_the_format(tmp_path, suffix):
    write_model(tmp_path / f"model{suffix}", SPINS)
    check_same_energies(SPINS, read_model(tmp_path / f"model{suffix}"), abs=1e-9)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_packed_model_files_are_the_same_every_time(tmp_path, suffix):
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}[suffix]
    for name in ("a", "b"):
        write_model(tmp_path / f"{name}.uai{suffix}", POSITIVE)
    write_model(tmp_path / "c.uai", POSITIVE)
    first, second = ((tmp_path / f"{name}.uai{suffix}").read_bytes() for name in ("a", "b"))
    assert first == second and unpack(first) == (tmp_path / "c.uai").read_bytes()


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_damaged_packed_models_and_bombs_are_refused(tmp_path, monkeypatch, suffix):
    pack = {".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    path = tmp_path / f"model.uai{suffix}"
    path.write_bytes(b"MARKOV 1 2 0")
    check_one_line_error(lambda: read_model(path), ValueError, str(path), "cannot be unpacked")
    path.write_bytes(pack(b"MARKOV 1 2 0" * 1000)[:-12])
    check_one_line_error(lambda: read_model(path), ValueError, str(path), "cannot be unpacked")
    path.write_bytes(pack(b"MARKOV" + b" " * 50_000_000))
    monkeypatch.setattr("treefield.io.text.available_memory", lambda: 160_000_000)
    check_one_line_error(lambda: read_model(path), MemoryError, str(path), "more than 5 MB", "only 160 MB are free")


def test_read_model_and_write_model_refuse_bad_paths_and_options(tmp_path):
    for name in ("a.png", "a.npz.gz", "a.h5.xz", "a.gz"):
        (tmp_path / name).write_bytes(b"")
        check_one_line_error(
            lambda name=name: read_model(tmp_path / name), ValueError, name, "not a model by its suffix"
        )
    check_one_line_error(lambda: write_model(tmp_path / "b.txt", POSITIVE), ValueError, "b.txt", "suffix", ".uai")
    check_one_line_error(lambda: read_model(tmp_path / "b.uai"), FileNotFoundError, "there is no file", "b.uai")
    check_one_line_error(lambda: read_model(tmp_path), IsADirectoryError, "folder")
    (tmp_path / "a.wcsp").write_text("x")
    check_one_line_error(lambda: read_model(tmp_path / "a.wcsp", values="log"), ValueError, "option values", "has none")
    (tmp_path / "a.uai").write_text("x")
    check_one_line_error(
        lambda: read_model(tmp_path / "a.uai", value="log"), ValueError, "option value;", "evidence, values"
    )


def test_write_model_replaces_a_file_only_by_force(tmp_path):
    write_model(tmp_path / "a.uai", POSITIVE)
    check_one_line_error(lambda: write_model(tmp_path / "a.uai", SPINS), FileExistsError, "--force")
    write_model(tmp_path / "a.uai", SPINS, force=True)
    assert read_model(tmp_path / "a.uai").size == 3


@given(mrf=graph_models())
def test_a_graph_saved_as_npz_comes_back(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("npz"), ".npz", mrf, load_model, save_model)


@given(mrf=spin_models())
def test_shared_costs_and_weights_come_back_from_npz(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("npz"), ".npz", mrf, load_model, save_model)


@pytest.mark.parametrize("weights", [None, [2, 0.5, -1]])
@pytest.mark.parametrize(
    "pairwise",
    [tf.Potts(0.3), tf.Potts(-2), tf.TruncatedLinear(0.7, 1.5, [0, 2, 3]), tf.TruncatedQuadratic(2, np.inf)],
    ids=repr,
)
def test_every_kind_of_cost_comes_back_from_npz(tmp_path, pairwise, weights):
    mrf = tf.GraphMRF(np.arange(9).reshape(3, 3), [(0, 1), (2, 1), (2, 0)], pairwise, weights=weights)
    check_round_trip(tmp_path, ".npz", mrf, load_model, save_model)
    assert type(load_model(tmp_path / "model.npz").pairwise) is type(mrf.pairwise)


def test_an_npz_file_of_a_graph_can_be_made_by_hand(tmp_path):
    np.savez(tmp_path / "a.npz", unary=np.zeros((3, 2)), edges=[(0, 1), (1, 2)], potts=4.0)
    assert repr(load_model(tmp_path / "a.npz")) == "GraphMRF(sites=3, edges=2, labels=2, pairwise=Potts(4))"
    tables = np.arange(8).reshape(2, 2, 2)
    edges = [(0, 1), (1, 2)]
    np.savez(tmp_path / "b.npz", unary=np.zeros((3, 2)), edges=edges, tables=tables, offset=1, weights=[1, 2])
    assert load_model(tmp_path / "b.npz").energy([0, 1, 1]) == 1 + 1 + 14


GRAPH = {"unary": np.zeros(5), "label_counts": [2, 3], "edges": [(0, 1)], "tables": np.zeros(6)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edges": [0, 1]}, ["edges", "(2,)", "(m, 2)"]),
        ({"edges": [(0, 2)]}, ["edges name sites 0 to 2"]),
        ({"label_counts": [2, 4]}, ["(5,)", "add up to 6"]),
        ({"label_counts": [5, 0]}, ["label_counts", "at least 1"]),
        ({"label_counts": None}, ["unary has shape (5,)", "label_counts"]),
        ({"tables": np.zeros(5)}, ["tables has shape (5,)"]),
        ({"tables": np.zeros((1, 3, 2))}, ["(3, 2)", "(2, 3)"]),
        ({"weights": [1, 2]}, ["weights", "(2,)"]),
        ({"offset": [1, 2]}, ["offset", "a number"]),
        ({"auxiliary": 2}, ["auxiliary is 2"]),
        ({"weights_0": 1}, ["weights_0", "no model"]),
        ({"potts": 1.0}, ["one of", "potts and tables"]),
        ({"unary": np.full(5, np.nan)}, ["NaN"]),
    ],
)
def test_an_npz_file_that_makes_no_graph_is_refused(tmp_path, changes, words):
    arrays = {name: array for name, array in (GRAPH | changes).items() if array is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    check_one_line_error(lambda: load_model(tmp_path / "a.npz"), ValueError, "a.npz", *words)


def test_model_formats_are_imported_when_they_are_asked_for():
    code = (
        "import sys, treefield.io; print([n for n in ('h5py', 'dimod', 'treefield.io.models.uai') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(treefield.io.__all__) == set(dir(treefield.io))
    assert all(callable(getattr(treefield.io, name)) for name in treefield.io.__all__)
    with pytest.raises(AttributeError, match="read_nothing"):
        _ = treefield.io.read_nothing

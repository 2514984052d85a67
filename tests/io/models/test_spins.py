"""Max-cut, COO, QUBO and dimod files: models of two labels."""

import itertools

import numpy as np
import pytest
from hypothesis import given

import treefield as tf
from graph_files import check_round_trip, check_same_energies, data_file, data_models, energy, labellings, spin_models
from one_line import check_one_line_error
from treefield.io import (
    max_cut,
    read_bqm,
    read_coo,
    read_model,
    read_qubo,
    read_rudy,
    write_bqm,
    write_coo,
    write_qubo,
    write_rudy,
)

EXACT = {"rel": 1e-12, "abs": 1e-9}


def file(folder, text, name="model.txt"):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("name", [*data_models("gset/G*.txt"), *data_models("spinglass/t?g*")])
def test_the_energy_of_a_max_cut_file_is_the_sum_over_its_edges(name):
    path = data_file(name)
    mrf = read_model(path)
    _, *lines = path.read_text().split("\n")
    rows = [[int(word) for word in line.split()] for line in lines if line.strip()]
    for x in labellings(mrf, 3):
        spins = [2 * label - 1 for label in x]
        assert energy(mrf, x) == sum(w * spins[i - 1] * spins[j - 1] for i, j, w in rows)
        assert max_cut(mrf, x) == sum(w for i, j, w in rows if x[i - 1] != x[j - 1])


def test_the_known_ground_state_of_a_chimera_file_has_its_energy():
    mrf = read_coo(data_file("spinglass/128power_001.txt"), "SPIN", first=1)
    _, _, answer = data_file("spinglass/128power_groundstates_TN.txt").read_text().split("\n")[0].partition(":")
    known, *labels = answer.split()
    assert mrf.energy([int(label) for label in labels]) == pytest.approx(float(known), abs=1e-6)


@given(mrf=spin_models(fields=False, offset=False))
def test_max_cut_files_come_back_with_the_same_energies(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("rudy"), ".mc", mrf, read_rudy, write_rudy)


@given(mrf=spin_models())
def test_coo_files_come_back_with_the_same_energies(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("coo"), ".coo", mrf, read_coo, write_coo, **EXACT)


@given(mrf=spin_models())
def test_binary_coo_and_qubo_files_come_back_with_the_same_energies(tmp_path_factory, mrf):
    def write(path, mrf, force):
        write_coo(path, mrf, vartype="BINARY", force=force)

    folder = tmp_path_factory.mktemp("qubo")
    write(folder / "binary.coo", mrf, True)
    binary = read_coo(folder / "binary.coo")
    check_same_energies(mrf, binary, **EXACT)
    check_round_trip(folder, ".coo", binary, read_coo, write, **EXACT)
    check_round_trip(folder, ".qubo", binary, read_qubo, write_qubo, **EXACT)


@given(mrf=spin_models())
def test_bqm_files_come_back_with_the_same_energies(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("bqm"), ".bqm", mrf, read_bqm, write_bqm, **EXACT)


@given(mrf=spin_models())
def test_dimod_reads_the_same_energies(tmp_path_factory, mrf):
    dimod = pytest.importorskip("dimod")
    coo = pytest.importorskip("dimod.serialization.coo")
    folder = tmp_path_factory.mktemp("dimod")
    write_coo(folder / "a.coo", mrf)
    write_bqm(folder / "a.bqm", mrf, vartype="BINARY")
    spins = coo.loads((folder / "a.coo").read_text())
    bits = dimod.BinaryQuadraticModel.from_file((folder / "a.bqm").read_bytes())
    for x in labellings(mrf, 5):
        expected = energy(mrf, x)
        close = pytest.approx(expected - mrf.offset, rel=1e-9, abs=1e-6)  # a comment is nothing to dimod
        assert spins.energy({site: 2 * label - 1 for site, label in enumerate(x)}) == close
        assert bits.energy(dict(enumerate(x))) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_dimod_variables_of_any_name_are_numbered(tmp_path):
    dimod = pytest.importorskip("dimod")
    bqm = dimod.BinaryQuadraticModel({"b": 1.0, "a": -2.0}, {("a", "b"): 0.5}, 3.0, "BINARY")
    with bqm.to_file() as made:
        (tmp_path / "a.bqm").write_bytes(made.read())
    mrf = read_bqm(tmp_path / "a.bqm")
    for x in itertools.product((0, 1), repeat=2):
        assert energy(mrf, x) == bqm.energy(dict(zip(bqm.variables, x, strict=True)))


@given(mrf=spin_models())
def test_files_written_by_dimod_are_read(tmp_path_factory, mrf):
    dimod = pytest.importorskip("dimod")
    path = tmp_path_factory.mktemp("dimod") / "a.bqm"
    write_bqm(path, mrf)
    ours = path.read_bytes()
    bqm = dimod.BinaryQuadraticModel.from_file(ours)
    for version in (1, 2):
        with bqm.to_file(version=version) as made:
            content = made.read()
        assert version == 1 or content == ours
        path.write_bytes(content)
        check_same_energies(mrf, read_bqm(path), **EXACT)


def test_max_cut_files_may_leave_weights_out(tmp_path):
    mrf = read_rudy(file(tmp_path, "3 2\n1 2\n3 2\n"))
    assert mrf.edges.tolist() == [[0, 1], [2, 1]] and energy(mrf, [0, 0, 0]) == 2


def test_a_txt_file_is_known_by_its_first_line(tmp_path):
    assert read_model(file(tmp_path, "# a cut\n2 1\n1 2 5\n".replace("# a cut\n", ""))).size == 2
    assert read_model(file(tmp_path, "# vartype=SPIN\n0 0 1\n0 2 5\n")).size == 3


def test_qubo_files_may_have_comments_and_an_offset(tmp_path):
    mrf = read_qubo(file(tmp_path, "c hello\nc offset 2.5\np qubo 0 3 1 1\nc more\n1 1 4\n0 2 -1.5\n", "a.qubo"))
    assert energy(mrf, [1, 1, 1]) == 5 and energy(mrf, [0, 0, 0]) == 2.5


SPIN = "# vartype=SPIN\n"


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (read_rudy, "", ["ends before the number of sites"]),
        (read_rudy, "2 1\n1 2", []),
        (read_rudy, "2 2\n1 2 1\n", ["3 numbers for 2 edges", "expected 6"]),
        (read_rudy, "2 1\n1 3 1\n", ["line 2", "1 to 2"]),
        (read_rudy, "2 1\n0 1 1\n", ["line 2", "1 to 2"]),
        (read_rudy, "2 2\n1 2 1\n2 2 1\n", ["line 3", "differ"]),
        (read_rudy, "2 1\n1 2 inf\n", ["line 2"]),
        (read_rudy, "2 1\n1 2 w\n", ["line 2 ('w')"]),
        (read_rudy, "4000000000 0\n", ["claims 4000000000 sites"]),
        (read_coo, "0 1 1\n", ["vartype="]),
        (read_coo, "# vartype=REAL\n0 1 1\n", ["it says REAL"]),
        (read_coo, SPIN, ["no sites"]),
        (read_coo, SPIN + "0 1\n", ["2 numbers", "three in each line"]),
        (read_coo, SPIN + "0 1 1\n0 -1 1\n", ["line 3", "at least 0"]),
        (read_coo, SPIN + "0 999999999 1\n", ["claims 1000000000 sites"]),
        (read_coo, SPIN + "0 1 nan\n", ["line 2"]),
        (read_coo, SPIN + "0 1 1e400\n", ["line 2"]),
        (read_qubo, "0 0 1\n", ["p qubo 0"]),
        (read_qubo, "p qubo chimera 2 1 0\n0 0 1\n", ["'chimera'"]),
        (read_qubo, "p qubo 0 2 1 1\n0 0 1\n", ["6 numbers are expected, 3 follow", "1 diagonals and 1 elements"]),
        (read_qubo, "p qubo 0 2 1 1\n0 0 1\n1 1 1\n", ["0 elements", "says 1"]),
        (read_qubo, "p qubo 0 2 1 0\n0 2 1\n", ["line 2", "0 to 1"]),
        (read_qubo, "p qubo 0 2000000000 0 0\n", ["claims 2000000000 sites"]),
        (read_bqm, "", ["DIMODBQM"]),
        (read_bqm, "DIMODBQM\2\0\4\0\0\0[[[[", ["header is damaged"]),
        (read_bqm, "DIMODBQM\7\0\4\0\0\0[[[[", ["version is 7"]),
    ],
)
def test_bad_spin_model_files_are_refused(tmp_path, read, text, words):
    path = file(tmp_path, text)
    if not words:
        assert read(path).size == 2
        return
    check_one_line_error(lambda: read(path), ValueError, str(path), *words)


@pytest.mark.parametrize(
    ("write", "mrf", "words"),
    [
        (write_rudy, tf.GraphMRF([[0, 1], [0, 0]], [(0, 1)], [[[1, -1], [-1, 1]]]), ["field 0.5", "COO"]),
        (write_rudy, tf.GraphMRF([[0, 0], [0, 0]], [(0, 1)], tf.Potts(2)), ["constant 1", "COO"]),
        (write_coo, tf.GraphMRF([[0, 1], [0, 0, 0]], [(0, 1)], tf.Potts(1)), ["site 1 has 3 labels"]),
        (write_qubo, tf.GraphMRF([[0, np.inf]], np.zeros((0, 2), int), tf.Potts(1)), ["forbidden"]),
        (write_bqm, tf.GraphMRF([[0, np.inf]], np.zeros((0, 2), int), tf.Potts(1)), ["forbidden"]),
    ],
)
def test_models_that_spin_formats_cannot_hold_are_refused(tmp_path, write, mrf, words):
    check_one_line_error(lambda: write(tmp_path / "model", mrf), ValueError, "cannot write", *words)
    assert not list(tmp_path.iterdir())

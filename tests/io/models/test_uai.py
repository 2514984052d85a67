"""UAI files, evidence and MPE answers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treefield as tf
from graph_files import (
    check_round_trip,
    check_same_energies,
    data_file,
    data_models,
    energy,
    graph_models,
    labellings,
)
from one_line import check_one_line_error
from treefield.io import read_evidence, read_mpe, read_uai, write_mpe, write_uai

SMALL = """MARKOV
3
2 3 2
4
1 0
2 0 1
2 2 1
0

2
 0.5 1
6
 1 1 1
 1 0 2
6
 1 2 3 4 5 6
1
 0.125
"""


def naive(path, x):
    """-log of the product of the entries, factor after factor, word after word."""
    words = path.read_text().split()
    count = int(words[1])
    labels = [int(word) for word in words[2 : 2 + count]]
    at, scopes = 3 + count, []
    for _ in range(int(words[2 + count])):
        arity = int(words[at])
        scopes.append([int(word) for word in words[at + 1 : at + 1 + arity]])
        at += 1 + arity
    total = 0.0
    for scope in scopes:
        place, size = 0, 1
        for site in scope:
            place, size = place * labels[site] + x[site], size * labels[site]
        entry = float(words[at + 1 + place])
        total += -math.log(entry) if entry > 0 else math.inf
        at += 1 + size
    return total


def small(folder, text=SMALL):
    (folder / "small.uai").write_text(text)
    return folder / "small.uai"


def test_potentials_of_a_uai_file_become_energies(tmp_path):
    mrf = read_uai(small(tmp_path))
    assert mrf.label_counts.tolist() == [2, 3, 2] and mrf.edges.tolist() == [[0, 1], [2, 1]]
    for x in np.ndindex(2, 3, 2):
        assert energy(mrf, x) == pytest.approx(naive(tmp_path / "small.uai", x))
    assert math.isinf(mrf.energy([1, 1, 0])) and mrf.energy([1, 0, 0]) == pytest.approx(-math.log(0.125))


@pytest.mark.parametrize("name", data_models("uai/*.uai"))
def test_the_energy_of_a_uai_file_is_the_sum_over_its_factors(name):
    path = data_file(name)
    mrf = read_uai(path)
    own = mrf.size - mrf.auxiliary
    for x in labellings(mrf, 3):
        for site in range(own, mrf.size):  # an auxiliary site agrees with the sites it stands for
            x[site] = agreeing(mrf, x, site)
        assert energy(mrf, x) == pytest.approx(naive(path, x[:own]), rel=1e-9)


def agreeing(mrf, x, site):
    allowed = np.ones(mrf.label_counts[site], bool)
    for e in np.flatnonzero((mrf.edges == site).any(axis=1)):
        i, j = mrf.edges[e]
        table = mrf.edge_costs(e) if i == site else mrf.edge_costs(e).T
        allowed &= np.isfinite(table[:, x[j if i == site else i]])
    return int(np.argmax(allowed))


@pytest.mark.parametrize("values", ["potential", "log", "cost"])
@given(mrf=graph_models())
def test_a_uai_file_read_and_written_again_has_the_same_bytes(tmp_path_factory, values, mrf):
    folder = tmp_path_factory.mktemp("uai")
    close = {"rel": 1e-9, "abs": 1e-9} if values == "potential" else {"rel": 1e-13, "abs": 1e-9}
    if values == "potential" and any(too_steep(mrf)):
        check_one_line_error(lambda: write_uai(folder / "a.uai", mrf), ValueError, "a.uai", "potential", 'values="log"')
        return
    check_round_trip(
        folder,
        ".uai",
        mrf,
        lambda path: read_uai(path, values=values),
        lambda path, mrf, force: write_uai(path, mrf, values=values, force=force),
        **close,
    )


def too_steep(mrf):
    """Whether costs have no potentials, even when each table may be shifted."""
    tables = [*mrf.unaries, *(mrf.edge_costs(e) for e in range(len(mrf.edges)))]
    spans = [np.ptp(table[np.isfinite(table)]) for table in tables if np.isfinite(table).any()]
    yield max(spans, default=0) > 600
    yield abs(mrf.offset) + sum(np.abs(t[np.isfinite(t)]).max(initial=0) for t in tables) > 600


@given(st.floats(1e-290, 1e290))
def test_a_potential_in_a_uai_file_keeps_twelve_digits(value):
    text = f"{value:.12g}"
    cost = -math.log(float(text))
    assert f"{math.exp(-cost):.12g}" == text


def test_a_uai_constant_and_steep_tables_are_divided_among_the_sites(tmp_path):
    mrf = tf.GraphMRF([[5000.0, 5001], [0, 2]], [(0, 1)], np.array([[-900.0, -901], [-902, -900]]), offset=-4000)
    write_uai(tmp_path / "a.uai", mrf)
    check_same_energies(mrf, read_uai(tmp_path / "a.uai"), abs=1e-8)
    check_one_line_error(
        lambda: write_uai(tmp_path / "b.uai", tf.GraphMRF([[0.0, 800]], np.zeros((0, 2), int), tf.Potts(1))),
        ValueError,
        'values="log"',
    )
    assert not (tmp_path / "b.uai").exists()


def test_uai_files_of_bayes_networks_logarithms_and_costs_are_read(tmp_path):
    path = small(tmp_path, "BAYES 2 2 2 2 1 0 2 0 1 2 0.25 0.75 4 0.5 0.5 0 1")
    assert energy(read_uai(path), [0, 1]) == pytest.approx(-math.log(0.125))
    path = small(tmp_path, "MARKOV 1 3 1 1 0 3 -1 -inf 0")
    assert read_uai(path, values="log").unaries[0].tolist() == [1, math.inf, 0]
    path = small(tmp_path, "MARKOV 1 3 1 1 0 3 -1 inf 2.5")
    assert read_uai(path, values="cost").unaries[0].tolist() == [-1, math.inf, 2.5]


@pytest.mark.parametrize("text", ["2 0 1 2 0", "1\n2 0 1 2 0", "1\n2 0 1\n2 0\n"])
def test_evidence_forbids_the_other_labels(tmp_path, text):
    (tmp_path / "e.evid").write_text(text)
    assert read_evidence(tmp_path / "e.evid") == {0: 1, 2: 0}
    free, fixed = read_uai(small(tmp_path)), read_uai(small(tmp_path), evidence=tmp_path / "e.evid")
    for x in np.ndindex(2, 3, 2):
        agrees = x[0] == 1 and x[2] == 0
        assert energy(fixed, x) == (energy(free, x) if agrees else math.inf)
    check_same_energies(fixed, read_uai(small(tmp_path), evidence={0: 1, 2: 0}))


@pytest.mark.parametrize("text", ["0", "", "1 0", "1\n0\n"])
def test_an_empty_evidence_file_has_no_evidence(tmp_path, text):
    (tmp_path / "e.evid").write_text(text)
    assert read_evidence(tmp_path / "e.evid") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 0 1", ["2 sites", "2 numbers follow", "expected 4"]),
        ("1 7 0", ["site 7", "0 to 2"]),
        ("1 0 2", ["site 0 the label 2", "0 to 1"]),
        ("2 0 1 0 0", ["site 0", "1 and 0"]),
        ("2\n1 0 1\n1 0 0", ["2 samples", "expected one"]),
        ("1 0 x", ["line 1 ('x')", "not a number"]),
        ("1 0 -1", ["line 1 ('-1')"]),
    ],
)
def test_a_bad_evidence_file_is_refused(tmp_path, text, words):
    (tmp_path / "e.evid").write_text(text)
    call = lambda: read_uai(small(tmp_path), evidence=tmp_path / "e.evid")  # noqa: E731
    check_one_line_error(call, ValueError, "e.evid", *words)


def test_mpe_answers_are_written_read_and_checked(tmp_path):
    write_mpe(tmp_path / "a.MPE", np.array([1, 0, 12], np.int32))
    assert (tmp_path / "a.MPE").read_text() == "MPE\n3 1 0 12\n"
    assert read_mpe(tmp_path / "a.MPE").tolist() == [1, 0, 12]
    (tmp_path / "b.MPE").write_text("MPE\n2 0 0\n2 1 0\n")  # as anytime solvers write them
    assert read_mpe(tmp_path / "b.MPE").tolist() == [1, 0]
    for text, words in {"MAR 1": ["begin with MPE"], "MPE 3 1": ["ends before labels"], "MPE": ["no answer"]}.items():
        (tmp_path / "c.MPE").write_text(text)
        check_one_line_error(lambda: read_mpe(tmp_path / "c.MPE"), ValueError, "c.MPE", *words)
    check_one_line_error(lambda: write_mpe(tmp_path / "d.MPE", [[0]]), ValueError, "(sites,)", "(1, 1)")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("MARKOV", "MARKOW", ["'MARKOW'", "MARKOV or BAYES"]),
        (SMALL, "", ["''", "MARKOV"]),
        ("\n2 3 2", "\n2 0 2", ["numbers of labels", "line 3 ('0')"]),
        ("\n3\n2 3 2", "\n999999999\n2 3 2", ["ends before numbers of labels", "999999999"]),
        ("\n4\n1 0", "\n4000000000\n1 0", ["factor 4", "line 11"]),
        ("2 0 1", "2 0 3", ["sites of factor 1", "line 6 ('3')", "0 to 2"]),
        ("2 0 1", "2 1 1", ["names site 1 twice"]),
        ("2 0 1", "2 0 1.5", ["line 6 ('1.5')", "integer"]),
        ("0.5 1", "0.5 x", ["line 11 ('x')", "not a number"]),
        ("0.5 1", "0.5 -1", ["line 11 ('-1')", "factor 0", "no potential", "logarithms"]),
        ("0.5 1", "0.5 nan", ["line 11 ('nan')", "no potential"]),
        ("6\n 1 1 1", "5\n 1 1 1", ["factor 1 has 5 entries", "line 12", "6 assignments"]),
        (" 0.125", "", ["ends before the entries of factor 3"]),
        (" 0.125", " 0.125 7 8", ["4 factors are announced, but more follows at", "line 18 ('7')"]),
        (" 0.125", " 0", ["no labelling is allowed"]),
        ("MARKOV", "MARKOV\0", ["no text"]),
    ],
)
def test_a_bad_uai_file_is_refused(tmp_path, old, new, words):
    path = small(tmp_path, SMALL.replace(old, new))
    check_one_line_error(lambda: read_uai(path), ValueError, str(path), "is not a UAI model", *words)


def test_uai_labels_that_are_only_claimed_are_not_allocated(tmp_path):
    path = small(tmp_path, "MARKOV 2 2000000000 2000000000 0")
    check_one_line_error(lambda: read_uai(path), ValueError, "claims", "4000000000 costs")


def test_uai_refuses_unknown_values_and_other_models(tmp_path):
    check_one_line_error(lambda: read_uai(small(tmp_path), values="odds"), ValueError, "'potential', 'log', 'cost'")
    check_one_line_error(lambda: write_uai(tmp_path / "a.uai", np.zeros(3)), TypeError, "GraphMRF", "ndarray")
    grid = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1))
    check_one_line_error(lambda: write_uai(tmp_path / "a.uai", grid), TypeError, "GraphMRF", "save_model writes grids")

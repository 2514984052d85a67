"""WCSP files."""

import math

import numpy as np
import pytest
from hypothesis import given

import treefield as tf
from graph_files import check_round_trip, data_file, energy, graph_models, labellings
from one_line import check_one_line_error
from treefield.io import read_wcsp, write_wcsp

SMALL = """small 3 3 4 20
2 3 2
1 0 0 2
0 5
1 1
-2 0 1 20 3
0 0 0
0 2 3
1 1 20
2 2 1 20 -1
0 7 0
"""


def small(folder, text=SMALL):
    (folder / "small.wcsp").write_text(text)
    return folder / "small.wcsp"


def naive(path, x):
    """The sum over cost functions, each looked up tuple by tuple."""
    words = path.read_text().split()
    sites, count, top = int(words[1]), int(words[3]), int(words[4])
    at, total = 5 + sites, 0
    for _ in range(count):
        arity = int(words[at])
        scope = [int(word) for word in words[at + 1 : at + 1 + arity]]
        cost, rows = int(words[at + 1 + arity]), int(words[at + 2 + arity])
        at += 3 + arity
        for _ in range(rows):
            if all(int(words[at + k]) == x[site] for k, site in enumerate(scope)):
                cost = int(words[at + arity])
            at += arity + 1
        total += cost if cost < top else math.inf
    return total


def test_wcsp_costs_from_the_upper_bound_on_are_forbidden_and_functions_are_shared(tmp_path):
    mrf = read_wcsp(small(tmp_path))
    inf = math.inf
    assert [costs.tolist() for costs in mrf.unaries] == [[5, 1], [0, 0, 0], [0, 0]] and mrf.offset == 7
    assert mrf.edges.tolist() == [[0, 1], [2, 1]]
    for edge in (0, 1):
        assert mrf.edge_costs(edge).tolist() == [[0, inf, 3], [inf, inf, inf]]


def test_the_energy_of_celar_is_the_sum_over_its_functions():
    path = data_file("wcsp/celar6sub0.wcsp")
    mrf = read_wcsp(path)
    for x in labellings(mrf, 3):
        assert energy(mrf, x) == naive(path, x)


@given(mrf=graph_models(kinds=("counts",)))
def test_a_wcsp_file_read_and_written_again_has_the_same_bytes(tmp_path_factory, mrf):
    check_round_trip(tmp_path_factory.mktemp("wcsp"), ".wcsp", mrf, read_wcsp, write_wcsp)


def test_write_wcsp_raises_negative_costs_as_far_as_the_constant_allows(tmp_path):
    pairs = np.array([[-3.0, 0], [0, math.inf]])
    mrf = tf.GraphMRF([[0, 2], [4, -1]], [(0, 1)], pairs, offset=6)
    check_round_trip(tmp_path, ".wcsp", mrf, read_wcsp, write_wcsp)
    lower = tf.GraphMRF([[0, 2], [4, -1]], [(0, 1)], pairs, offset=3)
    check_one_line_error(lambda: write_wcsp(tmp_path / "b.wcsp", lower), ValueError, "constant", "-1", "CFN")


@pytest.mark.parametrize(
    ("mrf", "words"),
    [
        (tf.GraphMRF([[0, 0.5]], np.zeros((0, 2), int), tf.Potts(1)), ["0.5 is no integer", "scale", "CFN"]),
        (tf.GraphMRF([[0, 2]], np.zeros((0, 2), int), tf.Potts(1), offset=0.5), ["constant", "0.5"]),
        (tf.GraphMRF([[0, 2.0**52]] * 3, np.zeros((0, 2), int), tf.Potts(1)), ["beyond 2**53"]),
    ],
)
def test_write_wcsp_refuses_costs_that_are_not_integers(tmp_path, mrf, words):
    check_one_line_error(lambda: write_wcsp(tmp_path / "a.wcsp", mrf), ValueError, "a.wcsp", *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (SMALL, "small 3", ["it ends before the greatest number of labels"]),
        ("4 20", "4 twenty", ["line 1 ('twenty')"]),
        ("1 0 0 2", "2 0 1 -1 >= 1 5", ["line 3 ('>=')", "keyword"]),
        ("1 0 0 2", "2 0 1 -1 salldiff var 5", ["line 3 ('salldiff')", "only tables"]),
        ("2 3 2", "2 0 2", ["site 1 has no labels"]),
        ("0 5", "2 5", ["line 4 ('2')", "0 to 1"]),
        ("0 5", "0 5.5", ["line 4 ('5.5')", "integer"]),
        ("0 5", "0 -5", ["line 4 ('-5')", "at least 0"]),
        ("1 1 20", "1 3 20", ["line 9 ('3')", "0 to 2"]),
        ("20 -1", "20 -2", ["line 10 ('-2')", "at least -1"]),
        ("2 2 1 20 -1", "2 1 2 20 -1", ["shares", "line 10", "(3, 2)", "(2, 3)"]),
        ("0 7 0", "", ["ends before the arity of cost function 3"]),
        ("0 7 0", "0 7 0 9", ["4 cost functions are announced, but more follows at", "line 11 ('9')"]),
        ("0 7 0", "0 20 0", ["no labelling is allowed"]),
        ("3 3 4 20", "3 3 99999999 20", ["it ends before the arity of cost function 4 of 99999999"]),
        ("20 3\n", "20 30000000\n", ["ends before the tuples of cost function 1"]),
        ("20 3\n", "20 3e15\n", ["ends before the tuples"]),
    ],
)
def test_a_bad_wcsp_file_is_refused(tmp_path, old, new, words):
    path = small(tmp_path, SMALL.replace(old, new))
    check_one_line_error(lambda: read_wcsp(path), ValueError, str(path), "is not a WCSP model", *words)


def test_wcsp_tables_that_are_only_claimed_are_not_allocated(tmp_path):
    path = small(tmp_path, "big 2 200000 1 5\n200000 200000\n2 0 1 0 0\n")
    check_one_line_error(lambda: read_wcsp(path), ValueError, "claims tables", "40000000000 costs")

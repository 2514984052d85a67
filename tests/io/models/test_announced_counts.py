"""Readers of models read and allocate no more than the counts of a file announce and its words account for."""

import gzip
import time

import numpy as np
import pytest

from file_limits import memory_below
from one_line import check_one_line_error
from treefield.io import read_evidence, read_model, read_mpe

CFN = '{problem: {name: x, mustbe: "<100.0"}, variables: {a: %d, b: %d}, functions: {%s}}'
ONES = b"1 " * 10_000_000
EXCESS = {
    "model.uai": (b"", "begins with '1'"),
    "model.wcsp": (b"", "the sites of cost function 0"),
    "model.cfn": (b"", "a bracket that opens the problem"),
    "factors.uai": (b"MARKOV 1 2 1 1 0 2 1 1 ", "1 factors are announced, but more follows at line 1 ('1')"),
    "functions.wcsp": (b"x 1 2 1 9 2 1 0 0 1 0 5 ", "1 cost functions are announced, but more follows"),
    "costs.cfn": ((CFN % (2, 2, "f: {scope: [a], costs: [")).encode()[:-2], "f has more than 2 costs"),
    "edges.mc": (b"3 1 1 2 1 ", "1 edges are announced, but more follows"),
    "elements.qubo": (b"p qubo 0 2 1 1\n0 0 1 0 1 1\n", "1 diagonals and 1 elements are announced, but more follows"),
}


@pytest.mark.parametrize("name", EXCESS)
def test_a_text_model_is_read_no_further_than_its_counts_announce(tmp_path, name):
    start, words = EXCESS[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(start + ONES.replace(b" ", b"\n") if name.endswith("qubo") else start + ONES, 1))
    with memory_below(30_000_000):
        check_one_line_error(lambda: read_model(path), ValueError, str(path), words)


def test_evidence_and_answers_are_read_no_further_than_their_counts_announce(tmp_path):
    path = tmp_path / "model.evid.gz"
    path.write_bytes(gzip.compress(b"2 0 1 1 0 " + ONES, 1))
    with memory_below(30_000_000):
        check_one_line_error(lambda: read_evidence(path), ValueError, "2 samples")
    path.write_bytes(gzip.compress(b"1 2 0 1 1 0 " + ONES, 1))
    with memory_below(30_000_000):
        check_one_line_error(lambda: read_evidence(path), ValueError, "2 sites are known", "at least 5 numbers")
    path.write_bytes(gzip.compress(b"MPE " + (b"1000000 " + b"1 " * 1_000_000) * 10, 1))
    with memory_below(60_000_000):  # of many answers only the last is kept
        assert read_mpe(path).tolist() == [1] * 1_000_000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.uai", b"MARKOV 1000000000000000000 2", "the number of sites"),
        ("x.uai", b"MARKOV 9007199254740992 2", "9007199254740992 numbers are expected, 1 follow"),
        ("x.uai", b"MARKOV -1", "'-1'"),
        ("x.uai", b"MARKOV 1 2147483647 0", "claims tables"),
        ("x.uai", b"MARKOV 1 2 9007199254740992 1 0", "it ends before the arity of factor 1 of 9007199254740992"),
        ("x.uai", b"MARKOV 1 2 1 1 0 2 1e999999999 1", "'1e999999999'"),
        ("x.uai", b"MARKOV 1 2 1 1 0 2 " + b"9" * 1_000_000 + b" 1", "99..."),
        ("x.uai", b"MARKOV 1 2 1 1 0 2 " + b"9" * 3_000_000 + b" 1", "more than 1 MB"),
        ("x.wcsp", b"x 1 2147483647 0 10 2147483647", "claims tables"),
        ("x.wcsp", b"x 1 2 1 10 2 1 0 0 9007199254740992 0 1", "18014398509481984 numbers are expected, 2 follow"),
        ("x.mc", b"3 9007199254740992 1 2 3", "3 numbers for 9007199254740992 edges"),
        ("x.qubo", b"p qubo 0 9007199254740992 0 0", "claims 9007199254740992 sites"),
        ("x.coo", b"# vartype=SPIN\n0 2147483646 1\n", "claims 2147483647 sites"),
        ("x.cfn", b"{" * 3_000_000, "problem is expected"),
        ("x.cfn", b"#" + b"x" * 3_000_000, "more than 1 MB"),
        ("x.cfn", b'{problem: {name: "' + b"x" * 3_000_000 + b'"', "more than 1 MB"),
        ("x.bqm", b"DIMODBQM\2\0\xff\xff\xff\xff" + bytes(1_000_000), "claims 4294967295 bytes"),
    ],
)
def test_huge_numbers_and_words_in_models_are_refused_without_allocating(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_bytes(text)
    with memory_below(60_000_000):
        check_one_line_error(lambda: read_model(path), ValueError, str(path), words)


def test_cfn_with_braces_alone_takes_no_longer_than_with_brackets(tmp_path):
    parts = "".join(f"f{i}: {{scope: [a, b], costs: [0, 1, {i % 5}, 0]}}\n" for i in range(16_000))
    text = CFN % (2, 2, parts)
    (tmp_path / "brackets.cfn").write_text(text)
    (tmp_path / "braces.cfn").write_text(text.replace("[", "{").replace("]", "}"))
    brackets = read_model(tmp_path / "brackets.cfn")
    start = time.process_time()
    braces = read_model(tmp_path / "braces.cfn")
    assert time.process_time() - start < 10  # the search for brackets was quadratic: 20 s and more
    assert np.array_equal(braces.edges, brackets.edges)
    assert braces.energy([0, 1]) == brackets.energy([0, 1])


def test_cfn_functions_that_share_a_large_table_are_refused_without_allocating(tmp_path):
    path = tmp_path / "x.cfn"
    shared = "".join(f"g{i}: {{scope: [a, b], costs: z}} " for i in range(5000))
    path.write_text(CFN % (200, 200, f"{shared} z: {{scope: [a, b], costs: [{'1 ' * 40_000}]}}"))
    with memory_below(500_000_000):
        check_one_line_error(lambda: read_model(path), ValueError, "claims tables")


def test_wcsp_functions_that_share_many_tuples_are_refused(tmp_path):
    path = tmp_path / "x.wcsp"
    path.write_text("x 2 2 2001 10 2 2 -2 0 1 0 20000 " + "0 0 1 " * 20_000 + "2 0 1 0 -1 " * 2000)
    check_one_line_error(lambda: read_model(path), ValueError, "claims tables")

"""CFN files."""

import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import given

import treefield as tf
from graph_files import check_round_trip, check_same_energies, data_file, energy, graph_models, labellings
from one_line import check_one_line_error
from treefield.io import read_cfn, write_cfn

STRICT = """{
"problem": {"name": "small", "mustbe": "<100.00"},
"variables": {"a": ["no", "yes"], "b": 3, "c": ["x", "y"]},
"functions": {
 "f": {"scope": ["a"], "costs": [-1.5, 2]},
 "g": {"scope": ["a", "b"], "defaultcost": 0.25, "costs": ["yes", 2, 7, 0, 1, 100]},
 "h": {"scope": ["c", 1], "costs": "k"},
 "k": {"scope": ["a", "b"], "costs": [1, 2, 3, 4, 5, 6]},
 "rest": {"scope": [], "costs": [3.5]}
}
}"""
FREE = """# the same, freely
{problem {small <100.00} variables [[no yes] 3 [x y]]
# commas and colons are spaces
functions [[scope {0} costs {-1.5 2}] {scope [0 1] defaultcost "0.25" costs [yes 2 7 no 1 100]}
h {scope [2 1] costs k} k {scope [0 1] costs [1 2 3 4 5 6]} {scope [] costs [3.5]}]
}"""


def small(folder, text=STRICT):
    (folder / "small.cfn").write_text(text)
    return folder / "small.cfn"


def test_a_cfn_file_is_read_with_names_tables_and_defaults(tmp_path):
    mrf = read_cfn(small(tmp_path))
    assert mrf.label_counts.tolist() == [2, 3, 2] and mrf.offset == 3.5
    assert mrf.unaries[0].tolist() == [-1.5, 2] and mrf.edges.tolist() == [[0, 1], [2, 1]]
    sparse = np.array([[0.25, 100, 0.25], [0.25, 0.25, 7]])
    full = np.array([[1, 2, 3], [4, 5, 6]])
    assert mrf.edge_costs(0).tolist() == (sparse + full).tolist() and mrf.edge_costs(1).tolist() == full.tolist()


def test_a_cfn_file_in_free_spelling_is_the_same_model(tmp_path):
    check_same_energies(read_cfn(small(tmp_path)), read_cfn(small(tmp_path, FREE)))


def test_cfn_costs_that_reach_the_bound_are_forbidden_whatever_the_others_are(tmp_path):
    head = '{"problem": {"name": "p", "mustbe": "<10.0"}, "variables": [2, 2], "functions": '
    mrf = read_cfn(small(tmp_path, head + '{"f": {"scope": [0], "costs": [9.9, 10]}}}'))
    assert mrf.unaries[0].tolist() == [9.9, math.inf]
    mrf = read_cfn(small(tmp_path, head + '[{"scope": [0], "costs": [12, 15]}, {"scope": [1], "costs": [-5, 0]}]}'))
    assert mrf.unaries[0].tolist() == [12, math.inf]  # 12 - 5 is below 10
    mrf = read_cfn(small(tmp_path, head + '{"f": {"scope": [0], "costs": [inf, 1]}}}'))
    assert mrf.unaries[0].tolist() == [math.inf, 1]


def test_a_cfn_file_that_maximises_is_negated_and_extra_decimals_are_truncated(tmp_path):
    text = '{problem: {name: m, mustbe: ">-5.0"}, variables: [2 2], functions: {f: {scope: [0] costs: [1.19 -7]}}}'
    assert read_cfn(small(tmp_path, text)).unaries[0].tolist() == [-1.1, math.inf]


def test_the_energy_of_a_protein_is_the_sum_over_its_functions():
    path = data_file("wcsp/1aho.cfn.gz")
    mrf, file = read_cfn(path), json.loads(gzip.decompress(path.read_bytes()))
    counts = [len(values) for values in file["variables"].values()]
    for x in labellings(mrf, 3):
        total = 0.0
        for function in file["functions"].values():
            scope, costs = function["scope"], function["costs"]  # sites and labels are numbers in this file
            labels = [x[site] for site in scope]
            if "defaultcost" in function:
                rows = [costs[at : at + 3] for at in range(0, len(costs), 3)]
                total += next((cost for *tuple_, cost in rows if tuple_ == labels), function["defaultcost"])
            else:
                place = labels[0] if len(scope) == 1 else labels[0] * counts[scope[1]] + labels[1]
                total += costs[place]
        assert energy(mrf, x) == pytest.approx(total, rel=1e-12)


@given(mrf=graph_models(kinds=("counts", "integers", "odd")))
def test_a_cfn_file_read_and_written_again_has_the_same_bytes(tmp_path_factory, mrf):
    try:
        check_round_trip(tmp_path_factory.mktemp("cfn"), ".cfn", mrf, read_cfn, write_cfn, rel=1e-13)
    except ValueError as error:
        assert "decimals=" in str(error)  # 1/3 among large costs


@given(mrf=graph_models(kinds=("floats",)))
def test_cfn_costs_written_with_decimals_come_back_rounded(tmp_path_factory, mrf):
    folder = tmp_path_factory.mktemp("cfn")

    def write(path, mrf, force):
        write_cfn(path, mrf, decimals=6, force=force)

    check_round_trip(folder, ".cfn", mrf, read_cfn, write, abs=1e-5)
    json.loads((folder / "model.cfn").read_text())


def test_more_decimals_than_toulbar2_holds_are_refused(tmp_path):
    mrf = tf.GraphMRF([[1 / 3, 1e6]], np.zeros((0, 2), int), tf.Potts(1))
    check_one_line_error(lambda: write_cfn(tmp_path / "a.cfn", mrf), ValueError, "16 decimals", "decimals=12", "a.cfn")
    write_cfn(tmp_path / "a.cfn", mrf, decimals=12)
    assert read_cfn(tmp_path / "a.cfn").unaries[0].tolist() == [0.333333333333, 1e6]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (STRICT, "", ["opens the problem", "its end"]),
        ('"problem"', '"problems"', ["problem is expected", "line 2"]),
        ('"<100.00"', '"100.00"', ["mustbe", "line 2"]),
        ('"<100.00"', '"<1e2"', ["mustbe"]),
        ('"b": 3', '"b": 0', ["number", "line 3", "'0'"]),
        ('"b": 3', '"b": 99999999999', ["number", "line 3"]),
        ('"b": 3', '"a": 3', ["name that no other variable has", "line 3"]),
        ('["x", "y"]', '["x", "x"]', ["all differ", "line 3"]),
        ('["a"]', '["z"]', ["name or the number of a variable", "line 5", "z"]),
        ('["c", 1]', '["c", 3]', ["name or the number of a variable", "line 7"]),
        ('["c", 1]', '["c", 2]', ["names site 2 twice"]),
        ("[-1.5, 2]", "[-1.5, 2, 3]", ["function f has more than 2 costs", "line 5", "2 assignments"]),
        ("[-1.5, 2]", "[-1.5, two]", ["line 5 ('two')", "no number"]),
        ("[-1.5, 2]", "[-1.5, [2]]", ["without brackets", "line 5"]),
        ('"yes", 2, 7', '"maybe", 2, 7', ["value of its variable", "function g", "line 6", "maybe"]),
        ('"yes", 2, 7', '"yes", 3, 7', ["value of its variable", "line 6"]),
        ('"yes", 2, 7', '"yes", 2', ["5 words", "expected 3 per tuple"]),
        ('"costs": "k"', '"costs": "f"', ["function h has the costs of f", "none of that name comes later"]),
        ('"scope": ["c", 1]', '"scope": ["c"]', ["function h", "labels differ"]),
        ('"costs": "k"', '"type": "salldiff", "params": {}', ["function h", "'salldiff'", "line 7"]),
        ('"costs": [3.5]', '"costs": [200]', ["no labelling is allowed"]),
        ('"costs": [3.5]}\n}\n}', '"costs": [3.5]}', ["a closing bracket is expected at its end"]),
        ("\n}\n}", "\n}\n} more", ["end of the file", "line 11 ('more')"]),
    ],
)
def test_a_bad_cfn_file_is_refused(tmp_path, old, new, words):
    path = small(tmp_path, STRICT.replace(old, new))
    check_one_line_error(lambda: read_cfn(path), ValueError, str(path), "is not a CFN model", *words)

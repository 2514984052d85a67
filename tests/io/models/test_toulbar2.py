"""toulbar2 reads our files, and finds the energies that we do."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import treefield as tf
from graph_files import energy, graph_models, labellings
from treefield.io import read_cfn, read_wcsp, write_model

pytest.importorskip("pytoulbar2", exc_type=ImportError)

# toulbar2 keeps the problem that it has read last: each problem needs another process
SOLVE = """
import json, os, sys
import pytoulbar2
path, *rows = json.loads(sys.argv[1])
for fixed in rows:
    if os.fork():
        os.wait()
        continue
    problem = pytoulbar2.CFN()
    try:
        problem.Read(path)
        for site, label in enumerate(fixed):
            problem.CFN.wcsp.assign(site, label)
        found = problem.Solve()
        if found and path.endswith(".uai"):  # potentials have become integers
            found = [found[0], -problem.CFN.wcsp.Cost2LogProb(int(found[1]))]
    except pytoulbar2.pytb2.Contradiction:
        found = None
    print("found", json.dumps(found and found[:2]), flush=True)
    os._exit(0)
"""


def solved(path, *rows):
    """toulbar2's labelling and energy for each of the labellings to which sites are fixed; None where all is
    forbidden."""
    given = json.dumps([str(path), *rows])
    done = subprocess.run([sys.executable, "-c", SOLVE, given], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    assert len(lines) == len(rows), done.stdout + done.stderr
    return [json.loads(line[6:]) for line in lines]


def least(mrf):
    return min(energy(mrf, x) for x in np.ndindex(*mrf.label_counts))


@settings(max_examples=10)
@given(mrf=graph_models(kinds=("counts",)))
def test_toulbar2_finds_the_least_energy_of_our_wcsp_files(tmp_path_factory, mrf):
    check(tmp_path_factory.mktemp("wcsp") / "model.wcsp", mrf, 0)


@settings(max_examples=10)
@given(mrf=graph_models(kinds=("counts", "integers", "floats")))
def test_toulbar2_finds_the_least_energy_of_our_cfn_files(tmp_path_factory, mrf):
    check(tmp_path_factory.mktemp("cfn") / "model.cfn", mrf, 1e-4, decimals=6)


def check(path, mrf, close, **options):
    write_model(path, mrf, **options)
    best, (found,) = least(mrf), solved(path, [])
    if np.isinf(best):
        assert found is None
        return
    assert found[1] == pytest.approx(best, abs=close) and energy(mrf, found[0]) == pytest.approx(found[1], abs=close)


def test_toulbar2_gives_a_labelling_the_same_energy(tmp_path):
    rng = np.random.default_rng(0)
    tables = [rng.integers(0, 50, (3, 4)), rng.integers(0, 50, (4, 2))]
    mrf = tf.GraphMRF([rng.integers(0, 9, n) for n in (3, 4, 2)], [(0, 1), (1, 2)], tables, offset=5)
    for suffix, options in ((".wcsp", {}), (".cfn", {}), (".cfn.gz", {}), (".wcsp.xz", {})):
        path = tmp_path / f"model{suffix}"
        write_model(path, mrf, **options)
        several = labellings(mrf, 4)
        assert solved(path, *several) == [[x, energy(mrf, x)] for x in several]


def test_toulbar2_shifts_all_energies_of_our_uai_files_alike(tmp_path):
    """toulbar2 divides each factor by its greatest potential, which shifts all energies alike."""
    rng = np.random.default_rng(1)
    tables = [rng.normal(0, 3, (3, 4)), rng.normal(0, 3, (4, 2))]
    mrf = tf.GraphMRF([rng.normal(0, 2, n) for n in (3, 4, 2)], [(0, 1), (1, 2)], tables, offset=5)
    write_model(tmp_path / "model.uai", mrf)
    several = labellings(mrf, 6)
    best, *found = solved(tmp_path / "model.uai", [], *several)
    shifts = [energy(mrf, x) - other[1] for x, other in zip(several, found, strict=True)]
    assert shifts == pytest.approx([shifts[0]] * 6, abs=1e-4)
    assert energy(mrf, best[0]) == pytest.approx(least(mrf), abs=1e-5)


CFN = '{problem: {name: m, mustbe: "%s"}, variables: {a: [x, y], b: 3}, functions: {%s}}'


@pytest.mark.parametrize(
    ("bound", "functions"),
    [
        ("<10.0", "f: {scope: [a], costs: [3.19, 3.16]}, g: {scope: [b], costs: [1, 0, 2]}"),
        ("<10.00", "f: {scope: [a b] defaultcost: 1.25 costs: [x 2 0.5 y 0 -7]}"),
        ("<9", "h: {scope: [] costs: [2.5]} f: {scope: [a] costs: [12, 11.7]} g: {scope: [1] costs: [-5, -6.5, -4]}"),
        ("<10.0", "f: {scope: [a] costs: [inf 1.5]}"),
    ],
)
def test_our_reader_understands_cfn_as_toulbar2_does(tmp_path, bound, functions):
    (tmp_path / "a.cfn").write_text(CFN % (bound, functions))
    mrf = read_cfn(tmp_path / "a.cfn")
    (found,) = solved(tmp_path / "a.cfn", [])
    assert found[1] == pytest.approx(least(mrf)) and energy(mrf, found[0]) == pytest.approx(found[1])


def test_our_reader_understands_shared_functions_as_toulbar2_does(tmp_path):
    rows = "0 0 9\n1 1 4\n2 2 9\n"
    (tmp_path / "a.wcsp").write_text(f"a 3 3 3 50\n3 3 3\n-2 0 1 1 3\n{rows}2 1 2 1 -1\n1 0 0 1\n1 7\n")
    mrf = read_wcsp(tmp_path / "a.wcsp")
    several = labellings(mrf, 6)
    assert solved(tmp_path / "a.wcsp", *several) == [[x, energy(mrf, x)] for x in several]

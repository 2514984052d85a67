"""Files of known optima: what a proved bound and a labelling say agrees with what others have found."""

import pytest

import treefield as tf
from graph_files import data_file
from treefield.io import read_model


def test_a_protein_has_its_known_optimum():
    known = float(data_file("wcsp/1aho.ub").read_text())
    res = tf.trw(read_model(data_file("wcsp/1aho.cfn.gz")), tol=1e-6)
    assert res.fun == pytest.approx(known, abs=1e-6) and res.lower_bound == pytest.approx(known, abs=1e-4)


@pytest.mark.parametrize("name", ["29.wcsp.uai", "Segmentation_12.uai", "rbm_ferro_20.uai", "ObjectDetection_11.uai"])
def test_no_bound_is_above_and_no_energy_below_the_known_optimum(name):
    rows = [line.split("\t") for line in data_file("uai/optima.tsv").read_text().splitlines()[1:]]
    known = {row[0]: float(row[4]) for row in rows}[name]
    res = tf.trw(read_model(data_file(f"uai/{name}")), maxiter=100)
    assert res.lower_bound <= known + 1e-6 and res.fun >= known - 1e-6

"""dimod's binary files of quadratic models, read and written by dimod itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.io.files import MissingPackageError, checked_input, checked_path, reading, shown, writing
from treefield.io.spins import VARTYPES, Quadratic, check_sites, quadratic_of
from treefield.io.text import read_packed
from treefield.models.graph import GraphMRF
from treefield.validation import choice


def read_bqm(path: Any) -> GraphMRF:
    """The model of a file that dimod's ``BinaryQuadraticModel.to_file`` made; needs the extra ``dimod``.

    Variables named 0, 1, 2, ... are the sites of these numbers, others are numbered in the file's order. Labels 0 and 1
    stand for -1 and 1, or for 0 and 1, whichever the variables of the file are.
    """
    path = checked_input(path)
    dimod = _dimod("reading", path)
    with reading(path, "a dimod model"):
        bqm = dimod.BinaryQuadraticModel.from_file(read_packed(path))
        vectors = bqm.to_numpy_vectors(return_labels=True)
        check_sites(len(vectors.labels), path.stat().st_size)
        numbers = {label for label in vectors.labels if type(label) is int}
        site = np.arange(len(vectors.labels))
        if numbers == set(range(len(site))):
            site = np.array(vectors.labels, np.int64)
        linear = np.zeros(len(site))
        linear[site] = vectors.linear_biases
        rows, columns, biases = vectors.quadratic
        edges = np.stack([site[rows], site[columns]], axis=1)
        order = np.lexsort((edges.max(axis=1), edges.min(axis=1)))
        edges = np.sort(edges, axis=1)[order]
        model = Quadratic(bqm.vartype.name, linear, edges, np.asarray(biases, np.float64)[order], float(vectors.offset))
        return model.graph()


def write_bqm(path: Any, mrf: GraphMRF, *, vartype: str = "SPIN", force: bool = False) -> None:
    """Write a model of two labels as a file for dimod's ``BinaryQuadraticModel.from_file``; needs the extra
    ``dimod``."""
    choice(vartype, "vartype", VARTYPES)
    path = checked_path(path)
    model = quadratic_of(mrf, vartype, shown(path))
    dimod = _dimod("writing", path)
    rows, columns = model.edges.T if len(model.edges) else np.zeros((2, 0), np.int32)
    vectors = (model.linear, (rows, columns, model.quadratic), model.offset)
    bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(*vectors, vartype=vartype)
    with writing(path, force=force) as temporary, bqm.to_file() as file:
        temporary.write_bytes(file.read())


def _dimod(doing: str, path: Any) -> Any:
    try:
        import dimod
    except ImportError as error:
        raise MissingPackageError(f'{doing} {shown(path)} needs dimod: pip install "treefield[dimod]"') from error
    return dimod

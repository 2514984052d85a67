"""Max-cut files as the generator rudy writes them, and the Gset."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from treefield.io.files import explain_read_errors
from treefield.io.models.cursor import Cursor
from treefield.io.models.factors import as_writable_form
from treefield.io.models.number_text import format_number
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.io.text import read_blocks, write_text
from treefield.models.graph import GraphMRF
from treefield.models.quadratic_form import QuadraticForm
from treefield.validation import is_integral


def read_rudy(path: str | os.PathLike[str]) -> GraphMRF:
    """The Ising model of a max-cut file.

    The file holds the numbers of sites and edges, then for each edge its two sites, from 1 on, and its weight (1 if
    there are none).

    The energy is the sum of w s s over the edges, with spin -1 for label 0 and +1 for label 1, so the greatest cut is
    where the energy is least: `max_cut` turns one into the other.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "triangle.mc")
    ...     _ = path.write_text("3 3\\n1 2 1\\n2 3 1\\n1 3 1\\n")
    ...     mrf = treefield.io.read_rudy(path)
    >>> mrf.energy([0, 1, 0]), treefield.io.max_cut(mrf, [0, 1, 0])
    (-1.0, 2.0)
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a max-cut model"):
        cursor = Cursor(lambda: read_blocks(path))
        size = cursor.read_integer("the number of sites", 1)
        count = cursor.read_integer("the number of edges", 0)
        numbers = cursor.read_up_to(3 * count)
        width = 2 if len(numbers) == 2 * count else 3
        if len(numbers) != width * count:
            raise ValueError(
                f"it has {len(numbers)} numbers for {count} edges, expected {3 * count}: two sites, weight"
            )
        cursor.check_finished(f"{count} edges are")
        cursor.as_site_count(size)
        rows = numbers.reshape(count, width)
        sites = rows[:, :2]
        good = (sites >= 1) & (sites <= size) & is_integral(sites)
        good[:, 1] &= sites[:, 0] != sites[:, 1]
        if not good.all() or not np.isfinite(rows).all():
            bad = int(np.argmin(good.all(axis=1) & np.isfinite(rows).all(axis=1)))
            place = cursor.place((count - bad) * width)
            raise ValueError(f"the edge at {place} must be two sites of 1 to {size} that differ, and a weight")
        weights = rows[:, 2] if width == 3 else np.ones(count)
        return QuadraticForm("SPIN", np.zeros(size), sites.astype(np.int64) - 1, weights).to_graph()


def write_rudy(path: str | os.PathLike[str], mrf: GraphMRF, *, force: bool = False) -> None:
    """Write an Ising model without fields as a max-cut file; packed if the path ends in .gz or .xz.

    Models with fields, or with a constant, are refused: `write_coo` writes them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, treefield as tf, treefield.io
    >>> mrf = tf.GraphMRF(np.zeros((2, 2)), [(0, 1)], np.array([[-3, 3], [3, -3]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.mc")
    ...     treefield.io.write_rudy(path, mrf)
    ...     path.read_text()
    '2 1\\n1 2 -3\\n'
    """
    path = as_path(path)
    model = as_writable_form(mrf, "SPIN", path)
    if model.linear.any():
        site = int(np.argmax(model.linear != 0))
        raise ValueError(
            f"cannot write {as_text(path)}: site {site} has the field {model.linear[site]:g}, but max-cut has none; "
            "write COO, which has"
        )
    if model.offset:
        raise ValueError(
            f"cannot write {as_text(path)}: the energies have the constant {model.offset:g}, which max-cut files do "
            "not hold; write COO, which does"
        )
    edges = zip((mrf.edges + 1).tolist(), model.quadratic.tolist(), strict=True)
    lines = (f"{i} {j} {format_number(weight)}\n" for (i, j), weight in edges)
    write_text(path, [f"{mrf.size} {len(mrf.edges)}\n", *lines], force=force)


def max_cut(mrf: GraphMRF, x: ArrayLike) -> float:
    """The weight of the edges that a labelling of a max-cut model cuts: (sum of weights - energy) / 2.

    Examples
    --------
    >>> import numpy as np, treefield as tf, treefield.io
    >>> mrf = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2)], np.array([[1, -1], [-1, 1]]), weights=[4, 3])
    >>> treefield.io.max_cut(mrf, [0, 1, 1])
    4.0
    """
    total = float(np.sum(QuadraticForm.from_graph(mrf, "SPIN").quadratic))
    return (total - mrf.energy(x)) / 2

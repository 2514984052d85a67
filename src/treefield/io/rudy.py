"""Max-cut files as the generator rudy writes them, and the Gset."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.io.files import checked_input, checked_path, reading, shown
from treefield.io.spins import Quadratic, check_sites, quadratic_of
from treefield.io.text import Cursor, blocks, short, write_packed
from treefield.models.graph import GraphMRF


def read_rudy(path: Any) -> GraphMRF:
    """The Ising model of a max-cut file: the numbers of sites and edges, then for each edge its two sites, from 1 on,
    and its weight (1 if there are none).

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
    path = checked_input(path)
    with reading(path, "a max-cut model"):
        cursor = Cursor(lambda: blocks(path))
        size = cursor.integer("the number of sites", 1)
        count = cursor.integer("the number of edges", 0)
        numbers = cursor.up_to(3 * count)
        width = 2 if len(numbers) == 2 * count else 3
        if len(numbers) != width * count:
            raise ValueError(
                f"it has {len(numbers)} numbers for {count} edges, expected {3 * count}: two sites, weight"
            )
        cursor.finish(f"{count} edges are")
        check_sites(size, cursor.words)
        rows = numbers.reshape(count, width)
        sites = rows[:, :2]
        good = (sites >= 1) & (sites <= size) & (sites == np.floor(sites))
        good[:, 1] &= sites[:, 0] != sites[:, 1]
        if not good.all() or not np.isfinite(rows).all():
            bad = int(np.argmin(good.all(axis=1) & np.isfinite(rows).all(axis=1)))
            place = cursor.where((count - bad) * width)
            raise ValueError(f"the edge at {place} must be two sites of 1 to {size} that differ, and a weight")
        weights = rows[:, 2] if width == 3 else np.ones(count)
        return Quadratic("SPIN", np.zeros(size), sites.astype(np.int64) - 1, weights).graph()


def write_rudy(path: Any, mrf: GraphMRF, *, force: bool = False) -> None:
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
    path = checked_path(path)
    model = quadratic_of(mrf, "SPIN", shown(path))
    if model.linear.any():
        site = int(np.argmax(model.linear != 0))
        raise ValueError(
            f"cannot write {shown(path)}: site {site} has the field {model.linear[site]:g}, but max-cut has none; "
            "write COO, which has"
        )
    if model.offset:
        raise ValueError(
            f"cannot write {shown(path)}: the energies have the constant {model.offset:g}, which max-cut files do not "
            "hold; write COO, which does"
        )
    edges = zip((mrf.edges + 1).tolist(), model.quadratic.tolist(), strict=True)
    lines = (f"{i} {j} {short(weight)}\n" for (i, j), weight in edges)
    write_packed(path, [f"{mrf.size} {len(mrf.edges)}\n", *lines], force=force)


def max_cut(mrf: GraphMRF, x: Any) -> float:
    """The weight of the edges that a labelling of a max-cut model cuts: (sum of weights - energy) / 2.

    Examples
    --------
    >>> import numpy as np, treefield as tf, treefield.io
    >>> mrf = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2)], np.array([[1, -1], [-1, 1]]), weights=[4, 3])
    >>> treefield.io.max_cut(mrf, [0, 1, 1])
    4.0
    """
    total = float(np.sum(quadratic_of(mrf, "SPIN", "the cut").quadratic))
    return (total - mrf.energy(x)) / 2

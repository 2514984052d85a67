"""WCSP files, toulbar2's format of integer costs."""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterator

import numpy as np

from treefield.io.files import explain_read_errors
from treefield.io.models.cursor import Cursor
from treefield.io.models.factors import Factors, as_writable_graph
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.io.text import read_blocks, write_text
from treefield.models.graph import GraphMRF
from treefield.validation import is_integral

_EXACT = 2**53  # float64 holds integers up to this


def read_wcsp(path: str | os.PathLike[str]) -> GraphMRF:
    """The model of a WCSP file; also packed, as .wcsp.gz or .wcsp.xz.

    A cost at or above the file's upper bound is forbidden. Cost functions are tables: those that a keyword names, such
    as ``>=`` or ``salldiff``, are refused. Those of three and more sites become auxiliary sites, see `read_uai`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.wcsp")
    ...     _ = path.write_text("small 2 2 1 100\\n2 2\\n2 0 1 5 2\\n0 0 0\\n1 1 100\\n")
    ...     mrf = treefield.io.read_wcsp(path)
    >>> mrf.edge_costs(0)
    array([[ 0.,  5.],
           [ 5., inf]])
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a WCSP model"):
        return _read(path).graph()


def _read(path: pathlib.Path) -> Factors:
    cursor = Cursor(lambda: read_blocks(path), "; cost functions that a keyword names are not read, only tables")
    if not cursor.read_first_word() or cursor.is_at_end:
        raise ValueError("it has no header: name, sites, greatest number of labels, cost functions, upper bound")
    size = cursor.read_integer("the number of sites", 1)
    cursor.read_integer("the greatest number of labels", 0)
    count = cursor.read_integer("the number of cost functions", 0)
    top = float(cursor.read_floats(1, "the upper bound")[0])
    if not 0 <= top < math.inf:
        raise ValueError(f"the upper bound at {cursor.place()} must be a number of at least 0")
    domains = cursor.read_integers(size, "numbers of labels", -(2**31) + 1, 2**31 - 1)
    if not domains.all():
        raise ValueError(f"site {int(np.argmin(np.abs(domains)))} has no labels")
    factors = Factors(path, np.abs(domains), name="cost function")
    shared: list[tuple[tuple[int, ...], np.ndarray, np.ndarray]] = []
    for index in range(count):
        _read_function(cursor, factors, index, count, top, shared)
    cursor.check_finished(f"{count} cost functions are")
    return factors


def _read_function(cursor: Cursor, factors: Factors, index: int, total: int, top: float, shared: list) -> None:
    size = len(factors.label_counts)
    arity = cursor.read_integer(f"the arity of cost function {index} of {total}", -size, size)
    what = f"the sites of cost function {index}"
    sites = [cursor.read_integer(what, 0, size - 1) for _ in range(abs(arity))]
    scope = factors.as_scope(sites, str(index))
    default = _costs(cursor.read_floats(1, f"the default cost of cost function {index}"), top, cursor, index)
    rows = cursor.read_integer(f"the number of tuples of cost function {index}", -len(shared))
    shape = factors.shape(scope)
    if rows < 0:
        shape_there, labels, costs = shared[-rows - 1]
        if shape_there != shape:
            raise ValueError(
                f"cost function {index} shares the tuples of another, at {cursor.place()}, but their numbers of labels "
                f"are {shape} and {shape_there}"
            )
    else:
        width = len(scope) + 1
        tuples = cursor.read_floats(rows * width, f"the tuples of cost function {index}").reshape(rows, width)
        labels, costs = tuples[:, :-1], _costs(tuples[:, -1], top, cursor, index, width)
        good = (labels >= 0) & (labels < shape) & is_integral(labels)
        if not good.all():
            row, axis = divmod(int(np.argmin(good)), len(scope))
            place = cursor.place((rows - row) * width - axis)
            raise ValueError(f"the label at {place}, of cost function {index}, must be 0 to {shape[axis] - 1}")
        labels = labels.astype(np.int64)
    if arity < 0:
        shared.append((shape, labels, costs))
    factors.words = cursor.words
    factors.add_sparse(scope, float(default[0]), labels, costs)


def _costs(values: np.ndarray, top: float, cursor: Cursor, index: int, step: int = 1) -> np.ndarray:
    """Integer costs, +inf from the upper bound on; every `step`-th of the numbers read last."""
    good = (values >= 0) & (is_integral(values) & (values <= _EXACT) | (values >= top))
    if not good.all():
        place = cursor.place((len(values) - 1 - int(np.argmin(good))) * step + 1)
        raise ValueError(
            f"the cost at {place}, of cost function {index}, must be an integer, at least 0 and at most 2**53"
        )
    return np.where(values >= top, math.inf, values)


def write_wcsp(path: str | os.PathLike[str], mrf: GraphMRF, *, force: bool = False) -> None:
    """Write a model of integer costs as a WCSP file; packed if the path ends in .gz or .xz.

    The format holds integers from 0 on. Negative costs are raised and the constant lowered by the same; where that
    would make the constant negative, or where costs are no integers, the model is refused: `write_cfn` writes it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.wcsp")
    ...     treefield.io.write_wcsp(path, tf.GraphMRF([[0, 1], [2, 0]], [(0, 1)], tf.Potts(1)))
    ...     print(path.read_text())
    model 2 2 3 5
    2 2
    1 0 0 2
    0 0
    1 1
    1 1 0 2
    0 2
    1 0
    2 0 1 0 4
    0 0 0
    0 1 1
    1 0 1
    1 1 0
    <BLANKLINE>
    """
    path = as_path(path)
    mrf = as_writable_graph(mrf, path)
    tables = mrf.unaries + [mrf.edge_costs(edge) for edge in range(len(mrf.edges))]
    constant, top = mrf.offset, 1.0
    for index, table in enumerate(tables):
        allowed = table[table < math.inf]
        if not is_integral(allowed).all():
            raise ValueError(
                f"cannot write {as_text(path)}: the cost {allowed[~is_integral(allowed)][0]:g} is no integer, "
                "as all are in WCSP; scale and round the costs, or write CFN, which holds decimals"
            )
        if allowed.size and allowed.min() < 0:
            constant += float(allowed.min())
            tables[index] = table - allowed.min()
            allowed = allowed - allowed.min()
        top += float(allowed.max(initial=0))
    if not constant.is_integer() or constant < 0:
        raise ValueError(
            f"cannot write {as_text(path)}: the constant, with what makes all costs at least 0, is {constant:g}, but "
            "WCSP holds integers from 0 on; add to the costs or write CFN"
        )
    if top + constant > _EXACT:
        raise ValueError(
            f"cannot write {as_text(path)}: the costs may add up to {top + constant:g}, beyond 2**53; scale them down"
        )
    write_text(path, _text(mrf, tables, int(constant), int(top + constant)), force=force)


def _text(mrf: GraphMRF, tables: list[np.ndarray], constant: int, top: int) -> Iterator[str]:
    scopes = [(site,) for site in range(mrf.size)] + [tuple(edge) for edge in mrf.edges.tolist()]
    count = len(scopes) + (constant != 0)
    labels = " ".join(map(str, mrf.label_counts.tolist()))
    yield f"model {mrf.size} {mrf.n_labels} {count} {top}\n{labels}\n"
    for scope, table in zip(scopes, tables, strict=True):
        yield f"{len(scope)} {' '.join(map(str, scope))} 0 {table.size}\n"
        costs = np.where(table < math.inf, table, top).astype(np.int64).ravel().tolist()
        if len(scope) == 1:
            yield "".join([f"{label} {cost}\n" for label, cost in enumerate(costs)])
        else:
            pairs = np.ndindex(table.shape)
            yield "".join([f"{a} {b} {cost}\n" for (a, b), cost in zip(pairs, costs, strict=True)])
    if constant:
        yield f"0 {constant} 0\n"

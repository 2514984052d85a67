"""Ising and QUBO models as lists of three numbers: dimod's COO text, and qbsolv's .qubo files."""

from __future__ import annotations

import os
import pathlib
import re
import sys
from collections.abc import Iterator

import numpy as np

from treefield.io.files import explain_read_errors
from treefield.io.models.cursor import Cursor
from treefield.io.models.factors import as_writable_form
from treefield.io.models.number_text import format_number
from treefield.io.paths import as_input_path, as_path
from treefield.io.text import end_of_last_line, read_blocks, write_text
from treefield.models.graph import GraphMRF
from treefield.models.quadratic_form import VARTYPES, QuadraticForm
from treefield.validation import as_choice, as_count, is_integral

_VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*([A-Za-z]+)", re.MULTILINE)
_OFFSET = re.compile(rb"^[ \t]*[#c][ \t]*offset[:= \t][ \t]*([-+.0-9eE]+)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
_QUBO_COMMENT = re.compile(rb"^[ \t]*c(?:[ \t].*)?$", re.MULTILINE)
_PROGRAM = re.compile(rb"\s*p[ \t]+qubo[ \t]+(\S+)[ \t]+")


def read_coo(path: str | os.PathLike[str], vartype: str | None = None, first: int = 0) -> GraphMRF:
    """The model of a COO file: lines ``i i bias`` and ``i j bias``, and comments that begin with ``#``.

    Parameters
    ----------
    path : path of the file
    vartype : {"SPIN", "BINARY"}, optional
        Whether labels stand for -1 and 1 or for 0 and 1. Needed where no line ``# vartype=SPIN`` tells.
    first : int
        The number of the first site: 1 for files that count from 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.coo")
    ...     _ = path.write_text("# vartype=SPIN\\n0 0 0.5\\n0 1 -2\\n")
    ...     mrf = treefield.io.read_coo(path)
    >>> mrf.energy([0, 0]), mrf.energy([1, 0])
    (-2.5, 2.5)
    """
    if vartype is not None:
        as_choice(vartype, "vartype", VARTYPES)
    as_count(first, "first")
    path = as_input_path(path)
    with explain_read_errors(path, "a COO model"):
        comments = _Comments()
        cursor = Cursor(lambda: comments.stripped(path, _COMMENT))
        rows = cursor.read_up_to(sys.maxsize)
        kinds = comments.vartypes | ({vartype} if vartype else set())
        if len(kinds) != 1 or not kinds <= set(VARTYPES):
            came = f"it says {' and '.join(sorted(kinds))}" if kinds else "no line # vartype=SPIN or BINARY tells"
            raise ValueError(f'{came}; give vartype="SPIN" (labels are -1, 1) or "BINARY" (0, 1)')
        if len(rows) % 3:
            raise ValueError(f"it has {len(rows)} numbers, expected three in each line: two sites and a number")
        return _triplets(cursor, rows, kinds.pop(), first, None, comments.offset).to_graph()


def write_coo(path: str | os.PathLike[str], mrf: GraphMRF, *, vartype: str = "SPIN", force: bool = False) -> None:
    """Write a model of two labels as a COO file; packed if the path ends in .gz or .xz.

    A constant goes into a comment, ``# offset=``, which `read_coo` reads and dimod passes over.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.coo")
    ...     treefield.io.write_coo(path, tf.GraphMRF([[0, 1], [0, 3]], [(0, 1)], tf.Potts(4)), vartype="BINARY")
    ...     print(path.read_text())
    # vartype=BINARY
    0 0 5
    1 1 7
    0 1 -8
    <BLANKLINE>
    """
    as_choice(vartype, "vartype", VARTYPES)
    path = as_path(path)
    model = as_writable_form(mrf, vartype, path)
    head = [f"# vartype={vartype}\n"] + ([f"# offset={format_number(model.offset)}\n"] if model.offset else [])
    write_text(path, [*head, *_linear(model, np.arange(mrf.size)), *_edges(model, mrf.edges)], force=force)


def read_qubo(path: str | os.PathLike[str]) -> GraphMRF:
    """The model of a .qubo file, the format of qbsolv; label 1 stands for 1.

    The file has comments ``c``, a line ``p qubo 0 sites diagonals elements``, then ``i i weight`` for the diagonal and
    ``i j weight`` for the others.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.qubo")
    ...     _ = path.write_text("c small\\np qubo 0 2 1 1\\n0 0 -3\\n0 1 2.5\\n")
    ...     mrf = treefield.io.read_qubo(path)
    >>> mrf.energy([1, 0]), mrf.energy([1, 1])
    (-3.0, -0.5)
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a QUBO model"):
        comments = _Comments()
        cursor = Cursor(lambda: _without_program(comments.stripped(path, _QUBO_COMMENT)))
        size = cursor.read_integer("the number of sites", 1)
        lines = [cursor.read_integer(f"the number of {name}", 0) for name in ("diagonals", "elements")]
        rows = cursor.read_floats(3 * sum(lines), f"its {lines[0]} diagonals and {lines[1]} elements")
        cursor.check_finished(f"{lines[0]} diagonals and {lines[1]} elements are")
        model = _triplets(cursor, rows, "BINARY", 0, cursor.as_site_count(size), comments.offset)
        if len(model.quadratic) != lines[1]:
            raise ValueError(f"it has {len(model.quadratic)} elements, but says {lines[1]}")
        return model.to_graph()


def write_qubo(path: str | os.PathLike[str], mrf: GraphMRF, *, force: bool = False) -> None:
    """Write a model of two labels as a .qubo file; packed if the path ends in .gz or .xz.

    A constant goes into a comment, ``c offset``, which `read_qubo` reads and other programs pass over.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.qubo")
    ...     treefield.io.write_qubo(path, tf.GraphMRF([[0, 1], [0, 3]], [(0, 1)], tf.Potts(4)))
    ...     print(path.read_text())
    p qubo 0 2 2 1
    0 0 5
    1 1 7
    0 1 -8
    <BLANKLINE>
    """
    path = as_path(path)
    model = as_writable_form(mrf, "BINARY", path)
    there = np.flatnonzero(model.linear)
    head = [f"c offset {format_number(model.offset)}\n"] if model.offset else []
    head.append(f"p qubo 0 {mrf.size} {len(there)} {len(model.quadratic)}\n")
    write_text(path, [*head, *_linear(model, there), *_edges(model, np.sort(mrf.edges, axis=1))], force=force)


class _Comments:
    """The comments of a file, which give the vartype and the constant."""

    def __init__(self) -> None:
        self.vartypes: set[str] = set()
        self.offset = 0.0

    def stripped(self, path: pathlib.Path, comment: re.Pattern[bytes]) -> Iterator[bytes]:
        """Yield the text without its comments, with every line break kept."""
        for block in read_blocks(path, end_of_last_line):
            self.vartypes |= {name.decode().upper() for name in _VARTYPE.findall(block)}
            for word in _OFFSET.findall(block):
                try:
                    self.offset = float(word)
                except ValueError:
                    raise ValueError(f"its offset is {word[:24].decode()!r}, expected a number") from None
            yield comment.sub(b"", block)


def _without_program(text: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of a .qubo file from the number of sites on; line breaks take the place of what is before it."""
    for block in text:
        if block.strip():
            head = _PROGRAM.match(block)
            if head is None:
                break
            if head[1] not in (b"0", b"unconstrained"):
                raise ValueError(f"its topology is {head[1][:20].decode('latin-1')!r}, expected 0 (unconstrained)")
            yield b"\n" * block.count(10, 0, head.end()) + block[head.end() :]
            yield from text
            return
        yield block
    raise ValueError("its first line that is no comment must be: p qubo 0 sites diagonals elements")


def _triplets(
    cursor: Cursor, numbers: np.ndarray, vartype: str, first: int, size: int | None, offset: float
) -> QuadraticForm:
    """Lines of two sites and a bias, the numbers that the cursor read last."""
    rows = numbers.reshape(-1, 3)
    sites = rows[:, :2] - first
    high = 2**31 if size is None else size
    good = ((sites >= 0) & (sites < high) & is_integral(sites)).all(axis=1) & np.isfinite(rows[:, 2])
    if not good.all():
        place = cursor.place(3 * (len(rows) - int(np.argmin(good))))
        limit = f"at least {first}" if size is None else f"{first} to {size + first - 1}"
        raise ValueError(f"the line at {place} must be two sites, {limit}, and a number")
    size = cursor.as_site_count(int(sites.max(initial=-1)) + 1) if size is None else size
    pairs = sites.astype(np.int64)
    own = pairs[:, 0] == pairs[:, 1]
    linear = np.zeros(size)
    np.add.at(linear, pairs[own, 0], rows[own, 2])
    return QuadraticForm(vartype, linear, pairs[~own], rows[~own, 2], offset)


def _linear(model: QuadraticForm, sites: np.ndarray) -> list[str]:
    """A line for the bias of each of the sites."""
    return _lines(np.stack([sites, sites], axis=1), model.linear[sites])


def _edges(model: QuadraticForm, edges: np.ndarray) -> list[str]:
    """A line for the bias of each edge."""
    return _lines(edges, model.quadratic)


def _lines(pairs: np.ndarray, biases: np.ndarray) -> list[str]:
    """Lines of two sites and a bias, without an exponent, which some programs do not read."""
    rows = zip(pairs.tolist(), biases.tolist(), strict=True)
    return [f"{i} {j} {format_number(bias, exponent=False)}\n" for (i, j), bias in rows]

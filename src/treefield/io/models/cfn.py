"""CFN files, toulbar2's format of decimal costs: JSON, with more freedom."""

from __future__ import annotations

import math
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.io.files import explain_read_errors
from treefield.io.models.cfn_words import OPEN, Words, unquote
from treefield.io.models.factors import MOST_SITES, Factors, as_writable_graph
from treefield.io.models.number_text import format_number
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.io.text import parse_numbers, write_text
from treefield.models.graph import GraphMRF
from treefield.validation import as_count as checked_count

_MOST_TAGS = 1000  # words that describe a problem
_INTEGERS = 2**62  # toulbar2 counts in integers up to this


def read_cfn(path: str | os.PathLike[str]) -> GraphMRF:
    """The model of a CFN file, as JSON or in toulbar2's freer spelling; also packed, as .cfn.gz or .cfn.xz.

    ``mustbe`` gives the direction, an upper bound for ``<`` and a lower one for ``>``, and the number of decimals to
    which costs are cut. Costs that reach the bound whatever the others are become forbidden. A file that maximises is
    negated: energies are minimised. Functions are tables, full or with a ``defaultcost``, or the name of a later
    function; those with a ``type`` are refused. Those of three and more sites become auxiliary sites, see `read_uai`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.cfn")
    ...     _ = path.write_text('''{problem: {name: small, mustbe: "<10.0"}, variables: {a: [no, yes], b: 2},
    ...         functions: {f: {scope: [a, b], defaultcost: 0.5, costs: [no, 0, 2.5, yes, 1, 10]}}}''')
    ...     mrf = treefield.io.read_cfn(path)
    >>> mrf.edge_costs(0)
    array([[2.5, 0.5],
           [0.5, inf]])
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a CFN model"):
        return _Reader(path).factors().graph()


class _Reader:
    """The parts of a CFN file, read one after the other."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._words = Words(path)

    def factors(self) -> Factors:
        self._words.enter("the problem")
        self._words.tag(b"problem")
        self._problem()
        self._words.tag(b"variables")
        names, counts = self._variables()
        self._names = {name: site for site, (name, _) in enumerate(names) if name}
        self._values = [values for _, values in names]
        factors = Factors(self._path, np.array(counts, np.int64), name="function")
        self._words.tag(b"functions")
        self._words.enter("the functions")
        functions: list[dict[str, Any]] = []
        while not self._words.skip_closing():
            functions.append(self._function(factors, len(functions)))
        if not self._words.skip_closing():
            raise self._words.wrong("the end of the file's outer brackets")
        if not self._words.is_at_end():
            raise self._words.wrong("the end of the file")
        factors.words = self._words.read
        self._share(functions)
        self._add(factors, functions)
        return factors

    def _numbers(self, words: list[bytes], first: int, what: str) -> np.ndarray:
        """Words as costs; toulbar2 takes "inf", and numbers in quotes."""
        values = parse_numbers(b" ".join(words).replace(b'"', b""))
        if values is not None and len(values) == len(words) and not np.isnan(values).any():
            return values
        parsed = [parse_numbers(unquote(word)) for word in words]
        is_number = [value is not None and len(value) == 1 and not math.isnan(value[0]) for value in parsed]
        bad = first + is_number.index(False)
        raise ValueError(f"{what} holds {self._words.where(bad)}, which is no number")

    def _costs(self, words: list[bytes], first: int, what: str) -> np.ndarray:
        """Words as costs that are minimised, cut to the decimals."""
        return self._sign * _truncate_decimals(self._numbers(words, first, what), self._decimals)

    def _problem(self) -> None:
        words, first = self._words.items("the problem", _MOST_TAGS)
        bounds = [word for word in map(unquote, words) if re.fullmatch(rb"[<>][-+]?(\d+\.?\d*|\.\d+)", word)]
        if len(bounds) != 1:
            raise self._words.wrong('mustbe with a bound such as "<10.0" is', first)
        self._sign = 1 if bounds[0][:1] == b"<" else -1
        self._decimals = len(bounds[0].partition(b".")[2])
        self._bound = self._sign * float(bounds[0][1:])

    def _variables(self) -> tuple[list[tuple[bytes, dict[bytes, int]]], list[int]]:
        self._words.enter("the variables")
        names: list[tuple[bytes, dict[bytes, int]]] = []
        counts: list[int] = []
        seen = set()
        while not self._words.skip_closing():
            name = b""
            if self._words.peek() not in OPEN and not _is_number(self._words.peek()):
                name = self._words.next("the name of a variable is")
                if name in seen:
                    raise self._words.wrong("a name that no other variable has is", self._words.read - 1)
                seen.add(name)
            if self._words.peek() in OPEN:
                words, first = self._words.items("the values of a variable")
                values = {unquote(word): label for label, word in enumerate(words)}
                if not words or len(values) < len(words):
                    raise self._words.wrong("a list of values that all differ is", first)
                names.append((name, values))
                counts.append(len(words))
            else:
                word = self._words.next("the values of a variable, or their number, are")
                if not re.fullmatch(rb"[-+]?\d{1,9}", word) or int(word) == 0:
                    raise self._words.wrong("a list of values, or their number, is", self._words.read - 1)
                names.append((name, {}))
                counts.append(abs(int(word)))
        return names, counts

    def _function(self, factors: Factors, index: int) -> dict[str, Any]:
        name = b"" if self._words.peek() in OPEN else self._words.next("the name of a function is")
        what = f"function {name.decode('latin-1') or index}"
        self._words.enter(what)
        self._words.tag(b"scope")
        words, first = self._words.items(f"the scope of {what}", MOST_SITES)
        sites = [self._site(word, first + axis) for axis, word in enumerate(words)]
        scope = factors.as_scope(sites, name.decode("latin-1") or str(index))
        function: dict[str, Any] = {"name": name, "what": what, "scope": scope, "shape": factors.shape(scope)}
        if self._words.skip(b"type"):
            kind = self._words.next("a type is").decode("latin-1")
            raise ValueError(
                f"{what} is a {kind[:30]!r} at {self._words.where(self._words.read - 1)}; only tables of costs are read"
            )
        if self._words.skip(b"defaultcost"):
            word = self._words.next("a default cost is")
            function["default"] = float(self._costs([word], self._words.read - 1, what)[0])
        self._words.tag(b"costs")
        if self._words.peek() in OPEN:
            most = sys.maxsize if "default" in function else math.prod(function["shape"])
            words, first = self._words.items(f"the costs of {what}", most)
            self._table(function, words, first)
            function["lowest"] = float(function["costs"].min(initial=math.inf))
        else:
            function["like"] = self._words.next("costs, or the name of a function, are")
        if not self._words.skip_closing():
            raise self._words.wrong(f"the end of {what} is")
        return function

    def _site(self, word: bytes, index: int) -> int:
        word = unquote(word)
        if word in self._names:
            return self._names[word]
        if re.fullmatch(rb"\d{1,9}", word) and int(word) < len(self._values):
            return int(word)
        raise self._words.wrong("the name or the number of a variable is", index)

    def _table(self, function: dict[str, Any], words: list[bytes], first: int) -> None:
        scope, shape, what = function["scope"], function["shape"], function["what"]
        if "default" not in function:
            count = math.prod(shape)
            if len(words) != count:
                came = len(words) if len(words) < count else f"more than {count}"
                raise ValueError(
                    f"{what} has {came} costs at {self._words.where(first)}, but its sites have {count} assignments"
                )
            function["costs"] = self._costs(words, first, what)
            return
        width = len(scope) + 1
        if len(words) % width:
            raise ValueError(f"{what} has {len(words)} words at {self._words.where(first)}, expected {width} per tuple")
        function["costs"] = self._costs(words[width - 1 :: width], first, what)
        labels = np.empty((len(words) // width, len(scope)), np.int64)
        for axis, site in enumerate(scope):
            values = self._values[site]
            for row, word in enumerate(words[axis::width]):
                label = values.get(unquote(word))
                if label is None and re.fullmatch(rb"\d{1,9}", unquote(word)):
                    label = int(unquote(word))
                if label is None or label >= shape[axis]:
                    raise self._words.wrong(f"a value of its variable, in {what}, is", first + row * width + axis)
                labels[row, axis] = label
        function["labels"] = labels

    def _share(self, functions: list[dict[str, Any]]) -> None:
        """Give functions the costs of the later ones that they name."""
        later: dict[bytes, dict[str, Any]] = {}
        for function in reversed(functions):
            if "like" in function:
                other = later.get(function["like"])
                if other is None or other["shape"] != function["shape"]:
                    why = "none of that name comes later" if other is None else "their numbers of labels differ"
                    raise ValueError(f"{function['what']} has the costs of {function['like'].decode('latin-1')}: {why}")
                function |= {key: other[key] for key in ("default", "labels", "costs", "lowest") if key in other}
            if function["name"]:
                later[function["name"]] = function

    def _add(self, factors: Factors, functions: list[dict[str, Any]]) -> None:
        """Add the functions, with costs forbidden where they reach the bound."""
        for function in functions:
            function["below"] = min(0.0, function["lowest"], function.get("default", 0.0))
            if function["below"] == -math.inf:
                raise ValueError(f"{function['what']} holds an infinite cost of the wrong sign")
        below = math.fsum(function["below"] for function in functions)
        for function in functions:
            forbidden = self._bound - (below - function["below"])
            costs = np.where(function["costs"] >= forbidden, math.inf, function["costs"])
            if "default" in function:
                default = math.inf if function["default"] >= forbidden else function["default"]
                if not function["scope"] and len(costs):
                    default = float(costs[-1])
                factors.add_sparse(function["scope"], default, function.get("labels", np.empty((0, 0))), costs)
            else:
                factors.add(function["scope"], costs)


def _is_number(word: bytes) -> bool:
    return re.fullmatch(rb"[-+]?\d+", unquote(word)) is not None


def _truncate_decimals(costs: np.ndarray, decimals: int) -> np.ndarray:
    """Costs without the decimals beyond, which toulbar2 does not read."""
    if decimals > 15:
        return costs
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = costs * 10.0**decimals
        exact = np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))
    return np.where(exact | ~np.isfinite(scaled), costs, np.trunc(scaled) / 10.0**decimals)


def write_cfn(path: str | os.PathLike[str], mrf: GraphMRF, *, decimals: int | None = None, force: bool = False) -> None:
    """Write a model as a CFN file; packed if the path ends in .gz or .xz.

    Parameters
    ----------
    path : path of the file
    mrf : GraphMRF
    decimals : int, optional
        The number of decimals to which costs are rounded. By default as many as the costs need, which is refused where
        toulbar2, which counts in 64-bit integers, could not hold them.
    force : bool
        Replace a file that is there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.cfn")
    ...     treefield.io.write_cfn(path, tf.GraphMRF([[0, 1.5], [2, 0]], [(0, 1)], tf.Potts(0.25)))
    ...     print(path.read_text())
    {"problem": {"name": "model", "mustbe": "<5.00"},
    "variables": {"x0": 2, "x1": 2},
    "functions": {
    "u0": {"scope": ["x0"], "costs": [0, 1.5]},
    "u1": {"scope": ["x1"], "costs": [2, 0]},
    "p0": {"scope": ["x0", "x1"], "costs": [0, 0.25, 0.25, 0]}
    }}
    <BLANKLINE>
    """
    path = as_path(path)
    mrf = as_writable_graph(mrf, path)
    if decimals is not None:
        checked_count(decimals, "decimals")
    names = [f"u{site}" for site in range(mrf.size)] + [f"p{edge}" for edge in range(len(mrf.edges))]
    scopes = [(site,) for site in range(mrf.size)] + [tuple(edge) for edge in mrf.edges.tolist()]
    tables = mrf.unaries + [mrf.edge_costs(edge) for edge in range(len(mrf.edges))]
    if mrf.offset:
        names, scopes, tables = [*names, "offset"], [*scopes, ()], [*tables, np.array([mrf.offset])]
    costs = [[_decimal(cost, decimals) for cost in table.ravel().tolist()] for table in tables]
    places = max((len(cost.partition(".")[2]) for table in costs for cost in table if cost), default=0)
    total = sum(float(np.abs(table[table < math.inf]).max(initial=0)) for table in tables)
    if 4 * (total + 2) * 10.0**places >= _INTEGERS:
        most = max(0, math.floor(math.log10(_INTEGERS / (4 * (total + 2)))))
        raise ValueError(
            f"cannot write {as_text(path)}: the costs have {places} decimals and may add up to {total:g}, more than "
            f"toulbar2's integers hold; give decimals={most} to round them, or scale them"
        )
    bound = math.floor(total) + 2
    write_text(path, _text(mrf, names, scopes, costs, bound, places), force=force)


def _decimal(cost: float, decimals: int | None) -> str:
    """A cost without an exponent; nothing for a forbidden one."""
    return "" if cost == math.inf else format_number(cost, exponent=False, decimals=decimals)


def _text(
    mrf: GraphMRF, names: list[str], scopes: list, costs: list[list[str]], bound: int, places: int
) -> Iterator[str]:
    point = f".{'0' * places}" if places else ""
    yield f'{{"problem": {{"name": "model", "mustbe": "<{bound}{point}"}},\n"variables": {{'
    yield ", ".join(f'"x{site}": {count}' for site, count in enumerate(mrf.label_counts.tolist()))
    yield '},\n"functions": {\n'
    forbidden = str(3 * bound)  # negative costs elsewhere cannot make up for it
    for index, (scope, table) in enumerate(zip(scopes, costs, strict=True)):
        sites = ", ".join(f'"x{site}"' for site in scope)
        text = ", ".join([cost or forbidden for cost in table])
        end = "\n" if index == len(scopes) - 1 else ",\n"
        yield f'"{names[index]}": {{"scope": [{sites}], "costs": [{text}]}}{end}'
    yield "}}\n"

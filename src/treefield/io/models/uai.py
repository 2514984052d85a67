"""UAI files, the format of the competitions of that name, and what goes with them: evidence and MPE answers."""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from treefield.io.files import explain_read_errors
from treefield.io.models.cursor import Cursor
from treefield.io.models.factors import Factors, as_writable_graph, count_own_sites
from treefield.io.models.number_text import format_numbers
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.io.text import read_blocks, write_text
from treefield.models.graph import GraphMRF
from treefield.validation import as_choice

VALUES = ("potential", "log", "cost")
_STEEPEST = 690.0  # costs beyond this have potentials beyond 1e300, or below 1e-300
_PER_SITE = 500.0  # how much of a constant one site's potentials take


def read_uai(
    path: str | os.PathLike[str],
    evidence: str | os.PathLike[str] | Mapping[int, int] | None = None,
    values: str = "potential",
) -> GraphMRF:
    """The model of a UAI file, MARKOV or BAYES; also packed, as .uai.gz or .uai.xz.

    Parameters
    ----------
    path : path of the file
    evidence : path of an .evid file, or a mapping from sites to labels, optional
        The labels that are known. The others of these sites are forbidden; sites and labels keep their numbers.
    values : {"potential", "log", "cost"}
        The values in the tables: potentials p, of which the energy is -log p and 0 is forbidden; natural logarithms of
        them; or costs.

    Returns
    -------
    GraphMRF
        With the file's sites first. Factors of three and more sites become auxiliary sites behind them;
        ``mrf.auxiliary`` tells how many.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai")
    ...     _ = path.write_text("MARKOV 2  2 3  1  2 0 1  6  1 1 1  1 1 0.5")
    ...     treefield.io.read_uai(path)
    GraphMRF(sites=2, edges=1, labels=2..3, pairwise=tables of their own)
    """
    as_choice(values, "values", VALUES)
    path = as_input_path(path)
    with explain_read_errors(path, "a UAI model"):
        factors = _read_factors(path, values)
        known = evidence if isinstance(evidence, Mapping) else {}
        _fix(factors, known, "evidence")
    if evidence is not None and not isinstance(evidence, Mapping):
        evidence = as_input_path(evidence)
        with explain_read_errors(evidence, f"evidence for {as_text(path)}"):
            _fix(factors, read_evidence(evidence), "it")
    with explain_read_errors(path, "a UAI model"):
        return factors.graph()


def read_evidence(path: str | os.PathLike[str]) -> dict[int, int]:
    """The labels that an .evid file gives, by their sites.

    Both layouts are understood: the number of known sites, then site and label of each; and the same after a first
    line with the number of samples, which must be one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treefield.io import read_evidence
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.evid")
    ...     _ = path.write_text("2 0 1 7 0")
    ...     read_evidence(path)
    {0: 1, 7: 0}
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a file of evidence"):
        cursor = Cursor(lambda: read_blocks(path))
        head = cursor.as_integers(cursor.read_up_to(2), "evidence", 0)
        rest = cursor.read_up_to(2 * int(head.max(initial=0)) + 1)  # one too many shows that there are more
        numbers = np.append(head, cursor.as_integers(rest, "evidence", 0))
        if len(numbers) == 0 or (len(numbers) == 1 and numbers[0] == 0):
            return {}
        if len(numbers) > 1 and len(numbers) != 1 + 2 * numbers[0]:
            if numbers[0] > 1 and len(numbers) > 1 + 2 * numbers[0]:
                raise ValueError(f"it holds {numbers[0]} samples, expected one")
            if numbers[0] == 1 or (numbers[0] == 0 and len(numbers) == 2 and numbers[1] == 0):
                numbers = numbers[1:]
        if len(numbers) != 1 + 2 * numbers[0]:
            more = f"at least {len(numbers) - 1}" if not cursor.is_at_end else str(len(numbers) - 1)
            raise ValueError(
                f"it says that {numbers[0]} sites are known, but {more} numbers follow, expected "
                f"{2 * numbers[0]}: site and label of each"
            )
        known: dict[int, int] = {}
        for site, label in numbers[1:].reshape(-1, 2).tolist():
            if known.setdefault(site, label) != label:
                raise ValueError(f"it gives site {site} the labels {known[site]} and {label}")
        return known


def write_uai(path: str | os.PathLike[str], mrf: GraphMRF, *, values: str = "potential", force: bool = False) -> None:
    """Write a model as a UAI file; packed if the path ends in .gz or .xz.

    Parameters
    ----------
    path : path of the file
    mrf : GraphMRF
    values : {"potential", "log", "cost"}
        The values in the tables, see `read_uai`. Potentials have 12 digits, and their energies as many; logarithms and
        costs are exact. Costs that differ by more than 690 in one table have no potentials, and are refused.
    force : bool
        Replace a file that is there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai")
    ...     treefield.io.write_uai(path, tf.GraphMRF([[0, 1], [2, 0]], [(0, 1)], tf.Potts(1)), values="cost")
    ...     print(path.read_text())
    MARKOV
    2
    2 2
    3
    1 0
    1 1
    2 0 1
    <BLANKLINE>
    2
    0 1
    <BLANKLINE>
    2
    2 0
    <BLANKLINE>
    4
    0 1 1 0
    <BLANKLINE>
    """
    as_choice(values, "values", VALUES)
    path = as_path(path)
    mrf = as_writable_graph(mrf, path)
    unaries = [costs.copy() for costs in mrf.unaries]
    tables = [mrf.edge_costs(edge) for edge in range(len(mrf.edges))]
    scopes = [(site,) for site in range(mrf.size)] + [tuple(edge) for edge in mrf.edges.tolist()]
    costs = unaries + tables
    if values == "potential":
        texts = _potentials(path, costs, mrf.size, mrf.offset)
    else:
        if mrf.offset:
            scopes.append(())
            costs.append(np.array([mrf.offset]))
        sign = -1 if values == "log" else 1
        texts = [format_numbers(sign * table + 0.0) for table in costs]
    write_text(path, _text(mrf, scopes, costs, texts), force=force)


def write_mpe(path: str | os.PathLike[str], x: ArrayLike, *, force: bool = False) -> None:
    """Write a labelling as the answer of an MPE task: MPE, the number of sites, their labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treefield.io import read_mpe, write_mpe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.MPE")
    ...     write_mpe(path, [0, 2, 1])
    ...     path.read_text(), read_mpe(path)
    ('MPE\\n3 0 2 1\\n', array([0, 2, 1], dtype=int32))
    """
    x = np.asarray(x)
    if x.ndim != 1 or x.dtype.kind not in "ui" or (x.size and x.min() < 0):
        raise ValueError(f"x must be a labelling of a graph, (sites,) integers, got {x.dtype} of shape {x.shape}")
    write_text(path, [f"MPE\n{len(x)} {' '.join(map(str, x.tolist()))}".rstrip() + "\n"], force=force)


def read_mpe(path: str | os.PathLike[str]) -> np.ndarray:
    """The labelling of a file that `write_mpe`, or another solver, wrote; of several answers the last.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treefield.io import read_mpe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.MPE")
    ...     _ = path.write_text("MPE 2 0 0 2 1 0")
    ...     read_mpe(path)
    array([1, 0], dtype=int32)
    """
    path = as_input_path(path)
    with explain_read_errors(path, "an answer of an MPE task"):
        cursor = Cursor(lambda: read_blocks(path))
        if cursor.read_first_word() != "MPE":
            raise ValueError("it does not begin with MPE")
        answer = None
        while not cursor.is_at_end:
            size = cursor.read_integer("the number of sites", 0)
            answer = cursor.read_integers(size, "labels", 0, 2**31 - 1)
        if answer is None:
            raise ValueError("it holds no answer")
        return answer.astype(np.int32)


def _read_factors(path: pathlib.Path, values: str) -> Factors:
    cursor = Cursor(lambda: read_blocks(path))
    kind = cursor.read_first_word()
    if kind not in ("MARKOV", "BAYES"):
        raise ValueError(f"it begins with {kind[:20]!r}, expected MARKOV or BAYES")
    size = cursor.read_integer("the number of sites", 1)
    factors = Factors(path, cursor.read_integers(size, "numbers of labels", 1, 2**31 - 1))
    scopes = []
    total = cursor.read_integer("the number of factors", 0)
    for index in range(total):
        arity = cursor.read_integer(f"the arity of factor {index} of {total}", 0, size)
        what = f"the sites of factor {index}"
        sites = [cursor.read_integer(what, 0, size - 1) for _ in range(arity)]
        scopes.append(factors.as_scope(sites, str(index)))
    for index, scope in enumerate(scopes):
        count = cursor.read_integer(f"the number of entries of factor {index}", 0)
        expected = math.prod(factors.shape(scope))
        if count != expected:
            raise ValueError(
                f"factor {index} has {count} entries at {cursor.place()}, but its sites {list(scope)[:8]} have "
                f"{expected} assignments"
            )
        entries = cursor.read_floats(count, f"the entries of factor {index}")
        factors.words = cursor.words
        factors.add(scope, _costs(entries, values, cursor, index))
    cursor.check_finished(f"{total} factors are")
    return factors


def _costs(entries: np.ndarray, values: str, cursor: Cursor, index: int) -> np.ndarray:
    """Costs of a factor's entries, or an error that names the one that has none."""
    if values == "potential":
        good = (entries >= 0) & (entries < math.inf)
    else:
        good = entries < math.inf if values == "log" else entries > -math.inf
    if not good.all():
        hint = "; are these logarithms or costs?" if values == "potential" else ""
        place = cursor.place(len(entries) - int(np.argmin(good)))
        raise ValueError(f"the entry at {place}, of factor {index}, is no {values}{hint}")
    if values == "cost":
        return entries
    with np.errstate(divide="ignore"):
        return (-np.log(entries) if values == "potential" else -entries) + 0.0


def _fix(factors: Factors, known: Mapping[int, int], what: str) -> None:
    """Forbid what the evidence rules out."""
    for site, label in known.items():
        if not 0 <= site < len(factors.label_counts):
            raise ValueError(f"{what} names site {site}, but sites are 0 to {len(factors.label_counts) - 1}")
        count = int(factors.label_counts[site])
        if not 0 <= label < count:
            raise ValueError(f"{what} gives site {site} the label {label}, but its labels are 0 to {count - 1}")
        factors.add_sparse((int(site),), math.inf, np.array([[label]]), np.zeros(1))


def _potentials(path: pathlib.Path, costs: list[np.ndarray], size: int, constant: float) -> list[str]:
    """Tables of costs as texts of potentials; what is too large for one goes to the sites, as the constant does."""
    costs = [table.copy() for table in costs]
    for index, table in enumerate(costs):
        allowed = table[table < math.inf]
        if allowed.size and max(abs(allowed.min()), abs(allowed.max())) > _STEEPEST:
            costs[index] = table - allowed.min()
            constant += float(allowed.min())
    takers = [index for index in range(size) if (costs[index] < math.inf).any()]
    shares = min(max(1, math.ceil(abs(constant) / _PER_SITE)), len(takers))
    for index in takers[:shares]:
        costs[index] += constant / shares
    texts = []
    for table in costs:
        allowed = table[table < math.inf]
        steepest = float(np.abs(allowed).max()) if allowed.size else 0.0
        if not steepest <= _STEEPEST:
            raise ValueError(
                f"cannot write {as_text(path)}: a cost of {steepest:g} has no potential that a float holds; "
                'give values="log" or values="cost"'
            )
        texts.append(" ".join([f"{value:.12g}" for value in np.exp(-table).ravel().tolist()]))
    return texts


def _text(mrf: GraphMRF, scopes: list, costs: list[np.ndarray], texts: list[str]) -> Iterator[str]:
    labels = " ".join(map(str, mrf.label_counts[: count_own_sites(mrf)].tolist()))
    yield f"MARKOV\n{mrf.size}\n{labels}\n{len(scopes)}\n"
    for scope in scopes:
        yield " ".join(map(str, (len(scope), *scope))) + "\n"
    for table, text in zip(costs, texts, strict=True):
        yield f"\n{table.size}\n{text}\n"

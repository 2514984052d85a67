"""The best we have, in one call."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from treefield.results import MAPResult
from treefield.solvers.auto import search_auto
from treefield.solvers.elimination import eliminated
from treefield.solvers.run import checked_limits
from treefield.solvers.start import check_start
from treefield.solvers.tiles import by_tiles
from treefield.solvers.tree_bp import tree_bp
from treefield.trees.forests import CycleError
from treefield.validation import as_byte_count, as_choice, as_generator, check_model, is_tiled, thread_count

METHODS = ("auto", "anneal", "genetic", "icm", "loopy_bp", "scan_line", "t_icm", "t_ils", "tree_bp", "trw")

_TOL = 1e-4
_LABELLINGS = 12  # of 4 bytes a site: those of the search, and what merging two of them needs


def minimize(
    mrf: Any,
    x0: Any = None,
    *,
    method: str = "auto",
    time_limit: float | None = None,
    tol: float | None = None,
    maxiter: int | None = None,
    patience: int | None = None,
    memory_limit: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    progress: bool = False,
    threads: int | None = None,
    **options: Any,
) -> MAPResult:
    """Minimise the energy by the best means there are, and say how good the answer is.

    With ``method="auto"`` a tree is solved exactly at once, and so is a graph of small treewidth. Otherwise two
    searches work side by side: tree-reweighted messages give a lower bound and suggest labellings (as `trw`), and T-ILS
    improves them (`t_ils` with mixed jumps, accepted component by component). Where the bound does not come closer and
    its suggestions do not help, as on frustrated spin glasses, the time goes to T-ILS. The result holds the lower bound
    and the gap: a proof of how far the energy can be from the least one.

    Parameters
    ----------
    mrf : GridMRF, GraphMRF or TiledMRF
        The last is searched tile by tile, by "auto", "t_icm" or "t_ils": the limits but for the time are for each tile.
    x0 : labelling, "random", "unary" or "scan-line", optional
        Where to start; the default is the method's own, for "auto" each site's best label.
    method : str
        "auto", or the name of a solver: "anneal", "genetic", "icm", "loopy_bp", "scan_line", "t_icm", "t_ils",
        "tree_bp" or "trw". These also take their own keywords.
    time_limit : float, optional
        Seconds, compilation left out.
    tol : float, optional
        Stop when the gap, (fun - lower_bound) / max(|fun|, |lower_bound|), is at most this: by default 1e-4. 0 goes on
        until the energy is proved to be the least. For "auto" and "trw".
    maxiter, patience : int, optional
        The largest number of rounds of "auto", and of rounds without a new best. If neither is given, "auto" stops when
        it has long gained nothing.
    memory_limit : int or str, optional
        Bytes, or text such as "500 MB", that may be used beside the model: without room for the dual (`trw`) "auto"
        is T-ILS alone, without a bound; without room for packed costs, T-ILS in little memory.
    callback, rng, progress, threads
        As in `t_ils`; called once on a tree. The same seed gives the same answer for any number of threads; two are of
        use.

    Returns
    -------
    MAPResult
        Ctrl-C and SIGTERM return the best so far. Memory: that of `trw` and of `t_icm`, and a few labellings.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).integers(0, 50, (16, 16, 4)), tf.Potts(10))
    >>> res = tf.minimize(mrf, rng=0)
    >>> res.message, bool(res.gap <= 1e-4)
    ('converged: proved optimal', True)
    >>> tf.minimize(mrf, method="icm", rng=0).fun >= res.fun
    True
    """
    check_model(mrf, tiles=True)
    as_choice(method, "method", METHODS)
    given: dict[str, Any] = {"maxiter": maxiter, "time_limit": time_limit, "patience": patience, "callback": callback}
    if method != "auto":
        given |= {"x0": x0, "tol": tol, "memory_limit": memory_limit, "rng": rng, "threads": threads}
        return _named(method, mrf, given | {"progress": progress or None}, options)
    if options:
        raise TypeError(f'method="auto" takes no {next(iter(options))}; name a method that does: method="t_ils"')
    limits = checked_limits(**given, progress=progress, tol=_TOL if tol is None else tol)
    thread_count(threads)
    rng = as_generator(rng)
    if is_tiled(mrf):
        if memory_limit is not None:
            raise ValueError("a TiledMRF has its own memory_limit: give it when the model is created")
        return by_tiles(
            "auto",
            mrf,
            x0,
            rng,
            limits,
            {name: given[name] for name in ("maxiter", "patience")} | {"tol": tol, "threads": threads},
        )
    check_start(mrf, x0)
    limit = None if memory_limit is None else as_byte_count(memory_limit, "memory_limit")
    if mrf.has_few_edges and (limit is None or mrf.tree_bytes <= limit):
        with contextlib.suppress(CycleError):
            return _told(tree_bp(mrf), callback)
    exact = eliminated(mrf, limits["time_limit"], limit)
    if exact is not None:
        return _told(exact, callback)
    memory, arithmetic = _what_fits(mrf, limit)
    return search_auto(mrf, "unary" if x0 is None else x0, rng, limits, threads, memory, arithmetic)


def _told(result: MAPResult, callback: Callable[[MAPResult], Any] | None) -> MAPResult:
    """An exact answer, of which the callback knows."""
    if callback is not None:
        with contextlib.suppress(StopIteration):
            callback(result)
    return result


def _named(method: str, mrf: Any, given: dict[str, Any], options: dict[str, Any]) -> MAPResult:
    """Call a solver with what it takes, and refuse what it does not."""
    given = {name: value for name, value in given.items() if value is not None} | options
    names = takes(method)
    for name in given:
        if name not in names:
            raise TypeError(f"method={method!r} takes no {name}; it takes {', '.join(names) or 'nothing'}")
    return _solver(method)(mrf, **given)


def _solver(method: str) -> Callable[..., MAPResult]:
    return getattr(importlib.import_module(f"treefield.solvers.{method}"), method)


def takes(method: str) -> list[str]:
    """The keywords that a method takes."""
    as_choice(method, "method", METHODS)
    parameters = inspect.signature(minimize if method == "auto" else _solver(method)).parameters
    return [name for name in parameters if name not in ("mrf", "method", "options")]


def _what_fits(mrf: Any, limit: int | None) -> tuple[str, str | None]:
    """The tree set and the arithmetic of the dual that fit into `limit` bytes."""
    if limit is None:
        return "auto", "auto"
    for what, need in mrf.search_bytes().items():
        if need + _LABELLINGS * 4 * mrf.size <= limit:
            return what
    needs = need + _LABELLINGS * 4 * mrf.size
    raise ValueError(f"memory_limit = {limit} bytes is too little: a search of this model needs about {needs} bytes")

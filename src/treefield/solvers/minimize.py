"""The best we have, in one call."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Unpack

from treefield.errors import CycleError
from treefield.protocols import Callback, Model, Seed, StartOrResult, TiledModel
from treefield.results import MAPResult, Status
from treefield.solvers.auto import search_auto
from treefield.solvers.checkpoint import as_checkpoint_path
from treefield.solvers.loop import Timer, as_limits
from treefield.solvers.run import Run, check_start, exact_bound, split_start
from treefield.solvers.solver_keywords import MethodKeywords
from treefield.solvers.tree_bp import tree_bp
from treefield.validation import as_byte_count, as_choice, as_generator, as_model, as_thread_count, check_keywords

METHODS = ("auto", "anneal", "genetic", "icm", "loopy_bp", "scan_line", "t_icm", "t_ils", "tree_bp", "trw")

_TOL = 1e-4
_ENTRIES = 2.0**30  # of all tables of an elimination: one or two seconds
_ENTRIES_PER_SECOND = 2.0**28  # fewer than most machines manage
_ELIMINATION_BYTES = 2**31  # without a memory_limit
LABELLINGS = 12  # of 4 bytes a site: those of the search, and what merging two of them needs


def minimize(
    mrf: Model | TiledModel,
    x0: StartOrResult = "unary",
    *,
    method: str = "auto",
    time_limit: float | None = None,
    tol: float | None = None,
    maxiter: int | None = None,
    patience: int | None = None,
    memory_limit: float | str | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    keep_messages: bool = False,
    **options: Unpack[MethodKeywords],
) -> MAPResult:
    """Minimise the energy by the best means there are, and say how good the answer is.

    With ``method="auto"`` a tree is solved exactly at once, and so are graphs of small treewidth and narrow grids.
    Otherwise two searches work side by side: tree-reweighted messages give a lower bound and suggest labellings (as
    `trw`), and T-ILS improves them (`t_ils` with mixed jumps, accepted component by component, and where labels are few
    with ribbons or wide trees). Where the bound does not come closer and its suggestions do not help, as on frustrated
    spin glasses, the time goes to T-ILS. The result holds the lower bound and the gap: a proof of how far the energy
    can be from the least one.

    Parameters
    ----------
    mrf : GridMRF, GraphMRF or TiledMRF
        The last is searched tile by tile, by "auto", "t_icm" or "t_ils": the limits but for the time are for each tile.
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        Where to start: "unary" gives each site its cheapest label, "scan-line" solves each row without the others. A
        result stands for its labelling and, if it has them, for its messages: see `keep_messages`.
    method : str
        "auto", or the name of a solver: "anneal", "genetic", "icm", "loopy_bp", "scan_line", "t_icm", "t_ils",
        "tree_bp" or "trw". These also take their own keywords.
    time_limit : float, optional
        Seconds, compilation left out. One iteration is always made.
    tol : float, optional
        Stop when the gap, (fun - lower_bound) / max(|fun|, |lower_bound|), is at most this: by default 1e-4. With 0
        the search ends when the energy is proved optimal; for costs that are not integers, within the rounding of
        float64 sums. For "auto" and "trw".
    maxiter, patience : int, optional
        The largest number of rounds of "auto", and of rounds without a new best. If neither is given, "auto" stops when
        it has long gained nothing.
    memory_limit : int or str, optional
        Bytes, or text such as "500 MB", that may be used in addition to the model: without room for the dual (`trw`)
        "auto" is T-ILS alone, without a bound; without room for packed costs, T-ILS in little memory.
    callback, rng, progress, threads
        As in `t_ils`; the callback is called once on a tree. The same seed gives the same answer for any number of
        threads; "auto" has use for two.
    checkpoint : path, optional
        A file that is written every second or so; if it exists, the search resumes from it and ends bit for bit as if
        it had never stopped. It holds the messages of the dual, and is about as large as they are in memory. As in
        `t_ils`, a file of another model or search is refused and left unchanged. Exact answers need no file.
    keep_messages : bool
        For "auto" and "trw": keep the messages that give the bound as ``res.messages``, as large as they are in memory.
        ``minimize(changed, res)`` then starts from labelling and messages, and takes a small part of the first time
        where few costs have changed: the next frame of a film, another stroke. Its bound is proved for the new costs.
        Messages for other sites, labels or edges are not used. Exact answers have none.

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
    as_choice(method, "method", METHODS)
    if method != "auto":
        given: dict[str, object] = {"maxiter": maxiter, "time_limit": time_limit, "patience": patience, "tol": tol}
        given |= {"callback": callback, "rng": rng, "progress": progress or None, "threads": threads}
        given |= {"memory_limit": memory_limit, "checkpoint": checkpoint, "keep_messages": keep_messages or None}
        return _named(method, mrf, x0, given, options)
    check_method_keywords(method, options, "minimize", ("method",))
    gap = _TOL if tol is None else tol
    limits = as_limits(maxiter, time_limit, callback, patience, progress=progress, tol=gap)
    workers = as_thread_count(threads)
    generator = as_generator(rng)
    if isinstance(mrf, TiledModel):
        if memory_limit is not None:
            raise ValueError("a TiledMRF has its own memory_limit: give it when the model is created")
        if checkpoint is not None:
            raise ValueError("checkpoint is for models in memory; the labels of a TiledMRF are in its store")
        if keep_messages:
            raise ValueError("keep_messages is for models in memory; the messages of a TiledMRF are never all there")
        tile_options = {"maxiter": maxiter, "patience": patience, "tol": tol, "threads": threads}
        return mrf.search_tiles("auto", split_start(x0)[0], generator, limits, tile_options)
    backend = as_model(mrf).backend
    check_start(mrf, x0)
    path = None if checkpoint is None else as_checkpoint_path(checkpoint)
    limit = None if memory_limit is None else as_byte_count(memory_limit, "memory_limit")
    if backend.has_few_edges and (limit is None or backend.tree_bytes <= limit):
        with contextlib.suppress(CycleError):
            return _notify(tree_bp(mrf), callback)
    exact = solve_by_elimination(mrf, limits["time_limit"], limit, workers)
    if exact is not None:
        return _notify(exact, callback)
    memory, arithmetic = _what_fits(mrf, limit)
    room = math.inf if limit is None else limit - backend.search_bytes()[memory, arithmetic] - _labellings(mrf)
    return search_auto(
        mrf,
        x0,
        generator,
        limits,
        threads=threads,
        memory=memory,
        arithmetic=arithmetic,
        room=room,
        checkpoint=path,
        keep_messages=keep_messages,
    )


def solve_by_elimination(
    mrf: Model, time_limit: float | None, memory_limit: int | None, threads: int
) -> MAPResult | None:
    """The exact answer if its tables are small enough for a second or two of work and for the limits; else None."""
    timer = Timer()
    entries = min(_ENTRIES, math.inf if time_limit is None else time_limit * _ENTRIES_PER_SECOND)
    x = mrf.backend.eliminate(entries, _ELIMINATION_BYTES if memory_limit is None else memory_limit, threads)
    if x is None:
        return None
    run = Run("elimination", mrf, x, timer)
    run.stop(Status.CONVERGED, "exact: the sites were eliminated one after the other", proof="elimination")
    run.bound = exact_bound(mrf, run.energy)
    return run.result()


def _notify(result: MAPResult, callback: Callback | None) -> MAPResult:
    """An exact answer, after the callback has seen it."""
    if callback is not None:
        with contextlib.suppress(StopIteration):
            callback(result)
    return result


def _named(
    method: str, mrf: Model | TiledModel, x0: StartOrResult, given: dict[str, object], options: Mapping[str, object]
) -> MAPResult:
    """Call a solver with the keywords it takes, and raise for the others."""
    given = {name: value for name, value in given.items() if value is not None} | dict(options)
    names = takes(method)
    if "x0" in names or not (isinstance(x0, str) and x0 == "unary"):
        given["x0"] = x0
    check_keywords(given, f"method={method!r}", names)
    return _solver(method)(mrf, **given)


def _solver(method: str) -> Callable[..., MAPResult]:
    return getattr(importlib.import_module(f"treefield.solvers.{method}"), method)


def takes(method: str) -> list[str]:
    """The keywords that a method takes."""
    as_choice(method, "method", METHODS)
    parameters = inspect.signature(minimize if method == "auto" else _solver(method)).parameters
    return [name for name in parameters if name not in ("mrf", "method", "options")]


def check_method_keywords(method: str, given: Iterable[str], taker: str, own: Sequence[str]) -> None:
    """Raise a TypeError for a keyword that neither `taker` nor the method to which it passes them on takes."""
    names = takes(method)
    unknown = [name for name in given if name not in own and name not in names]
    for name in unknown if method == "auto" else ():
        able = next((each for each in ("t_ils", *METHODS) if name in takes(each)), None)
        if able is not None:
            raise TypeError(f'method="auto" takes no {name}; name a method that does: method="{able}"')
    if taker == "minimize":
        check_keywords(unknown, taker, [*own, *names])
    else:
        check_keywords(unknown, taker, own, names, "minimize" if method == "auto" else method)


def _labellings(mrf: Model) -> int:
    """The bytes of all labellings of a search."""
    return LABELLINGS * 4 * mrf.size


def _what_fits(mrf: Model, limit: int | None) -> tuple[str, str | None]:
    """The tree set and the arithmetic of the dual that fit into `limit` bytes."""
    if limit is None:
        return "auto", "exact"
    for what, need in mrf.backend.search_bytes().items():
        if need + _labellings(mrf) <= limit:
            return what
    needs = need + _labellings(mrf)
    raise ValueError(f"memory_limit = {limit} bytes is too little: a search of this model needs about {needs} bytes")

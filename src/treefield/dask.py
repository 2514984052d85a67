"""Dask: grids larger than memory and many searches at once, on any of its schedulers. Needs ``treefield[dask]``."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import sys
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treefield.models.pairwise import Potts
from treefield.models.tiled import LEAST, TiledMRF
from treefield.results import MAPResult
from treefield.solvers import seeds as many
from treefield.solvers import tile_tasks as work
from treefield.solvers.minimize import METHODS as SOLVERS
from treefield.solvers.minimize import takes
from treefield.solvers.progress import Bar
from treefield.solvers.run import Timer, checked_limits
from treefield.solvers.tiles import METHODS, STARTS, turns
from treefield.validation import as_callable, as_choice, as_count, as_generator, check_model, thread_count

try:
    import dask
    import dask.array as da
    import dask.callbacks

    from treefield.solvers.tile_graph import Graph
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('treefield.dask needs dask: pip install "treefield[dask]"', name="dask") from error

__all__ = ["Labelling", "energy", "minimize", "search"]

_ROUNDS = 4  # of "t_icm", where maxiter does not say
_ATTEMPTS = 3  # at searches of which all workers die
_OURS = ("x0", "rng", "callback", "progress", "checkpoint")  # what a tile's search is not told


class Labelling(NamedTuple):
    """What `minimize` finds, all of it lazy: ``dask.compute(*res)`` computes it at once. The bound is nan but for the
    method "auto" without a start."""

    x: Any
    fun: Any
    lower_bound: Any


def minimize(
    unary: Any,
    pairwise: Any,
    *,
    costs: Callable[[np.ndarray], Any] | None = None,
    labels: int | None = None,
    weights: Any = None,
    tile: Any = None,
    x0: Any = None,
    method: str = "auto",
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """A labelling of low energy of a grid of any size, as a Dask array.

    It is what `treefield.minimize` finds of a `TiledMRF` with the same tiles and the same seed, but boxes that do not
    touch are searched at the same time. Nothing is computed before Dask is asked to. Each box is one task, a pure
    function: whatever fails or dies, Dask may run it again with the same outcome.

    Parameters
    ----------
    unary : (M, N, L) or (P, M, N, L) array
        A Dask array, or anything that `dask.array.from_array` takes: NumPy, memmap, Zarr, HDF5. With `costs` an image,
        (M, N) or (P, M, N).
    pairwise : Potts, TruncatedLinear, TruncatedQuadratic, Table or function of two labels
    costs : function, optional
        ``costs(block)`` gives the costs of a block of the image, labels along a last axis. So only the image travels
        and is kept in memory; costs that are given are kept until the borders around them are searched.
    labels : int
        How many there are; with `costs`.
    weights : sequence, optional
        One number or array per axis, as in `TiledMRF`.
    tile : int or one for each axis, optional
        How many sites a tile has along each axis, about; default: the largest chunk along each. For each of its threads
        a worker needs the memory to search one: with 16 labels some 40 bytes per site and label for "auto", 10 for the
        others.
    x0 : array of labels, "random" or "unary", optional
    method : "auto", "t_ils" or "t_icm"
        "auto" and "t_ils" search all tiles, then what is around their borders. "t_icm" solves all tiles, then those
        half a tile aside, and so on, `maxiter` times in all, by default 4.
    rng : None, int or numpy.random.Generator
        The same seed gives the same answer on any scheduler, unless there is a `time_limit`.
    full_output : bool
        Whether to return the energy and its bound, too.
    **options
        Those of the method, for each tile, `time_limit` and `memory_limit` too. `threads` is 1: let a worker have as
        many threads as it has cores.

    Returns
    -------
    x : Dask array of the smallest integers that hold the labels
        Its chunks are the tiles.
    fun, lower_bound : Dask arrays without axes
        With `full_output`, as a `Labelling`. They share their tasks with `x`: compute them together.

    Notes
    -----
    Progress is what Dask shows: its dashboard (the tasks are treefield-tile and treefield-border),
    `distributed.progress` or `dask.diagnostics.ProgressBar`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, treefield as tf
    >>> from treefield.dask import minimize
    >>> noisy = np.random.default_rng(0).normal(np.indices((60, 60))[0] > 30, 0.4)
    >>> def costs(block):
    ...     return (block[..., None] - [0, 1]) ** 2
    >>> x = minimize(da.from_array(noisy, chunks=30), tf.Potts(0.5), costs=costs, labels=2, rng=0)
    >>> x
    dask.array<treefield-labels, shape=(60, 60), dtype=uint8, chunksize=(30, 30), chunktype=numpy.ndarray>
    >>> x[::12, 0].compute()
    array([0, 0, 0, 1, 1], dtype=uint8)
    """
    as_choice(method, "method of treefield.dask.minimize", METHODS)
    rounds, options = _checked_options(method, options)
    data = _as_dask(unary, "unary", labels_last=costs is None)
    mrf = _tiled(data, pairwise, costs, labels, weights, tile)
    start = _checked_start(x0, mrf)
    settings = work.Settings(mrf.pairwise, mrf.labels, costs, method, options, int(as_generator(rng).integers(2**63)))
    graph = Graph(mrf, data, settings, start, rounds)
    first, *borders = turns(mrf)
    if method == "auto" and start is None:
        graph.search_alone()
    else:
        graph.start("random" if start is None else start)
        if method == "t_icm":
            graph.descend(rounds)
        else:
            graph.turn(1, first)
    if method != "t_icm":
        for number, lots in enumerate(borders, 2):
            graph.turn(number, lots, "border")
    found = Labelling(graph.labels(), *graph.figures())
    return found if full_output else found.x


def energy(
    x: Any, unary: Any, pairwise: Any, *, costs: Callable[[np.ndarray], Any] | None = None, weights: Any = None
) -> Any:
    """The energy of a labelling in a Dask array, as a Dask array without axes; inf if a forbidden cost is in it.

    It is summed chunk by chunk of `x`; the rest is as in `minimize`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, treefield as tf
    >>> from treefield.dask import energy
    >>> unary = da.from_array(np.arange(32.0).reshape(4, 4, 2), chunks=(2, 2, 2))
    >>> float(energy(da.ones((4, 4), dtype=int, chunks=2), unary, tf.Potts(1)).compute())
    256.0
    """
    data = _as_dask(unary, "unary", labels_last=costs is None)
    x = _as_dask(x, "x")
    if x.dtype.kind not in "bui":
        raise TypeError(f"x must hold integer labels, got dtype {x.dtype}")
    sites = data.shape[: data.ndim - (costs is None)]
    if x.shape != sites:
        raise ValueError(f"x has shape {x.shape}, but the model's is {sites}")
    tile = [max(LEAST, *parts) for parts in x.chunks]
    if costs is None:
        mrf = _tiled(data, pairwise, None, None, weights, tile)
        settings = work.Settings(mrf.pairwise, mrf.labels)
    else:  # how many labels there are, a block of costs will tell
        mrf = _tiled(data, Potts(0), costs, 1, weights, tile)
        settings = work.Settings(pairwise, None, costs)
    graph = Graph(mrf, data, settings, x)
    graph.start(x)
    return graph.figures()[0]


def search(
    mrf: Any,
    *,
    seeds: int = 8,
    method: str = "t_ils",
    client: Any = None,
    rng: Any = None,
    progress: bool = False,
    **options: Any,
) -> MAPResult:
    """Search a model many times at once, each time with another seed, and merge what is found.

    Labellings are merged two by two, component by component (`treefield.merge`), where they are: the outcome is no
    worse than the best of them, and mostly better.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    seeds : int
        How many searches.
    method : str
        A method of `treefield.minimize`, whose other keywords may be given, too. `threads` is 1 unless it is given.
    client : distributed.Client, optional
        Default: the current one; if there is none, Dask's own threads, or whichever scheduler it is set to. The model
        travels once to each worker. A worker that dies loses nothing but time.
    rng : None, int or numpy.random.Generator
        The searches' generators are its children. The same seed gives the same answer wherever it is searched.
    progress : bool
        Show a progress bar of the searches that have ended.

    Returns
    -------
    MAPResult
        `runs`: the energies of the single searches, in order. The trace has a row for each of them and one for the
        merged labelling.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> from treefield.dask import search
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((30, 30, 4)), tf.Potts(0.3))
    >>> res = search(mrf, seeds=4, maxiter=5, rng=0)
    >>> len(res.runs), bool(res.fun <= min(res.runs))
    (4, True)
    """
    check_model(mrf)
    as_choice(method, "method", SOLVERS)
    if "rng" not in takes(method):
        raise ValueError(f"method={method!r} draws nothing, so seeds make no difference: use treefield.minimize")
    seeds = as_count(seeds, "seeds", 1)
    options = _allowed(method, options, _OURS[1:])
    checked_limits(None, None, None, progress=progress)
    client = _current_client() if client is None else client
    if client is not None and not hasattr(client, "scatter"):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
    timer, children = Timer(), as_generator(rng).spawn(seeds)
    bar = Bar(f"{method}, seeds", seeds) if progress else None
    with contextlib.nullcontext() if bar is None else contextlib.closing(bar):
        searched = _on_this_machine if client is None else _on_cluster
        found, merged = searched(client, mrf, bar, method, children, options)
    return many.result(mrf, method, found, merged, timer)


def _searches(mrf: Any, method: str, children: list[Any], options: dict[str, Any]) -> tuple[list[Any], Any]:
    """What there is to tell of each search, and what merging makes of all; lazily."""
    token = uuid.uuid4().hex
    given = dask.delayed(options, traverse=False, name=f"treefield-options-{token}")

    def task(name: str, number: Any, call: Callable[..., Any], *arguments: Any) -> Any:
        return dask.delayed(call)(*arguments, dask_key_name=f"treefield-{name}-{token}-{number}")

    level = [task("search", k, many.found_by, mrf, method, given, child) for k, child in enumerate(children)]
    told = [task("told", k, many.without_labels, found) for k, found in enumerate(level)]
    while len(level) > 1:
        rest = level[len(level) // 2 * 2 :]
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [task("merge", f"{len(level)}-{k}", many.merged, mrf, *two) for k, two in enumerate(pairs)] + rest
    return told, level[0]


def _on_cluster(client: Any, mrf: Any, bar: Bar | None, *what: Any) -> tuple[list[Any], Any]:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _gathered(client, mrf, bar if attempt == 1 else None, *what)
        except (concurrent.futures.CancelledError, asyncio.CancelledError):
            if attempt == _ATTEMPTS:
                raise
            # all workers that had the model have died: it travels again
    raise AssertionError


def _gathered(client: Any, mrf: Any, bar: Bar | None, *what: Any) -> tuple[list[Any], Any]:
    from distributed import as_completed

    told, merged = _searches(client.scatter([mrf], broadcast=True, hash=False)[0], *what)
    futures = client.compute([*told, merged])
    if bar is not None:
        with client.as_current():
            for _, found in as_completed(futures[:-1], with_results=True):
                bar.step(1, found.energy, found.energy)
    *told, best = client.gather(futures)
    return told, best


def _on_this_machine(client: None, mrf: Any, bar: Bar | None, *what: Any) -> tuple[list[Any], Any]:
    def ended(key: Any, found: Any, *rest: Any) -> None:
        if bar is not None and str(key).startswith("treefield-told"):
            bar.step(1, found.energy, found.energy)

    told, merged = _searches(dask.delayed(mrf, traverse=False, name=f"treefield-model-{uuid.uuid4().hex}"), *what)
    with dask.callbacks.Callback(posttask=ended):
        *found, best = dask.compute(*told, merged)
    return found, best


def _current_client() -> Any:
    """The default client of distributed, if that is in use."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None


def _as_dask(array: Any, name: str, labels_last: bool = False) -> Any:
    """A Dask array with chunks of known size, labels in one; or an error."""
    if not isinstance(array, da.Array):
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            raise TypeError(
                f"{name} must be a Dask array, or one such as NumPy's or Zarr's, got {type(array).__name__}"
            )
        axes = len(array.shape)
        array = da.from_array(array, chunks=("auto",) * (axes - 1) + (-1 if labels_last else "auto",) * (axes > 0))
    if any(np.isnan(n) for n in array.shape):
        raise ValueError(f"{name} has chunks of unknown size; call its compute_chunk_sizes() first")
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array.rechunk({array.ndim - 1: -1}) if labels_last and array.ndim else array


def _tiled(data: Any, pairwise: Any, costs: Any, labels: Any, weights: Any, tile: Any) -> TiledMRF:
    """The model, of which nothing is read; checked."""
    if costs is None and labels is not None:
        raise TypeError("labels goes with costs; without it the unary's last axis tells how many there are")
    if costs is not None:
        as_callable(costs, "costs", "a block")
        if labels is None:
            raise TypeError("with costs, labels must be given: how many there are")
    if tile is None:
        sites = data.chunks[: data.ndim - (costs is None)]
        tile = [max(LEAST, *parts) for parts in sites]
    given = {"pairwise": pairwise, "weights": weights, "tile": tile}
    if costs is None:
        return TiledMRF(data, **given)
    return TiledMRF(costs, shape=data.shape, labels=labels, **given)


def _checked_start(x0: Any, mrf: TiledMRF) -> Any:
    if x0 is None:
        return None
    if isinstance(x0, str):
        return as_choice(x0, "x0 of treefield.dask.minimize", STARTS)
    start = _as_dask(x0, "x0")
    if start.dtype.kind not in "bui":
        raise TypeError(f"x0 must hold integer labels, got dtype {start.dtype}")
    if start.shape != mrf.shape:
        raise ValueError(f"x0 has shape {start.shape}, but the model's is {mrf.shape}")
    return start


def _checked_options(method: str, options: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """How many rounds "t_icm" makes, and what the search of a tile is told."""
    options = _allowed(method, options, _OURS)
    if hasattr(options.get("local_search"), "sweep"):
        raise ValueError("local_search must be given by its name, not as a tree set: each tile has its own")
    if method != "t_icm":
        return 0, options
    rounds = options.pop("maxiter", None)
    return _ROUNDS if rounds is None else as_count(rounds, "maxiter"), options


def _allowed(method: str, options: dict[str, Any], not_these: tuple[str, ...]) -> dict[str, Any]:
    """Options that a search elsewhere may have, or an error; one thread unless they say more."""
    names = [name for name in takes(method) if name not in not_these]
    for name in options:
        if name not in names:
            instead = "; Dask shows progress by itself" if name in ("callback", "progress") else ""
            raise TypeError(f"method={method!r} takes no {name} here{instead}; it takes {', '.join(names)}")
    limits = {name: options.get(name) for name in ("maxiter", "time_limit", "patience", "tol")}
    checked_limits(callback=None, progress=False, **limits)
    if "threads" in names:
        options = {"threads": 1} | options
        thread_count(options["threads"])
    return options

"""Dask: grids larger than memory and many searches at once, on any of its schedulers. Needs ``treefield[dask]``."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import sys
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.protocols import Model, Seed, Start, Sweeps
from treefield.results import MAPResult
from treefield.solvers import seeds as seeded
from treefield.solvers.loop import Timer, as_limits
from treefield.solvers.minimize import METHODS as SOLVERS
from treefield.solvers.minimize import takes
from treefield.solvers.progress import Bar
from treefield.solvers.solver_keywords import SolverKeywords
from treefield.tiling.array_protocols import ReadableArray, as_readable, check_shape
from treefield.tiling.model import TiledMRF
from treefield.tiling.search import METHODS, STARTS, phases
from treefield.tiling.tasks import Settings
from treefield.validation import as_choice, as_count, as_generator, as_model, as_thread_count, check_keywords

try:
    import dask
    import dask.array as da
    import dask.callbacks
    from dask.delayed import Delayed

    from treefield.tiling.task_graph import TaskGraph
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('treefield.dask needs dask: pip install "treefield[dask]"', name="dask") from error

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Labelling", "energy", "minimize", "search"]

_ROUNDS = 4  # the default maxiter of "t_icm"
_ATTEMPTS = 3  # at searches all of whose workers die
_NOT_FOR_TASKS = ("x0", "rng", "callback", "progress", "checkpoint")  # keywords of solvers, not of a task
_OUTCOME = "treefield-outcome"  # prefix of the tasks whose ends the progress bar counts


class Labelling(NamedTuple):
    """The lazy result of `minimize`; ``dask.compute(*res)`` computes all of it at once.

    The bound is nan except for the method "auto" from "unary".
    """

    x: da.Array
    fun: da.Array
    lower_bound: da.Array


@overload
def minimize(
    mrf: TiledMRF,
    x0: ReadableArray | ArrayLike = "unary",
    *,
    method: str = "auto",
    rng: Seed = None,
    full_output: Literal[False] = False,
    **options: Unpack[SolverKeywords],
) -> da.Array: ...
@overload
def minimize(
    mrf: TiledMRF,
    x0: ReadableArray | ArrayLike = "unary",
    *,
    method: str = "auto",
    rng: Seed = None,
    full_output: Literal[True],
    **options: Unpack[SolverKeywords],
) -> Labelling: ...
@overload
def minimize(
    mrf: TiledMRF,
    x0: ReadableArray | ArrayLike = "unary",
    *,
    method: str = "auto",
    rng: Seed = None,
    full_output: bool,
    **options: Unpack[SolverKeywords],
) -> da.Array | Labelling: ...
def minimize(
    mrf: TiledMRF,
    x0: ReadableArray | ArrayLike = "unary",
    *,
    method: str = "auto",
    rng: Seed = None,
    full_output: bool = False,
    **options: Unpack[SolverKeywords],
) -> da.Array | Labelling:
    """Minimise the energy of a grid of any size, lazily; return the labelling as a Dask array.

    The answer is that of `treefield.minimize` for the same model and seed, but tiles that do not touch are searched at
    the same time. Nothing is computed before Dask is asked for it. Each tile is one task, a pure function: Dask may run
    it again after a failure, with the same outcome.

    Parameters
    ----------
    mrf : TiledMRF
        A model whose `unary` is an array, of Dask or any other; with `costs` only the image is sent to the workers, as
        one byte per pixel for instance, instead of all costs. For each of its threads a worker needs the memory to
        search one tile: with 16 labels some 40 bytes per site and label for "auto", 10 for the other methods.
    x0 : array of labels, "random" or "unary"
        Where to start. From "unary", "auto" first searches each tile alone, which gives a bound.
    method : "auto", "t_ils" or "t_icm"
        "auto" and "t_ils" search all tiles, then boxes around their borders. "t_icm" solves all tiles, then those
        shifted by half a tile, and so on, `maxiter` times in all, by default 4.
    rng : None, int or numpy.random.Generator
        The same seed gives the same answer on any scheduler, unless there is a `time_limit`.
    full_output : bool
        Return the energy and its bound as well.
    **options
        Keywords of the method for each tile, `time_limit` and `memory_limit` included. The default of `threads` is 1:
        give a worker as many threads as it has cores.

    Returns
    -------
    x : Dask array of the smallest integers that hold the labels
        Its chunks are the tiles.
    fun, lower_bound : Dask arrays without axes
        Only with `full_output`, which returns a `Labelling`. They share tasks with `x`: compute all at once.

    Notes
    -----
    Dask shows the progress: on its dashboard (the tasks are called treefield-tile and treefield-border), by
    `distributed.progress` or by `dask.diagnostics.ProgressBar`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, treefield as tf
    >>> noisy = np.random.default_rng(0).normal(np.indices((60, 60))[0] > 30, 0.4)
    >>> def costs(block):
    ...     return (block[..., None] - [0, 1]) ** 2
    >>> mrf = tf.TiledMRF(da.from_array(noisy, chunks=30), tf.Potts(0.5), costs=costs, n_labels=2)
    >>> x = tf.dask.minimize(mrf, rng=0)
    >>> x
    dask.array<treefield-labels, shape=(60, 60), dtype=uint8, chunksize=(30, 30), chunktype=numpy.ndarray>
    >>> x[::12, 0].compute()
    array([0, 0, 0, 1, 1], dtype=uint8)
    """
    data = _model_data(mrf)
    as_choice(method, "method of treefield.dask.minimize", METHODS)
    rounds, tile_options = _as_tile_options(method, options)
    start = _as_start(x0, mrf)
    root = int(as_generator(rng).integers(2**63))
    settings = Settings(mrf.pairwise, mrf.n_labels, mrf.block_costs, method, tile_options, root)
    graph = TaskGraph(mrf, data, settings, start, rounds)
    tiles, *borders = phases(mrf)
    if method == "auto" and isinstance(start, str) and start == "unary":
        graph.search_alone()
    else:
        graph.start(start)
        if method == "t_icm":
            graph.descend(rounds)
        else:
            graph.add_phase(1, tiles)
    if method != "t_icm":
        for number, classes in enumerate(borders, 2):
            graph.add_phase(number, classes, "border")
    labelling = Labelling(graph.labels(), *graph.figures())
    return labelling if full_output else labelling.x


def energy(mrf: TiledMRF, x: ReadableArray | ArrayLike) -> da.Array:
    """The energy of a labelling as a Dask array without axes, summed tile by tile; inf if it contains a forbidden cost.

    Examples
    --------
    >>> import dask.array as da, numpy as np, treefield as tf
    >>> unary = da.from_array(np.arange(32.0).reshape(4, 4, 2), chunks=(2, 2, 2))
    >>> mrf = tf.TiledMRF(unary, tf.Potts(1))
    >>> float(tf.dask.energy(mrf, da.ones((4, 4), dtype=int, chunks=2)).compute())
    256.0
    """
    data, labels = _model_data(mrf), _as_labels(x, "x", mrf)
    graph = TaskGraph(mrf, data, Settings(mrf.pairwise, mrf.n_labels, mrf.block_costs), labels)
    graph.start(labels)
    return graph.figures()[0]


def search(
    mrf: Model,
    x0: Start = "random",
    *,
    seeds: int = 8,
    method: str = "t_ils",
    client: Client | None = None,
    rng: Seed = None,
    progress: bool = False,
    **options: Unpack[SolverKeywords],
) -> MAPResult:
    """Search a model several times at once with different seeds, and merge the labellings.

    Labellings are merged two by two, component by component (`treefield.merge`), on the workers. The result is no worse
    than the best of them, and usually better.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x0 : labelling, "random", "unary" or "scan-line"
        Where each search starts: at random, each from its own labelling.
    seeds : int
        The number of searches.
    method : str
        A method of `treefield.minimize`.
    client : distributed.Client, optional
        By default the current client; without one, the scheduler that Dask is configured for (its threads). The model
        is sent to each worker once. If a worker dies, its searches are repeated.
    rng : None, int or numpy.random.Generator
        Its children are the generators of the searches. The same seed gives the same answer on any scheduler.
    progress : bool
        Show a progress bar of finished searches.
    **options
        Keywords of the method for each search. The default of `threads` is 1.

    Returns
    -------
    MAPResult
        `runs` holds the energies of the single searches, in order. The trace has a row for each of them and one for the
        merged labelling.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((30, 30, 4)), tf.Potts(0.3))
    >>> res = tf.dask.search(mrf, seeds=4, maxiter=5, rng=0)
    >>> len(res.runs), bool(res.fun <= min(res.runs))
    (4, True)
    """
    as_model(mrf)
    as_choice(method, "method", SOLVERS)
    if "rng" not in takes(method):
        raise ValueError(f"method={method!r} draws nothing, so seeds make no difference: use treefield.minimize")
    seeds = as_count(seeds, "seeds", 1)
    allowed = {"x0": x0} | _as_task_options(method, options)
    as_limits(None, None, None, progress=progress)
    client = _as_client(client)
    timer, children = Timer(), as_generator(rng).spawn(seeds)
    bar = Bar(f"{method}, seeds", seeds) if progress else None

    def lazy_searches(model: Delayed) -> tuple[list[Delayed], Delayed]:
        return _lazy_searches(model, method, children, allowed)

    with contextlib.nullcontext() if bar is None else contextlib.closing(bar):
        if client is None:
            outcomes, best = _compute_on_scheduler(mrf, lazy_searches, bar)
        else:
            outcomes, best = _compute_on_cluster(client, mrf, lazy_searches, bar)
    return seeded.combine_results(mrf, method, outcomes, best, timer)


Outcomes = tuple[
    list[seeded.SearchOutcome], seeded.SearchOutcome
]  # of the single searches, without labels, and of all, merged
Searches = Callable[[Delayed], tuple[list[Delayed], Delayed]]


def _lazy_searches(
    mrf: Delayed, method: str, generators: Iterable[np.random.Generator], options: dict[str, object]
) -> tuple[list[Delayed], Delayed]:
    """The outcome of each search without its labels, and the merged outcome of all; lazily."""
    token = uuid.uuid4().hex
    lazy_options = dask.delayed(options, traverse=False, name=f"treefield-options-{token}")

    def task(name: str, number: object, function: Callable[..., object], *arguments: object) -> Delayed:
        return dask.delayed(function)(*arguments, dask_key_name=f"{name}-{token}-{number}")

    level = [
        task("treefield-search", k, seeded.run_search, mrf, method, lazy_options, generator)
        for k, generator in enumerate(generators)
    ]
    outcomes = [task(_OUTCOME, k, seeded.without_labels, outcome) for k, outcome in enumerate(level)]
    while len(level) > 1:
        unpaired = level[len(level) // 2 * 2 :]
        pairs = enumerate(zip(level[::2], level[1::2], strict=False))
        level = [task("treefield-merge", f"{len(level)}-{k}", seeded.merge_outcomes, mrf, *pair) for k, pair in pairs]
        level += unpaired
    return outcomes, level[0]


def _compute_on_cluster(client: Client, mrf: Model, lazy_searches: Searches, bar: Bar | None) -> Outcomes:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _gather(client, mrf, lazy_searches, bar if attempt == 1 else None)
        except (concurrent.futures.CancelledError, asyncio.CancelledError):
            if attempt == _ATTEMPTS:
                raise
            # all workers that had the model have died: send it again
    raise AssertionError


def _gather(client: Client, mrf: Model, lazy_searches: Searches, bar: Bar | None) -> Outcomes:
    from distributed import as_completed

    outcomes, merged = lazy_searches(client.scatter([mrf], broadcast=True, hash=False)[0])
    futures = client.compute([*outcomes, merged])
    if bar is not None:
        with client.as_current():
            for _, outcome in as_completed(futures[:-1], with_results=True):
                bar.step(1, outcome.energy, outcome.energy)
    *computed, best = client.gather(futures)
    return computed, best


def _compute_on_scheduler(mrf: Model, lazy_searches: Searches, bar: Bar | None) -> Outcomes:
    def on_task_end(key: object, outcome: seeded.SearchOutcome, *_: object) -> None:
        if bar is not None and str(key).startswith(_OUTCOME):
            bar.step(1, outcome.energy, outcome.energy)

    model = dask.delayed(mrf, traverse=False, name=f"treefield-model-{uuid.uuid4().hex}")
    outcomes, merged = lazy_searches(model)
    with dask.callbacks.Callback(posttask=on_task_end):
        *computed, best = dask.compute(*outcomes, merged)
    return computed, best


def _as_client(client: Client | None) -> Client | None:
    """The client, or by default the current one of distributed, if that is in use; or an error."""
    distributed = sys.modules.get("distributed")
    if client is None:
        with contextlib.suppress(ValueError):  # there is no current client
            return None if distributed is None else distributed.default_client()
        return None
    if distributed is None or not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
    return client


def _model_data(mrf: TiledMRF) -> da.Array:
    """The array of a tiled model as a Dask array, labels in one chunk; or an error."""
    if not isinstance(mrf, TiledMRF):
        raise TypeError(
            f"mrf must be a TiledMRF, got {type(mrf).__name__}; treefield.dask.search takes models in memory"
        )
    if not isinstance(mrf.unary, ReadableArray):
        raise TypeError(
            "the unary of mrf is a function of a box, which Dask cannot divide into blocks: give TiledMRF the image, "
            "and costs= as a function of its blocks"
        )
    if mrf.store is not None:
        raise ValueError("mrf has a store, but labels are returned as a Dask array: leave store out, use to_zarr")
    array = _as_dask(mrf.unary, is_last_axis_whole=mrf.block_costs is None)
    return array.rechunk({array.ndim - 1: -1}) if mrf.block_costs is None else array


def _as_dask(array: ReadableArray, *, is_last_axis_whole: bool = False) -> da.Array:
    if isinstance(array, da.Array):
        return array
    chunks = ("auto",) * (len(array.shape) - 1) + (-1 if is_last_axis_whole else "auto",)
    return da.from_array(array, chunks=chunks)


def _as_start(x0: ReadableArray | ArrayLike, mrf: TiledMRF) -> str | da.Array:
    if isinstance(x0, str):
        return as_choice(x0, "x0 of treefield.dask.minimize", STARTS)
    return _as_labels(x0, "x0", mrf)


def _as_labels(x: ReadableArray | ArrayLike, name: str, mrf: TiledMRF) -> da.Array:
    """A labelling as a Dask array, or an error; the labels themselves are checked when they are computed."""
    labels = as_readable(x)
    if np.dtype(labels.dtype).kind not in "bui":
        raise TypeError(f"{name} must hold integer labels, got dtype {labels.dtype}")
    check_shape(labels, name, mrf.shape)
    return _as_dask(labels)


def _as_tile_options(method: str, options: SolverKeywords) -> tuple[int, dict[str, object]]:
    """The number of rounds of "t_icm", and the options for the search of each tile; or an error."""
    allowed = _as_task_options(method, options)
    if isinstance(allowed.get("local_search"), Sweeps):
        raise ValueError("local_search must be given by its name, not as a tree set: each tile has its own")
    if method != "t_icm":
        return 0, allowed
    rounds = allowed.pop("maxiter", None)
    return _ROUNDS if rounds is None else as_count(rounds, "maxiter"), allowed


def _as_task_options(method: str, options: SolverKeywords) -> dict[str, object]:
    """Options for a solver that runs in a task, by default with one thread; or an error."""
    names = [name for name in takes(method) if name not in _NOT_FOR_TASKS]
    for name in ("callback", "progress"):
        if name in options:
            raise TypeError(f"method={method!r} takes no {name} with Dask, which shows progress by itself")
    check_keywords(options, f"method={method!r} with Dask", names)
    as_limits(
        options.get("maxiter"),
        options.get("time_limit"),
        None,
        options.get("patience"),
        tol=options.get("tol"),
        progress=False,
    )
    if "threads" not in names:
        return dict(options)
    as_thread_count(options.get("threads", 1))
    return {"threads": 1, **options}

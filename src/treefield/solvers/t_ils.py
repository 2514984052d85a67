"""T-ILS: iterated local search over T-ICM (Algorithm 2 of the paper)."""

from __future__ import annotations

import copy
import os

import numpy as np

from treefield.moves.accept import Metropolis
from treefield.moves.common import call_jump, restore, state_of, total_work
from treefield.moves.reset import UniformJump
from treefield.protocols import (
    Accept,
    Callback,
    Jump,
    Learns,
    Limits,
    Model,
    Seed,
    StartOrResult,
    Sweeps,
    TiledModel,
    TreeOptions,
    Trees,
)
from treefield.results import MAPResult, Status
from treefield.solvers.checkpoint import Checkpoint, Saved, as_checkpoint_path, open_checkpoint
from treefield.solvers.identity import describe_part
from treefield.solvers.loop import as_limits
from treefield.solvers.parallel import independent_searches
from treefield.solvers.run import ROUNDING, Run, begin, split_start
from treefield.validation import (
    as_callable,
    as_choice,
    as_count,
    as_fields,
    as_flat_input,
    as_generator,
    as_model,
)

_MAXITER = 1000  # where no limit is given; the paper's number on stereo


def t_ils(
    mrf: Model | TiledModel,
    x0: StartOrResult = "random",
    *,
    jump: Jump | None = None,
    accept: Accept | None = None,
    beta: float | None = None,
    local_search: str | Sweeps = "t_icm",
    inner_iter: int | None = 1,
    trees: Trees | None = None,
    order: str = "fixed",
    bands: int | None = None,
    width: int | None = None,
    maxiter: int | None = None,
    max_backtracks: int | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    restarts: int = 1,
    workers: int | None = None,
    memory: str = "auto",
    threads: int | None = None,
) -> MAPResult:
    """Minimise the energy by jumping from one local minimum of T-ICM to the next.

    With its defaults this is the paper's Algorithm 2. An iteration jumps (random labels for up to 10 % of the sites),
    searches locally (one sweep over the trees) and accepts the result, or goes back (with a temperature adapted so that
    about half of the jumps are accepted). The best labelling of all is returned. Better jumps and acceptances are in
    `treefield.moves`; the best for most models is ``jump=MixedJump(), accept=PerComponent(), trees="bands"``.

    Parameters
    ----------
    mrf : GridMRF, GraphMRF or TiledMRF
        Of the last, tile by tile: the limits but for the time are for each tile.
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        Where to start.
    jump : function, optional
        ``jump(x, mrf, rng)`` returns a changed copy of the labelling. Default: ``moves.UniformJump(0.1)``.
    accept : function, optional
        ``accept(mrf, x, y, rng)`` makes `x` the labelling to go on from, in place, and returns the change of energy,
        None for a backtrack. Default: ``moves.Metropolis()``.
    beta : float, optional
        Short for ``accept=moves.Metropolis(beta)``, a fixed inverse temperature: inf is greedy, 0 accepts all.
    local_search : "t_icm", "icm" or tree set
        The search after a jump: sweeps over `trees`, over single sites, or over anything with a method
        ``sweep(x, rng, reverse=...)`` that changes `x` in place and returns the change of energy, such as
        ``mrf.backend.tree_set(...)``. Sweeps alternate in direction: every second one has ``reverse=True``.
    inner_iter : int or None
        The number of sweeps after each jump, fewer if the local minimum is reached before; None goes on until it is.
    trees, order, bands, width, memory, threads
        As in `t_icm`; the default is the paper's rows, then columns, and on a graph "trees".
    maxiter, time_limit : optional
        The largest number of jumps, and of seconds (overrun by one sweep at most, compilation left out); 1000 jumps
        if neither is given.
    max_backtracks : int, optional
        Stop after this number of rejected jumps in all.
    patience : int, optional
        Stop after this number of iterations in a row without a new best.
    callback : function, optional
        Called with a `MAPResult` after the first local search and after every iteration; raise StopIteration to stop.
    rng : None, int or numpy.random.Generator
        The same seed gives the same answer, for any number of threads.
    progress : bool
        Show a progress bar with the energy, the best one and the share of jumps accepted.
    checkpoint : path, optional
        A file that is written every second or so. If it exists, the search resumes from it, whatever `x0` and `rng`
        are, and ends bit for bit as if it had never stopped. A file that is damaged, or belongs to another model or to
        other settings, is refused with a ValueError and left unchanged. A `jump` or `accept` is recognised by its repr
        or, if that is Python's default, by its code and the values it uses: see Notes. With restarts there is one file
        for each: path.0, path.1, ...
    restarts : int
        So many independent searches, each with `maxiter` jumps; their results are merged, component by component, so
        that the outcome is no worse than the best of them.
    workers : int, optional
        How many of these run at once; default: as many as `threads`. The answer is the same for any number.

    Returns
    -------
    MAPResult
        Row 0 of its trace is the start, row 1 the first local minimum. Ctrl-C and SIGTERM return the best so far.

    Notes
    -----
    The paper's text says that beta = 0 is greedy and a large beta accepts all; by its formula, which is followed here,
    it is the other way round. Memory: the tree set's (one packed copy of the unary per axis, little with
    ``memory="low"``) and a few labellings.

    A checkpoint recognises a function, or an object with the default repr, by a digest of its content: the bytecode,
    defaults, closure and global variables of a function, the attributes and the class of an object. Functions and
    classes of installed packages count by their names, and so do modules. Thus a change of any value that it uses, or
    of the Python version, makes another jump of it; to decide yourself what counts, give its class a ``__repr__``. An
    object whose content cannot be listed, such as an open file, is refused at the start.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> rng = np.random.default_rng(0)
    >>> mrf = tf.GridMRF(rng.random((20, 20, 4)), tf.Potts(0.3))
    >>> res = tf.t_ils(mrf, maxiter=50, rng=0)
    >>> better = tf.t_ils(mrf, jump=tf.moves.MixedJump(), accept=tf.moves.PerComponent(), maxiter=50, rng=0)
    >>> better.fun <= res.fun <= tf.t_icm(mrf, rng=0).fun
    True
    """
    if not isinstance(mrf, TiledModel):
        as_model(mrf)
    jump = UniformJump() if jump is None else as_callable(jump, "jump", "(x, mrf, rng), such as moves.UniformJump()")
    if beta is not None and accept is not None:
        raise ValueError("give either beta or accept, not both: accept=Metropolis(beta) fixes the temperature")
    accept = (
        Metropolis(beta) if accept is None else as_callable(accept, "accept", "(mrf, x, y, rng), such as Metropolis()")
    )
    inner_iter = None if inner_iter is None else as_count(inner_iter, "inner_iter", 1)
    max_backtracks = None if max_backtracks is None else as_count(max_backtracks, "max_backtracks", 1)
    restarts = as_count(restarts, "restarts", 1)
    workers = None if workers is None else as_count(workers, "workers", 1)
    path = None if checkpoint is None else as_checkpoint_path(checkpoint)
    default = _MAXITER if max_backtracks is None else None
    limits = as_limits(maxiter, time_limit, callback, patience, progress=progress, default=default)
    options: TreeOptions = {"order": order, "bands": bands, "width": width, "memory": memory, "threads": threads}
    if isinstance(mrf, TiledModel):
        if checkpoint is not None or not isinstance(local_search, str):
            raise ValueError(
                "checkpoint, and a tree set as local_search, go with models in memory, not with a TiledMRF"
            )
        given: dict[str, object] = {
            "jump": jump,
            "accept": accept,
            "local_search": local_search,
            "inner_iter": inner_iter,
        }
        given |= {"trees": trees, "maxiter": maxiter, "max_backtracks": max_backtracks, "patience": patience}
        given |= {"restarts": restarts, "workers": workers} if restarts > 1 else {}
        return mrf.search_tiles("t_ils", split_start(x0)[0], as_generator(rng), limits, {**options, **given})
    tree_set: Sweeps | None = None
    if isinstance(local_search, Sweeps) and not isinstance(local_search, type):
        tree_set = local_search
    elif as_choice(local_search, "local_search", ("t_icm", "icm")) == "icm":
        trees = "sites"
    chosen = mrf.backend.paper_trees if trees is None else trees
    mrf.backend.check_tree_set(chosen, **options)
    settings: dict[str, object] = {}
    if checkpoint is not None:
        parts = {"jump": jump, "accept": accept, "local_search": local_search, "trees": chosen}
        settings = {name: describe_part(part, name) for name, part in parts.items()}
        settings |= {"inner_iter": inner_iter, "order": order, "bands": bands}
        if width is not None:  # earlier files have none
            settings["width"] = width

    def search(x0: StartOrResult, rng: Seed, limits: Limits, threads: int | None, path: str | None) -> MAPResult:
        file, saved = open_checkpoint(path, "t_ils", mrf, settings)
        run, generator = begin("t_ils", mrf, x0, rng, limits, saved)
        ils = _Search(run, copy.deepcopy(jump), copy.deepcopy(accept), inner_iter, max_backtracks, generator, file)
        with run:
            ils.resume(saved)
            prepared = mrf.backend.tree_set(
                chosen, order=order, bands=bands, width=width, memory=memory, threads=threads
            )
            ils.trees = prepared if tree_set is None else tree_set
            ils.run(first=saved is None)
        return run.result()

    if restarts == 1:
        return search(x0, rng, limits, threads, path)
    if tree_set is not None:
        raise ValueError("with restarts the local search must be given by its name, not as a tree set: they share it")
    return independent_searches(search, mrf, x0, as_generator(rng), limits, restarts, workers, threads, path)


class _Search:
    """The loop of Algorithm 2, and what a checkpoint must keep of it."""

    trees: Sweeps

    def __init__(
        self,
        run: Run,
        jump: Jump,
        accept: Accept,
        inner_iter: int | None,
        max_backtracks: int | None,
        rng: np.random.Generator,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._run, self._jump, self._accept, self._rng = run, jump, accept, rng
        self._inner_iter, self._max_backtracks, self._checkpoint = inner_iter, max_backtracks, checkpoint
        self._backtracks = 0

    def resume(self, saved: Saved | None) -> None:
        """Continue from a checkpoint, if there is one."""
        if saved is not None:
            self._run.keep_best()
            self._run.resume(saved, self._rng, self._restore)

    def run(self, first: bool) -> None:
        """Search until a limit is reached, at first for the first local minimum."""
        run = self._run
        if first:
            run.record(self._descend(run.x)[0], iterations=0)
            run.keep_best()
        while self._should_continue():
            self._iterate()
            run.save(self._checkpoint, self._rng, self._state)
        run.save(self._checkpoint, self._rng, self._state)

    def _should_continue(self) -> bool:
        if self._max_backtracks is not None and self._backtracks >= self._max_backtracks:
            self._run.stop(Status.LIMIT, f"max_backtracks = {self._max_backtracks} jumps were not accepted")
        return self._run.should_continue()

    def _iterate(self) -> None:
        run = self._run
        y = call_jump(self._jump, run.x, run.mrf, self._rng, "jump")
        if run.should_truncate():
            return
        _, sweeps = self._descend(y)
        change = self._accept(run.mrf, run.x, y, self._rng)
        as_flat_input(run.x, run.mrf.backend, "what accept left in x")
        self._backtracks += change is None
        if isinstance(self._jump, Learns):
            self._jump.learn(max(0.0, -(change or 0.0)), total_work(self._jump, run.mrf, sweeps))
        run.figures["accepted"] = 1 - self._backtracks / (run.nit + 1)
        run.record(change or 0.0)

    def _descend(self, y: np.ndarray) -> tuple[float, int]:
        """Sweep `y` in place; returns the change of energy and the number of sweeps."""
        total, sweeps = 0.0, 0
        while self._inner_iter is None or sweeps < self._inner_iter:
            if sweeps > 0 and self._run.should_truncate():
                break
            change = self.trees.sweep(y, self._rng, reverse=(self._run.nit + sweeps) % 2 == 1)
            total += change
            sweeps += 1
            if -change <= ROUNDING * abs(self._run.energy):  # nothing, or rounding that could go on for ever
                break
        return total, sweeps

    def _state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        moves = {"jump": state_of(self._jump), "accept": state_of(self._accept)}
        return {"backtracks": self._backtracks, **moves}, {}

    def _restore(self, numbers: object, arrays: dict[str, np.ndarray]) -> None:
        backtracks, jump, accept = as_fields(numbers, "search", "backtracks", "jump", "accept")
        self._backtracks = as_count(backtracks, "backtracks")
        if self._backtracks > self._run.nit:
            raise ValueError(f"backtracks must be at most nit = {self._run.nit}, got {backtracks}")
        restore(self._jump, jump)
        restore(self._accept, accept)

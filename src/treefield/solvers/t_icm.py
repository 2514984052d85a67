"""T-ICM: strong local search by exact search on conditional trees (Algorithm 1 of the paper)."""

from __future__ import annotations

from treefield.protocols import Callback, Model, Seed, StartOrResult, TiledModel, TreeOptions, Trees
from treefield.results import MAPResult
from treefield.solvers.loop import as_limits
from treefield.solvers.run import begin, descend, split_start
from treefield.validation import as_generator, as_model


def t_icm(
    mrf: Model | TiledModel,
    x0: StartOrResult = "random",
    *,
    trees: Trees | None = None,
    order: str = "fixed",
    bands: int | None = None,
    width: int | None = None,
    maxiter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
    memory: str = "auto",
    threads: int | None = None,
) -> MAPResult:
    """Minimise the energy by solving one tree after the other exactly, the sites around it fixed.

    An iteration is one sweep over every tree of the set. The energy never rises; the search stops when a sweep lowers
    it no more.

    Parameters
    ----------
    mrf : GridMRF, GraphMRF or TiledMRF
        Of the last, tile by tile: `maxiter` limits the rounds over all tiles.
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        Where to start: "unary" gives each site its cheapest label, "scan-line" solves each row without the others.
    trees : str or list of 1-D integer arrays, optional
        Of a grid:
        "bands": rows, then columns (then pillars), the grid cut into bands swept side by side: the fast one, and the
        default.
        "rows-columns": one line after the other, the paper's first set.
        "alternating": every second line at once, then the others, the paper's second.
        "ribbons": `width` lines at a time, solved together, with borders drawn afresh for every sweep: by far the
        strongest where labels are few. In 3-D bars of lines.
        "combs": a spine and every second line, more than half of the sites at once.
        Not of every grid: a periodic one, or a 2-D one with connectivity 2, has no "combs"; periodic ones with
        connectivity 2, and 3-D ones, have only the trees of graphs. Closed lines are solved but for one site.
        Of a graph:
        "trees": all sites cut into induced trees, which may touch, in two ways; the default.
        "forests": large induced forests, enough of them that every site is in one.
        "random-trees", "random-forests": the same, drawn afresh for every sweep.
        "wide": induced subgraphs with at most `width` undecided sites at a time, drawn afresh for every sweep.
        Of either:
        "sites": single sites, which is ICM.
        A list of flat site indices: your own trees; each array and the edges between its sites must have no cycle.
    order : "fixed" or "random"
        The order of the trees in a sweep.
    bands : int, optional
        How many bands; the default depends on the model's size and labels alone.
    width : int, optional
        How many lines a ribbon has, or undecided sites a wide tree. A sweep takes labels**width operations per site,
        with 8 neighbours labels**(width + 1): by default at most 256. A ribbon as wide as the grid is exact.
    maxiter, time_limit : optional
        The largest number of sweeps, and of seconds (overrun by one sweep at most, compilation left out).
    callback : function, optional
        Called with a `MAPResult` after every sweep; raise StopIteration to stop.
    rng : None, int or numpy.random.Generator
        For a random start or order. The same seed gives the same answer.
    progress : bool
        Show a progress bar with the energy.
    memory : "auto" or "low"
        "auto" keeps one packed copy of the unary per axis; "low" packs a few lines at a time: memory for the labelling
        and a few megabytes, at the price of speed. The answer is the same.
    threads : int, optional
        Default: the environment variable TREEFIELD_NUM_THREADS, else all cores. The answer is the same for any number.

    Returns
    -------
    MAPResult

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> noisy = np.random.default_rng(0).normal([[0.0] * 8 + [1.0] * 8] * 16, 0.4)
    >>> unary = np.stack([noisy**2, (noisy - 1) ** 2], axis=-1)
    >>> res = tf.t_icm(tf.GridMRF(unary, tf.Potts(0.5)), rng=0)
    >>> res.x[5]
    array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], dtype=int32)
    """
    options: TreeOptions = {"order": order, "bands": bands, "width": width, "memory": memory, "threads": threads}
    limits = as_limits(maxiter, time_limit, callback, progress=progress)
    if isinstance(mrf, TiledModel):
        return mrf.search_tiles("t_icm", split_start(x0)[0], as_generator(rng), limits, {**options, "trees": trees})
    backend = as_model(mrf).backend
    backend.check_tree_set(trees, **options)
    run, generator = begin("t_icm", mrf, x0, rng, limits)
    return descend(run, lambda: backend.tree_set(trees, **options), generator, "tree")

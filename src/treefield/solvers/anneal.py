"""Simulated annealing (Geman & Geman): Gibbs sampling of single sites, colder and colder."""

from __future__ import annotations

import math
import os

import numpy as np

from treefield.moves.common import as_temperatures, usual_temperatures
from treefield.protocols import Callback, Model, Seed, StartOrResult
from treefield.results import MAPResult
from treefield.solvers.checkpoint import open_checkpoint
from treefield.solvers.loop import as_limits
from treefield.solvers.run import Run, begin
from treefield.validation import as_choice, as_fields, as_model

_MAXITER = 1000  # sweeps where no limit is given


def anneal(
    mrf: Model,
    x0: StartOrResult = "random",
    *,
    schedule: str = "geometric",
    temperatures: tuple[float, float] | None = None,
    maxiter: int | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> MAPResult:
    """Minimise the energy by simulated annealing.

    An iteration is a sweep of the Gibbs sampler over every site of one colour of a checkerboard, then of the other: a
    site takes label l with probability proportional to exp(-cost(l) / temperature), given its neighbours.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        Where to start.
    schedule : "geometric" or "log"
        "geometric" goes from the first to the second temperature by equal factors, over `maxiter` sweeps or, without
        `maxiter`, over `time_limit`. "log" is the first temperature / log2(2 + k) in sweep k, Geman & Geman's schedule,
        and never below the second.
    temperatures : (hot, cold), optional
        By default hot is what the energy changes by, on average, where one site of a random labelling takes another
        label, and cold is 1/30 of it.
    maxiter, time_limit : optional
        The largest number of sweeps, and of seconds; 1000 sweeps if neither is given.
    patience, callback, rng, progress, checkpoint
        As in `t_ils`.

    Returns
    -------
    MAPResult
        With the best labelling that any sweep ended in. Memory: one packed copy of the unary.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((16, 16, 4)), tf.Potts(0.3))
    >>> tf.anneal(mrf, maxiter=200, rng=0).fun <= tf.icm(mrf, rng=0).fun
    True
    """
    as_model(mrf)
    as_choice(schedule, "schedule", ("geometric", "log"))
    given = None if temperatures is None else as_temperatures(temperatures)
    limits = as_limits(maxiter, time_limit, callback, patience, progress=progress)
    if limits["maxiter"] is None and limits["time_limit"] is None:  # a schedule has an end, however patient
        limits["maxiter"] = _MAXITER
    sweeps = limits["maxiter"] if schedule == "geometric" else None  # the log schedule does not look at its end
    settings = {"schedule": schedule, "temperatures": given, "sweeps": sweeps}
    file, saved = open_checkpoint(checkpoint, "anneal", mrf, settings)
    run, generator = begin("anneal", mrf, x0, rng, limits, saved)
    with run:
        run.keep_best()
        usual = given

        def restore(numbers: object, arrays: dict[str, np.ndarray]) -> None:
            nonlocal usual
            usual = as_temperatures(*as_fields(numbers, "search", "temperatures"))
            if given not in (None, usual):
                raise ValueError(f"temperatures must be {given}, got {usual}")

        if saved is not None:
            run.resume(saved, generator, restore)
        hot, cold = usual or usual_temperatures(mrf, generator)
        sites = mrf.backend.sampler()
        state: tuple[dict[str, object], dict[str, np.ndarray]] = {"temperatures": (hot, cold)}, {}
        while run.should_continue():
            temperature = _temperature(schedule, hot, cold, run)
            run.figures["temperature"] = temperature
            run.record(sites.sample(run.x, temperature, generator))
            run.save(file, generator, lambda: state)
        run.save(file, generator, lambda: state)
    return run.result()


def _temperature(schedule: str, hot: float, cold: float, run: Run) -> float:
    if schedule == "log":
        return max(cold, hot / math.log2(2 + run.nit))
    return hot * (cold / hot) ** run.fraction

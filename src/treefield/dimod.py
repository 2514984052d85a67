"""Samplers for dimod that minimise quadratic models on trees. Needs the extra ``treefield[dimod]``."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from treefield.models.graph import GraphMRF
from treefield.models.quadratic_form import QuadraticForm
from treefield.results import MAPResult, Status, relative_gap
from treefield.solvers.minimize import METHODS, minimize
from treefield.validation import as_callable, as_count

try:
    import dimod
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('treefield.dimod needs dimod: pip install "treefield[dimod]"', name="dimod") from error

__all__ = ["TreeILSDQMSampler", "TreeILSSampler", "dqm_to_graph", "from_graph", "to_graph"]

_TOL = 1e-9  # a gap that may be rounding
_SEARCH = ("seed", "time_limit", "maxiter", "tol", "method", "threads", "interrupt_function")


class TreeILSSampler(dimod.Sampler, dimod.Initialized):
    """Samples of low energy of a binary quadratic model, by `treefield.minimize`.

    It searches for the least energy; it does not draw from a Boltzmann distribution. Models without cycles are solved
    exactly, on others the lower bound in ``info`` says how good the best sample is.

    Examples
    --------
    >>> from treefield.dimod import TreeILSSampler
    >>> sampleset = TreeILSSampler().sample_ising({"a": -0.5}, {("a", "b"): 1, ("b", "c"): 1, ("c", "a"): 1}, seed=0)
    >>> float(sampleset.first.energy)
    -1.5
    """

    def __init__(self) -> None:
        self._parameters: dict[str, list[str]] = {
            name: [] for name in ("num_reads", "initial_states", "initial_states_generator", *_SEARCH)
        }
        self._properties = {"methods": list(METHODS), "initial_states_generators": ["none", "tile", "random"]}

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The keywords of `sample`, `sample_ising` and `sample_qubo`."""
        return self._parameters

    @property
    def properties(self) -> dict[str, list[str]]:
        """The allowed values of some of the parameters."""
        return self._properties

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        *,
        num_reads: int | None = None,
        initial_states: dimod.SampleSet | dimod.typing.SamplesLike | None = None,
        initial_states_generator: str = "random",
        seed: int | None = None,
        time_limit: float | None = None,
        maxiter: int | None = None,
        tol: float | None = None,
        method: str = "auto",
        threads: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        **kwargs: object,
    ) -> dimod.SampleSet:
        """Search for samples of low energy.

        Parameters
        ----------
        bqm : dimod.BinaryQuadraticModel
            BINARY or SPIN, with variables of any name.
        num_reads : int, optional
            The number of independent searches, one sample each; by default that of the initial states, or 1.
        initial_states : samples-like, optional
            Where the reads start; a sample is never worse than the state that it started from.
        initial_states_generator : "none", "tile" or "random"
            Where further reads start if there are fewer states than reads, as in all of dimod's samplers.
        seed : int, optional
            The same seed gives the same samples, unless the time runs out; each read has its own seed derived from it,
            so that more reads begin with the same samples.
        time_limit : float, optional
            Seconds for each read (as the timeout of D-Wave's tabu sampler, which is in milliseconds), compilation left
            out. Without any limit a read ends when the least energy is proved or nothing has been gained for long.
        maxiter, tol, method, threads
            As in `treefield.minimize`; for method "auto" the default of `tol` is 1e-9, and the offset is no part of the
            gap that it is compared with.
        interrupt_function : function, optional
            Called after every iteration; if it returns True the samples so far are returned.
        **kwargs
            Unknown keywords are ignored with a warning, as dimod's samplers do.

        Returns
        -------
        dimod.SampleSet
            A row for each read, with the energies of the BQM itself. ``info`` holds `lower_bound` (no sample has less
            energy; nan without a bound), `gap` (of the best sample), and for each read `seconds`, `iterations` and
            `messages`. Ctrl-C returns what has been found.
        """
        _check_bqm(bqm)
        self.remove_unknown_kwargs(**kwargs)
        seeds = np.random.SeedSequence(_as_seed(seed))
        parsed = self.parse_initial_states(
            bqm,
            initial_states=initial_states,
            initial_states_generator=initial_states_generator,
            num_reads=num_reads,
            seed=int(seeds.generate_state(1)[0]),
            copy_always=True,
        )
        stop = _as_stop(interrupt_function)
        if not bqm.num_variables:
            results: list[MAPResult] = []
            samples = np.empty((parsed.num_reads, 0), np.int8)
            variables: list[Hashable] = []
        else:
            mrf, variables = to_graph(bqm)
            columns = [parsed.initial_states.variables.index(v) for v in variables]
            starts = parsed.initial_states.record.sample[:, columns] > 0
            options = {"time_limit": time_limit, "maxiter": maxiter, "tol": tol, "method": method, "threads": threads}
            results = _run_reads(mrf, starts.astype(np.int32), seeds, stop, options)
            samples = np.array([res.x for res in results], np.int8)
            if bqm.vartype is dimod.SPIN:
                samples = 2 * samples - 1
        sampleset = dimod.SampleSet.from_samples_bqm((samples, variables), bqm)
        sampleset.info.update(_info(results, sampleset))
        return sampleset


class TreeILSDQMSampler:
    """Samples of low energy of a discrete quadratic model, by `treefield.minimize`.

    Examples
    --------
    >>> import dimod
    >>> from treefield.dimod import TreeILSDQMSampler
    >>> dqm = dimod.DiscreteQuadraticModel()
    >>> _ = dqm.add_variable(3, label="a"), dqm.add_variable(2, label="b")
    >>> dqm.set_linear("a", [2, 1, 0])
    >>> dqm.set_quadratic("a", "b", {(2, 0): 4, (2, 1): 4})
    >>> sampleset = TreeILSDQMSampler().sample_dqm(dqm, seed=0)
    >>> float(sampleset.first.energy), sampleset.info["lower_bound"]
    (1.0, 1.0)
    """

    def __init__(self) -> None:
        self.parameters: dict[str, list[str]] = {name: [] for name in ("num_reads", *_SEARCH)}
        self.properties: dict[str, list[str]] = {"methods": list(METHODS)}

    def sample_dqm(
        self,
        dqm: dimod.DiscreteQuadraticModel,
        *,
        num_reads: int = 1,
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        **kwargs: object,
    ) -> dimod.SampleSet:
        """Search for samples of low energy; keywords and ``info`` as in `TreeILSSampler.sample`, reads start at random.

        A sample holds the number of each variable's case; a `CaseLabelDQM` names them by its `map_sample`.
        """
        options = dimod.Sampler.remove_unknown_kwargs(self, **kwargs)
        reads, stop = as_count(num_reads, "num_reads", 1), _as_stop(interrupt_function)
        seeds = np.random.SeedSequence(_as_seed(seed))
        if not dqm.num_variables():
            samples, energies = np.empty((reads, 0), np.int32), np.full(reads, float(dqm.offset))
            sampleset = dimod.SampleSet.from_samples((samples, []), "DISCRETE", energies)
            sampleset.info.update(_info([], sampleset))
            return sampleset
        mrf, variables = dqm_to_graph(dqm)
        rng = np.random.default_rng(seeds.generate_state(1))
        results = _run_reads(mrf, [mrf.backend.random_labels(rng) for _ in range(reads)], seeds, stop, options)
        samples = np.array([res.x for res in results])
        sampleset = dimod.SampleSet.from_samples((samples, variables), "DISCRETE", dqm.energies((samples, variables)))
        sampleset.info.update(_info(results, sampleset))
        return sampleset


def to_graph(bqm: dimod.BinaryQuadraticModel) -> tuple[GraphMRF, list[Hashable]]:
    """The model of a BQM, and the variable of each site. Label 0 is the lower value (0, or -1 of a spin), 1 the upper.

    Examples
    --------
    >>> import dimod
    >>> from treefield.dimod import to_graph
    >>> mrf, variables = to_graph(dimod.BinaryQuadraticModel({"a": 1, "b": -2}, {"ab": 3}, 0.5, "SPIN"))
    >>> mrf.energy([0, 1]), variables  # a = -1, b = +1
    (-5.5, ['a', 'b'])
    """
    _check_bqm(bqm)
    variables = list(bqm.variables)
    if not variables:
        raise ValueError("bqm has no variables; a model needs at least one site")
    linear, (first, second, quadratic), _ = bqm.to_numpy_vectors(variable_order=variables)
    edges = np.stack([first, second], axis=1).astype(np.int64)
    biases = np.asarray(linear, np.float64), edges, np.asarray(quadratic, np.float64)
    return QuadraticForm(
        bqm.vartype.name, *biases, float(bqm.offset)
    ).to_graph(), variables  # of vectors, dimod may truncate it


def from_graph(
    mrf: GraphMRF, variables: Iterable[Hashable] | None = None, vartype: dimod.typing.VartypeLike = "BINARY"
) -> dimod.BinaryQuadraticModel:
    """The BQM of a graph model of two labels a site; a site's variable is its number, or that of `variables`.

    Examples
    --------
    >>> import treefield as tf
    >>> from treefield.dimod import from_graph
    >>> bqm = from_graph(tf.GraphMRF([[0, 1], [2, 0]], [(0, 1)], tf.Potts(3)), ["a", "b"])
    >>> float(bqm.energy({"a": 1, "b": 0}))
    6.0
    """
    if not isinstance(mrf, GraphMRF):
        raise TypeError(f"mrf must be a GraphMRF, got {type(mrf).__name__}")
    names = list(range(mrf.size)) if variables is None else list(variables)
    if len(names) != mrf.size or len(set(names)) != mrf.size:
        raise ValueError(f"variables must be {mrf.size} different names, got {len(names)}, {len(set(names))} different")
    kind = dimod.as_vartype(vartype)
    form = QuadraticForm.from_graph(mrf, kind.name)
    vectors = (form.edges[:, 0], form.edges[:, 1], form.quadratic)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(form.linear, vectors, form.offset, kind, variable_order=names)


def dqm_to_graph(dqm: dimod.DiscreteQuadraticModel) -> tuple[GraphMRF, list[Hashable]]:
    """The model of a DQM, a label for each case, and the variable of each site."""
    if not isinstance(dqm, dimod.DiscreteQuadraticModel):
        raise TypeError(f"dqm must be a dimod.DiscreteQuadraticModel, got {type(dqm).__name__}")
    if not dqm.num_variables():
        raise ValueError("dqm has no variables; a model needs at least one site")
    starts, linear, (first, second, biases), _, offset = dqm.to_numpy_vectors(return_offset=True)
    starts = np.asarray(starts, np.int64)
    counts = np.diff(np.append(starts, len(linear)))
    sites = [np.searchsorted(starts, cases, side="right") - 1 for cases in (first, second)]
    tables: dict[tuple[int, int], np.ndarray] = {}
    cases = (first - starts[sites[0]], second - starts[sites[1]])
    for i, j, a, b, bias in zip(*(part.tolist() for part in (*sites, *cases, biases)), strict=True):
        tables.setdefault((i, j), np.zeros((counts[i], counts[j])))[a, b] += bias
    unaries = np.split(np.asarray(linear, np.float64), starts[1:])
    return GraphMRF(unaries, list(tables), list(tables.values()), offset=float(offset)), list(dqm.variables)


def _check_bqm(bqm: object) -> None:
    if not isinstance(bqm, dimod.BinaryQuadraticModel):
        hint = "; for a dict there are sample_qubo and sample_ising" if isinstance(bqm, dict) else ""
        raise TypeError(f"bqm must be a dimod.BinaryQuadraticModel, got {type(bqm).__name__}{hint}")


def _run_reads(
    mrf: GraphMRF,
    starts: Sequence[np.ndarray] | np.ndarray,
    seeds: np.random.SeedSequence,
    stop: _Stop | None,
    options: dict[str, Any],
) -> list[MAPResult]:
    """Search from each start; after an interrupt, return the results so far."""
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("method", "auto") == "auto":
        given.setdefault("tol", _TOL)
    offset, mrf.offset = mrf.offset, 0.0  # the gap is relative: a constant must not end the search
    if stop is not None:
        given["callback"] = stop
    results: list[MAPResult] = []
    for start, own in zip(starts, seeds.spawn(len(starts)), strict=True):
        try:
            results.append(minimize(mrf, start, rng=np.random.default_rng(own), **given))
        except KeyboardInterrupt:  # before the search was ready for it
            if not results:
                raise
            break
        if results[-1].status == Status.INTERRUPTED or (stop is not None and stop.is_stopped):
            break
    for res in results:
        res.lower_bound += offset
    return results


class _Stop:
    """A callback that asks a function of no arguments whether to stop."""

    def __init__(self, asked: Callable[[], bool]) -> None:
        self._asked, self.is_stopped = asked, False

    def __call__(self, intermediate_result: MAPResult) -> None:
        self.is_stopped = self.is_stopped or bool(self._asked())
        if self.is_stopped:
            raise StopIteration


def _as_stop(asked: Callable[[], bool] | None) -> _Stop | None:
    return None if asked is None else _Stop(as_callable(asked, "interrupt_function", "no arguments"))


def _as_seed(seed: object) -> int | None:
    return None if seed is None else as_count(seed, "seed")


def _info(results: list[MAPResult], sampleset: dimod.SampleSet) -> dict[str, object]:
    """The `info` of a sample set: the bound, and how the reads went."""
    best = float(sampleset.record.energy.min())
    bounds = [res.lower_bound for res in results if not math.isnan(res.lower_bound)]
    if not results:  # a model without variables has one energy
        bounds = [best]
    bound = min(max(bounds), best) if bounds else math.nan  # rounding must not put it above the best energy
    return {
        "lower_bound": bound,
        "gap": relative_gap(best, bound),
        "seconds": [float(res.trace["seconds"][-1]) for res in results],
        "iterations": [int(res.nit) for res in results],
        "messages": [str(res.message) for res in results],
    }

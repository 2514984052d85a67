"""Samplers for dimod: quadratic models of its own, minimised on trees. Needs the extra ``treefield[dimod]``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treefield.models.graph import GraphMRF
from treefield.results import MAPResult, relative_gap
from treefield.solvers.minimize import METHODS, minimize
from treefield.solvers.run import INTERRUPTED
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
    def parameters(self) -> dict[str, Any]:
        """The keywords of `sample`, `sample_ising` and `sample_qubo`."""
        return self._parameters

    @property
    def properties(self) -> dict[str, Any]:
        """What some of these may be."""
        return self._properties

    def sample(
        self,
        bqm: Any,
        *,
        num_reads: int | None = None,
        initial_states: Any = None,
        initial_states_generator: Any = "random",
        seed: int | None = None,
        time_limit: float | None = None,
        maxiter: int | None = None,
        tol: float | None = None,
        method: str = "auto",
        threads: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Search for samples of low energy.

        Parameters
        ----------
        bqm : dimod.BinaryQuadraticModel
            BINARY or SPIN, with variables of any name.
        num_reads : int, optional
            So many independent searches, one sample each; by default as many as there are initial states, or 1.
        initial_states : samples-like, optional
            Where the reads start; a sample is never worse than the state that it started from.
        initial_states_generator : "none", "tile" or "random"
            Where further reads start if there are fewer states than reads, as in all of dimod's samplers.
        seed : int, optional
            The same seed gives the same samples, unless the time runs out; each read has a seed of its own derived from
            it, so that more reads begin with the same samples.
        time_limit : float, optional
            Seconds for each read (as the timeout of D-Wave's tabu sampler, which is in milliseconds), compilation left
            out. Without any limit a read ends when the least energy is proved or nothing has been gained for long.
        maxiter, tol, method, threads
            As in `treefield.minimize`; for method "auto" the default of `tol` is 1e-9, and the offset is no part of the
            gap that it is compared with.
        interrupt_function : function, optional
            Called after every iteration; if it gives True the samples found so far are returned.
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
        seeds = np.random.SeedSequence(_checked_seed(seed))
        parsed = self.parse_initial_states(
            bqm,
            initial_states=initial_states,
            initial_states_generator=initial_states_generator,
            num_reads=num_reads,
            seed=int(seeds.generate_state(1)[0]),
            copy_always=True,
        )
        stop = _stopping(interrupt_function)
        if not bqm.num_variables:
            found: list[MAPResult] = []
            samples = np.empty((parsed.num_reads, 0), np.int8)
            variables: list[Any] = []
        else:
            mrf, variables = to_graph(bqm)
            columns = [parsed.initial_states.variables.index(v) for v in variables]
            starts = parsed.initial_states.record.sample[:, columns] > 0
            options = {"time_limit": time_limit, "maxiter": maxiter, "tol": tol, "method": method, "threads": threads}
            found = _reads(mrf, starts.astype(np.int32), seeds, stop, options)
            samples = np.array([res.x for res in found], np.int8)
            if bqm.vartype is dimod.SPIN:
                samples = 2 * samples - 1
        sampleset = dimod.SampleSet.from_samples_bqm((samples, variables), bqm)
        sampleset.info.update(_info(found, sampleset))
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
        self.properties: dict[str, Any] = {"methods": list(METHODS)}

    def sample_dqm(
        self,
        dqm: Any,
        *,
        num_reads: int = 1,
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Search for samples of low energy; keywords and ``info`` as in `TreeILSSampler.sample`, reads start at random.

        A sample holds the number of each variable's case; a `CaseLabelDQM` names them by its `map_sample`.
        """
        sampler: Any = self
        options = dimod.Sampler.remove_unknown_kwargs(sampler, **kwargs)
        reads, stop = as_count(num_reads, "num_reads", 1), _stopping(interrupt_function)
        seeds = np.random.SeedSequence(_checked_seed(seed))
        if not dqm.num_variables():
            samples, energies = np.empty((reads, 0), np.int32), np.full(reads, float(dqm.offset))
            sampleset = dimod.SampleSet.from_samples((samples, []), "DISCRETE", energies)
            sampleset.info.update(_info([], sampleset))
            return sampleset
        mrf, variables = dqm_to_graph(dqm)
        rng = np.random.default_rng(seeds.generate_state(1))
        found = _reads(mrf, [mrf.random_labels(rng) for _ in range(reads)], seeds, stop, options)
        samples = np.array([res.x for res in found])
        sampleset = dimod.SampleSet.from_samples((samples, variables), "DISCRETE", dqm.energies((samples, variables)))
        sampleset.info.update(_info(found, sampleset))
        return sampleset


def to_graph(bqm: Any) -> tuple[GraphMRF, list[Any]]:
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
    linear, (first, second, quadratic), offset = bqm.to_numpy_vectors(variable_order=variables)
    linear, quadratic = np.asarray(linear, np.float64), np.asarray(quadratic, np.float64)
    if not (np.isfinite(linear).all() and np.isfinite(quadratic).all() and np.isfinite(float(offset))):
        raise ValueError("bqm holds NaN or infinity; every bias and the offset must be finite")
    spins = bqm.vartype is dimod.SPIN
    unaries = np.stack([-linear if spins else np.zeros_like(linear), linear], axis=1)
    table = np.array([[1, -1], [-1, 1]] if spins else [[0, 0], [0, 1]])
    edges = np.stack([first, second], axis=1).astype(np.int64)
    return GraphMRF(unaries, edges, table, weights=quadratic, offset=float(offset)), variables


def from_graph(mrf: GraphMRF, variables: Sequence[Any] | None = None, vartype: Any = "BINARY") -> Any:
    """The BQM of a graph model of two labels a site; a site's variable is its number, or that of `variables`.

    Examples
    --------
    >>> import treefield as tf
    >>> from treefield.dimod import from_graph
    >>> bqm = from_graph(tf.GraphMRF([[0, 1], [2, 0]], [(0, 1)], tf.Potts(3)), ["a", "b"])
    >>> float(bqm.energy({"a": 1, "b": 0}))
    6.0
    """
    if not hasattr(mrf, "edge_costs"):
        raise TypeError(f"mrf must be a GraphMRF, got {type(mrf).__name__}")
    if (mrf.label_counts != 2).any():
        site = int((mrf.label_counts != 2).argmax())
        raise ValueError(f"a BQM needs two labels at every site, but site {site} has {mrf.label_counts[site]}")
    if math.isfinite(mrf.big):
        raise ValueError("a BQM has no forbidden (+inf) costs; make them finite and large")
    names = list(range(mrf.size)) if variables is None else list(variables)
    if len(names) != mrf.size or len(set(names)) != mrf.size:
        raise ValueError(f"variables must be {mrf.size} different names, got {len(names)}, {len(set(names))} different")
    unaries = np.array(mrf.unaries)
    costs = np.array([mrf.edge_costs(edge) for edge in range(len(mrf.edges))]).reshape(-1, 2, 2)
    linear = unaries[:, 1] - unaries[:, 0]
    np.add.at(linear, mrf.edges[:, 0], costs[:, 1, 0] - costs[:, 0, 0])
    np.add.at(linear, mrf.edges[:, 1], costs[:, 0, 1] - costs[:, 0, 0])
    quadratic = costs[:, 0, 0] + costs[:, 1, 1] - costs[:, 0, 1] - costs[:, 1, 0]
    offset = mrf.offset + unaries[:, 0].sum() + costs[:, 0, 0].sum()
    vectors = (mrf.edges[:, 0], mrf.edges[:, 1], quadratic)
    bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(linear, vectors, offset, dimod.BINARY, variable_order=names)
    return bqm.change_vartype(vartype, inplace=True)


def dqm_to_graph(dqm: Any) -> tuple[GraphMRF, list[Any]]:
    """The model of a DQM, a label for each case, and the variable of each site."""
    if not hasattr(dqm, "num_cases") or not hasattr(dqm, "to_numpy_vectors"):
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


def _check_bqm(bqm: Any) -> None:
    if not hasattr(bqm, "to_numpy_vectors") or getattr(bqm, "vartype", None) not in (dimod.SPIN, dimod.BINARY):
        hint = "; for a dict there are sample_qubo and sample_ising" if isinstance(bqm, dict) else ""
        raise TypeError(f"bqm must be a dimod.BinaryQuadraticModel, got {type(bqm).__name__}{hint}")


def _reads(mrf: GraphMRF, starts: Any, seeds: np.random.SeedSequence, stop: Any, options: dict[str, Any]) -> list[Any]:
    """A search from each start; an interrupt ends with those made so far."""
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("method", "auto") == "auto":
        given.setdefault("tol", _TOL)
    offset, mrf.offset = mrf.offset, 0.0  # the gap is relative: a constant must not end the search
    if stop is not None:
        given["callback"] = stop
    found: list[MAPResult] = []
    for start, own in zip(starts, seeds.spawn(len(starts)), strict=True):
        try:
            found.append(minimize(mrf, start, rng=np.random.default_rng(own), **given))
        except KeyboardInterrupt:  # before the search was ready for it
            if not found:
                raise
            break
        if found[-1].status == INTERRUPTED or (stop is not None and stop.stopped):
            break
    for res in found:
        res.lower_bound += offset
    return found


class _Stop:
    """A callback that asks a function of no arguments whether to stop."""

    def __init__(self, asked: Callable[[], bool]) -> None:
        self._asked, self.stopped = asked, False

    def __call__(self, intermediate_result: MAPResult) -> None:
        self.stopped = self.stopped or bool(self._asked())
        if self.stopped:
            raise StopIteration


def _stopping(asked: Any) -> _Stop | None:
    return None if asked is None else _Stop(as_callable(asked, "interrupt_function", "no arguments"))


def _checked_seed(seed: Any) -> int | None:
    return None if seed is None else as_count(seed, "seed")


def _info(found: list[MAPResult], sampleset: Any) -> dict[str, Any]:
    """What a sample set says about the reads."""
    best = float(sampleset.record.energy.min())
    bounds = [res.lower_bound for res in found if not math.isnan(res.lower_bound)]
    if not found:  # a model without variables has one energy
        bounds = [best]
    bound = min(max(bounds), best) if bounds else math.nan  # rounding must not put it above what is found
    return {
        "lower_bound": bound,
        "gap": relative_gap(best, bound),
        "seconds": [float(res.trace["seconds"][-1]) for res in found],
        "iterations": [int(res.nit) for res in found],
        "messages": [str(res.message) for res in found],
    }

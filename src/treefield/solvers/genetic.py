"""A genetic search whose individuals are local minima of T-ICM (proposed at the end of the paper)."""

from __future__ import annotations

import copy
import os

import numpy as np

from treefield.moves.common import call_jump, restore, state_of, total_work
from treefield.moves.reset import UniformJump
from treefield.protocols import Callback, Jump, Learns, Model, Seed, StartOrResult, TreeOptions, Trees, TreeSet
from treefield.results import MAPResult
from treefield.solvers.checkpoint import as_saved_labelling, compact_labellings, open_checkpoint
from treefield.solvers.identity import describe_part
from treefield.solvers.loop import as_limits
from treefield.solvers.merge import merge_into
from treefield.solvers.run import Run, begin
from treefield.validation import as_callable, as_choice, as_count, as_fields, as_model

_MAXITER = 100  # generations where no limit is given


def genetic(
    mrf: Model,
    x0: StartOrResult = "random",
    *,
    population: int = 16,
    crossover: str = "merge",
    mutation: Jump | None = None,
    inner_iter: int = 1,
    trees: Trees | None = None,
    order: str = "fixed",
    bands: int | None = None,
    width: int | None = None,
    maxiter: int | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    memory: str = "auto",
    threads: int | None = None,
) -> MAPResult:
    """Minimise the energy by a genetic search over labellings that T-ICM has improved.

    In every iteration (generation) as many children are made as there are individuals: two parents are drawn, the
    better ones more often; they are crossed, the child is changed a little (mutation) and swept by T-ICM. The best of
    parents and children live on.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        The first individual; the others are mutations of it, or random for "random".
    population : int
        The number of individuals.
    crossover : "merge" or "site"
        "merge" takes from the second parent the components that do not raise the energy of the first, and from the
        mutated child those that do not raise it again. "site" takes every site from either parent at random, as the
        paper proposes.
    mutation : function, optional
        ``mutation(x, mrf, rng)`` returns a changed copy: any jump of `treefield.moves`. Default:
        ``moves.UniformJump(0.1)``.
    inner_iter : int
        Sweeps for every individual and child.
    maxiter, time_limit : optional
        The largest number of generations, and of seconds (overrun by one sweep at most); 100 generations if neither is
        given.
    trees, order, bands, width, memory, threads
        As in `t_icm`.
    patience, callback, rng, progress, checkpoint
        As in `t_ils`.

    Returns
    -------
    MAPResult
        Memory: the tree set's and one labelling per individual and child.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((20, 20, 4)), tf.Potts(0.3))
    >>> tf.genetic(mrf, population=6, maxiter=10, rng=0).fun <= tf.t_icm(mrf, rng=0).fun
    True
    """
    as_model(mrf)
    population = as_count(population, "population", 2)
    as_choice(crossover, "crossover", ("merge", "site"))
    of = "(x, mrf, rng), such as moves.UniformJump()"
    mutation = UniformJump() if mutation is None else as_callable(mutation, "mutation", of)
    inner_iter = as_count(inner_iter, "inner_iter", 1)
    options: TreeOptions = {"order": order, "bands": bands, "width": width, "memory": memory, "threads": threads}
    trees = mrf.backend.search_trees if trees is None else trees
    mrf.backend.check_tree_set(trees, **options)
    limits = as_limits(maxiter, time_limit, callback, patience, progress=progress, default=_MAXITER)
    settings: dict[str, object] = {}
    if checkpoint is not None:
        settings = {name: describe_part(part, name) for name, part in (("mutation", mutation), ("trees", trees))}
        settings |= {"population": population, "crossover": crossover, "inner_iter": inner_iter}
        settings |= {"order": order, "bands": bands}
        if width is not None:  # earlier files have none
            settings["width"] = width
    file, saved = open_checkpoint(checkpoint, "genetic", mrf, settings, {"population": population})
    run, generator = begin("genetic", mrf, x0, rng, limits, saved)
    with run:
        tree_set = mrf.backend.tree_set(trees, **options)
        search = _Population(run, generator, tree_set, copy.deepcopy(mutation), crossover, inner_iter)
        if saved is None:
            search.begin(population, is_random=isinstance(x0, str) and x0 == "random")
            run.record(search.gain(), iterations=0)
        else:
            run.resume(saved, generator, search.restore)
        while run.should_continue():
            search.breed()
            run.record(search.gain())
            run.save(file, generator, search.state)
        run.save(file, generator, search.state)
    return run.result()


class _Population:
    """Individuals in the order of their energies; the run's labelling is the best of them."""

    def __init__(
        self, run: Run, rng: np.random.Generator, trees: TreeSet, mutation: Jump, crossover: str, inner_iter: int
    ) -> None:
        self._run, self._mrf, self._rng, self._trees = run, run.mrf, rng, trees
        self._mutation, self._crossover, self._inner_iter = mutation, crossover, inner_iter
        self._individuals: list[np.ndarray] = []
        self._ranks: list[tuple[int, float]] = []

    def begin(self, size: int, is_random: bool) -> None:
        """The first individuals: the start, and mutations of it or random labellings."""
        x = self._run.x
        individuals = [self._local_search(x.copy())]
        while len(individuals) < size and not self._run.should_truncate():
            young = self._mrf.backend.random_labels(self._rng) if is_random else self._mutate(x)
            individuals.append(self._local_search(young))
        self._select([(self._rank(x), x) for x in individuals], size)

    def breed(self) -> None:
        """One generation."""
        children: list[tuple[tuple[int, float], np.ndarray]] = []
        size = len(self._individuals)
        while len(children) < size and not (children and self._run.should_truncate()):
            first, second = self._parents()
            child = self._breed_child(self._individuals[first], self._individuals[second])
            children.append((self._rank(child), child))
            if isinstance(self._mutation, Learns):
                won = max(0.0, self._ranks[min(first, second)][1] - children[-1][0][1])
                self._mutation.learn(won, total_work(self._mutation, self._mrf, self._inner_iter))
        self._select(children, size)

    def gain(self) -> float:
        """Makes the best individual the run's labelling; returns the change of energy."""
        change = self._ranks[0][1] - self._run.energy
        np.copyto(self._run.x, self._individuals[0])
        return change

    def _parents(self) -> tuple[int, int]:
        """Two different individuals, each the better of two that are drawn."""
        size = len(self._individuals)
        first = int(self._rng.integers(size, size=2).min())
        second = int(self._rng.integers(size - 1, size=2).min())
        return first, second + (second >= first)

    def _breed_child(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if self._crossover == "site":
            mixed = np.where(self._rng.random(first.shape) < 0.5, first, second)
            return self._local_search(self._mutate(mixed))
        child = first.copy()
        merge_into(self._mrf, child, second)
        merge_into(self._mrf, child, self._local_search(self._mutate(child)))
        return child

    def _mutate(self, x: np.ndarray) -> np.ndarray:
        return call_jump(self._mutation, x, self._mrf, self._rng, "mutation")

    def _local_search(self, x: np.ndarray) -> np.ndarray:
        for sweep in range(self._inner_iter):
            if sweep > 0 and self._run.should_truncate():
                break
            self._trees.sweep(x, self._rng, reverse=(self._run.nit + sweep) % 2 == 1)
        return x

    def _rank(self, x: np.ndarray) -> tuple[int, float]:
        finite, forbidden = self._mrf.backend.energy_parts(x)
        return forbidden, finite

    def _select(self, newcomers: list[tuple[tuple[int, float], np.ndarray]], size: int) -> None:
        """Keep the best, each labelling once."""
        ranks = self._ranks + [rank for rank, _ in newcomers]
        individuals = self._individuals + [x for _, x in newcomers]
        order = sorted(range(len(ranks)), key=lambda i: ranks[i])
        kept: list[int] = []
        for i in order:
            twin = any(ranks[i] == ranks[j] and np.array_equal(individuals[i], individuals[j]) for j in kept)
            if not twin:
                kept.append(i)
        kept = (kept + [i for i in order if i not in kept])[:size]
        self._individuals, self._ranks = [individuals[i] for i in kept], [ranks[i] for i in kept]

    def state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """The numbers and arrays that a checkpoint keeps."""
        return {"mutation": state_of(self._mutation)}, {"population": compact_labellings(self._individuals, self._mrf)}

    def restore(self, numbers: object, arrays: dict[str, np.ndarray]) -> None:
        """Set the individuals and the mutation to what `state` returned, or raise an error."""
        (mutation,) = as_fields(numbers, "search", "mutation")
        self._individuals = [as_saved_labelling(x, self._mrf, "population") for x in arrays["population"]]
        if not np.array_equal(self._individuals[0], self._run.x):
            raise ValueError("x is not the first individual of the population")
        restore(self._mutation, mutation)
        self._ranks = [self._rank(x) for x in self._individuals]

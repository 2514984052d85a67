"""How the protocol of a grid model is carried out: by kernels made for plain grids, or by those of graphs."""

from __future__ import annotations

import abc
import copy
from typing import Any

import numpy as np

from treefield.models.model import Model
from treefield.validation import as_flat_input

_LINES = ("bands", "rows-columns", "alternating", "sites")  # the tree sets of lines; the last not of closed ones
_DIAGONAL = 1.6  # times what a sweep takes without diagonals: measured


class EngineModel(Model):
    """What solvers ask of a model, which its engine answers."""

    @property
    @abc.abstractmethod
    def _engine(self) -> Any: ...

    @property
    def paper_trees(self) -> str:
        """The trees of the paper's T-ILS."""
        return self._engine.paper_trees

    @property
    def search_trees(self) -> str:
        """The best trees for any search."""
        return self._engine.search_trees

    @property
    def sweep_work(self) -> float:
        """What a sweep over the trees takes, in sites x labels."""
        return self._engine.sweep_work

    @property
    def dual_work(self) -> float:
        """What an iteration of the dual takes, likewise; there is no such attribute where it is known to be little."""
        return self._engine.dual_work

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part of a checked labelling's energy, and how many forbidden costs it holds."""
        return self._engine.energy_parts(x)

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The connected components of the sites where two int32 labellings differ, and what each changes from x to y.

        Returns the component of every site (-1 where x and y agree), and per component the change of the finite costs
        and of the number of forbidden ones.
        """
        return self._engine.components(x, y)

    def tree_set(
        self,
        trees: Any = None,
        *,
        order: str = "fixed",
        bands: int | None = None,
        memory: str = "auto",
        threads: int | None = None,
    ) -> Any:
        """Trees prepared for exact search: an object whose `sweep(x, rng)` solves each in turn, in place, and returns
        the energy change.

        See `treefield.t_icm` for the parameters.
        """
        return self._engine.tree_set(trees, order=order, bands=bands, memory=memory, threads=threads)

    def check_tree_set(self, trees: Any, **options: Any) -> None:
        """Refuse what `tree_set` would, without any work."""
        self._engine.check_tree_set(trees, **options)

    def whole_tree(self) -> Any:
        """All sites as one tree set, solved exactly by one `sweep`; a `CycleError` if the grid has a cycle."""
        return self._engine.whole_tree()

    @property
    def has_few_edges(self) -> bool:
        """Whether the edges are few enough for a tree, or several."""
        return self._engine.has_few_edges

    @property
    def tree_bytes(self) -> int:
        """The memory that `whole_tree` needs, at most."""
        return self._engine.tree_bytes

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        """The memory that tree sets and the dual need, roughly: by (memory, arithmetic), the best first."""
        return self._engine.search_bytes()

    def beliefs(self) -> Any:
        """Messages between all neighbours, for belief propagation."""
        return self._engine.beliefs()

    def dual(self, arithmetic: str = "auto") -> Any:
        """Tree-reweighted messages: an object whose `iterate(x)` tightens a lower bound on the energy, returns it, and
        writes the labelling that the messages suggest to `x`."""
        return self._engine.dual(arithmetic)

    def sampler(self) -> Any:
        """Every site in turn, those of a plain grid in the order of a checkerboard: an object whose
        `sample(x, temperature, rng)` draws each site's label given its neighbours, in place, and returns the energy
        change."""
        return self._engine.sampler()

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        """Sites of which no edge joins two."""
        return self._engine.independent_sites(rng)

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        """Number the segments of a flat labelling, connected sites of one label: each site's, and how many."""
        return self._engine.segments(flat)

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        """Write each segment's label across a random edge of its border to `out`."""
        self._engine.labels_across(flat, numbers, seed, out)


class PlainEngine:
    """For grids whose neighbours are those along the axes: everything in lanes."""

    paper_trees, search_trees = "rows-columns", "bands"

    def __init__(self, mrf: Any) -> None:
        self._mrf = mrf

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        from treefield.kernels.grid import pairwise_energy, unary_energy

        mrf, flat = self._mrf, x.reshape(-1)
        unary, forbidden = unary_energy(flat, mrf.flat_unary, mrf.labels, mrf.big)
        grid, rule = mrf.kernel_grid(), mrf.rule(np.float64)
        pairwise, more = pairwise_energy(flat, mrf.labels, grid, rule, mrf.big, *_work(grid))
        return unary + pairwise, forbidden + more

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from treefield.kernels.components import join_components, pairwise_changes, unary_changes

        mrf = self._mrf
        grid, rule = mrf.kernel_grid(), mrf.rule(np.float64)
        flat = as_flat_input(x, mrf), as_flat_input(y, mrf, "y")
        numbers = np.empty(len(flat[0]), np.int32)
        count = join_components(*flat, grid.shape, grid.strides, numbers)
        finite, forbidden = np.zeros(count), np.zeros(count, np.int64)
        unary_changes(*flat, mrf.flat_unary, mrf.labels, numbers, mrf.big, finite, forbidden)
        pairwise_changes(*flat, mrf.labels, grid, rule, numbers, mrf.big, finite, forbidden, *_work(grid))
        return numbers.reshape(x.shape), finite, forbidden

    def tree_set(self, trees: Any, **options: Any) -> Any:
        from treefield.trees.sets import tree_set

        return tree_set(self._mrf, trees, **options)

    def check_tree_set(self, trees: Any, **options: Any) -> None:
        from treefield.trees.sets import check_options

        check_options(self._mrf, trees, **options)

    def whole_tree(self) -> Any:
        from treefield.trees.forests import ForestSet

        return ForestSet(self._mrf, [np.arange(self._mrf.size)], dtype=np.float64)  # that it is exact must be true

    @property
    def sweep_work(self) -> float:
        return float(len(self._mrf.shape) * self._mrf.size * self._mrf.labels)

    @property
    def has_few_edges(self) -> bool:
        from treefield.trees.forests import has_few_edges

        return has_few_edges(self._mrf)

    @property
    def tree_bytes(self) -> int:
        from treefield.trees.forests import forest_bytes

        return forest_bytes(self._mrf)

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        from treefield.trees.dual import dual_bytes
        from treefield.trees.fixed_point import possible
        from treefield.trees.sets import tree_set_bytes

        arithmetics = list(possible(self._mrf))
        packed = tree_set_bytes(self._mrf, "auto")
        return {
            ("auto", "auto"): packed + dual_bytes(self._mrf, arithmetics),
            ("auto", arithmetics[0]): packed + dual_bytes(self._mrf, arithmetics[:1]),
            ("auto", None): packed,
            ("low", None): tree_set_bytes(self._mrf, "low"),
        }

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        from treefield.kernels.regions import label_segments

        grid, numbers = self._mrf.kernel_grid(), np.empty(flat.size, np.int32)
        return numbers, label_segments(flat, grid.shape, grid.strides, numbers)

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        from treefield.kernels.regions import labels_beside

        grid = self._mrf.kernel_grid()
        labels_beside(flat, grid.strides, grid.shape, numbers, seed, np.zeros(len(out), np.uint64), out)

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        sites = np.arange(self._mrf.size).reshape(self._mrf.shape)
        return sites[tuple(slice(None, None, 2) for _ in self._mrf.shape)].reshape(-1)

    def beliefs(self) -> Any:
        from treefield.trees.beliefs import Beliefs

        return Beliefs(self._mrf)

    def dual(self, arithmetic: str) -> Any:
        from treefield.trees.dual import Dual

        return Dual(self._mrf, arithmetic)

    def sampler(self) -> Any:
        from treefield.trees.checkerboard import Checkerboard

        return Checkerboard(self._mrf)


class GraphEngine:
    """For all other grids: the graph of the same edges, which takes labellings of the grid's shape.

    The tree sets of lines are those of plain grids where lines that run together do not touch: with diagonals in 2-D if
    nothing is periodic, and without diagonals always. Closed lines are cut open at one site.
    """

    def __init__(self, mrf: Any) -> None:
        from treefield.models.graph import GraphMRF

        self._mrf = mrf
        self._has_lines = mrf.connectivity == 1 or (len(mrf.shape) == 2 and not any(mrf.periodic))
        self._lines = _LINES if mrf.connectivity == 2 else _LINES[:-1]
        known = PlainEngine if self._has_lines else GraphMRF
        self.paper_trees, self.search_trees = known.paper_trees, known.search_trees
        self._made: Any = None

    @property
    def _graph(self) -> Any:
        if self._made is None:
            graph = self._mrf.to_graph()
            graph.kernel_graph()  # which the copy then has, too
            self._made = copy.copy(graph)
            self._made.shape = self._mrf.shape
        return self._made

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        return self._graph.energy_parts(x.reshape(-1))

    def tree_set(self, trees: Any, **options: Any) -> Any:
        from treefield.trees.sets import tree_set

        self.check_tree_set(trees, **options)
        if self._by_lines(trees):
            return tree_set(self._mrf, trees, **options)
        return self._graph.tree_set(trees, **options)

    def check_tree_set(self, trees: Any, **options: Any) -> None:
        from treefield.trees import induced, sets

        if self._by_lines(trees):
            sets.check_options(self._mrf, trees, **options)
            return
        names = (*(self._lines if self._has_lines else ()), *induced.NAMES)
        if isinstance(trees, str) and trees not in names:
            listed = ", ".join(map(repr, dict.fromkeys(names)))
            raise ValueError(
                f"trees of this grid must be one of {listed}, or a list of site-index arrays: it is not "
                f"plain, but {self._mrf.joined_by}; got {trees!r}"
            )
        if options["bands"] is not None or options["memory"] == "low":
            raise ValueError(
                f'bands and memory="low" go with rows and columns, got trees={trees!r} on a grid that is '
                f"{self._mrf.joined_by}"
            )
        induced.check_options(self._mrf, trees, **options)

    def _by_lines(self, trees: Any) -> bool:
        return self._has_lines and (trees is None or (isinstance(trees, str) and trees in self._lines))

    @property
    def sweep_work(self) -> float:
        lines = float(len(self._mrf.shape) * self._mrf.size * self._mrf.labels)
        if not self._has_lines:
            return self._graph.sweep_work
        return _DIAGONAL * lines if self._mrf.connectivity == 2 else lines

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        from treefield.trees.graph_messages import message_bytes
        from treefield.trees.sets import tree_set_bytes

        if not self._has_lines:
            return self._graph.search_bytes()
        packed = tree_set_bytes(self._mrf, "auto")
        needs: dict[tuple[str, str | None], int] = {("auto", "auto"): packed + message_bytes(self._graph)}
        return needs | {("auto", None): packed, ("low", None): tree_set_bytes(self._mrf, "low")}

    def __getattr__(self, name: str) -> Any:
        """All else is the graph's to answer."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._graph, name)


def _work(grid: Any) -> tuple[np.ndarray, np.ndarray]:
    """Space for eight labels and eight weights, for kernels."""
    return np.zeros(8, np.int32), np.zeros(8, grid.weights.dtype)

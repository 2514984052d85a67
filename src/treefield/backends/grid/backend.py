"""How the questions of solvers about a grid are answered, where neighbours are those along the axes."""

from __future__ import annotations

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.dual import GridDual, dual_bytes
from treefield.backends.grid.elimination import eliminate_grid
from treefield.backends.grid.fixed_point import exact_arithmetics, possible_arithmetics
from treefield.backends.grid.forests import GridForests, forest_bytes
from treefield.backends.grid.lines import solve_lines_alone
from treefield.backends.grid.marginals import LineMarginals
from treefield.backends.grid.messages import GridBeliefs
from treefield.backends.grid.regions import GridBoxes
from treefield.backends.grid.ribbons import search_widths
from treefield.backends.grid.sampler import Checkerboard
from treefield.backends.grid.tree_sets import check_options, tree_set, tree_set_bytes
from treefield.protocols import Trees, TreeSet, WideTrees
from treefield.validation import as_flat_input


class GridBackend(GridCosts):
    """A grid without diagonal or periodic edges, answered by kernels over lines: `treefield.protocols.Backend`."""

    paper_trees, search_trees = "rows-columns", "bands"
    balls = None
    dual_work = None

    @property
    def boxes(self) -> GridBoxes:
        """The boxes of the grid, for jumps."""
        return GridBoxes(self)

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part of the energy, and the number of forbidden costs in it."""
        from treefield.kernels.grid.energy import pairwise_energy, unary_energy

        flat, grid = x.reshape(-1), self.kernel_grid()
        unary, forbidden = unary_energy(flat, self.flat_unary, self.n_labels, self.forbidden_cost)
        work = np.zeros(8, np.int32), np.zeros(8, grid.weights.dtype)
        rule = self.rule(np.float64)
        pairwise, more = pairwise_energy(flat, self.n_labels, grid, rule, self.forbidden_cost, *work)
        return unary + pairwise, forbidden + more

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The connected components of the sites where `x` and `y` differ: see the protocol."""
        from treefield.kernels.grid.components import join_components, pairwise_changes, unary_changes

        grid, rule, forbidden_cost = self.kernel_grid(), self.rule(np.float64), self.forbidden_cost
        flat = as_flat_input(x, self), as_flat_input(y, self, "y")
        numbers = np.empty(len(flat[0]), np.int32)
        count = join_components(*flat, grid.shape, grid.strides, numbers)
        changes = np.zeros(count), np.zeros(count, np.int64)
        work = np.zeros(8, np.int32), np.zeros(8, grid.weights.dtype)
        unary_changes(*flat, self.flat_unary, self.n_labels, numbers, forbidden_cost, *changes)
        pairwise_changes(*flat, self.n_labels, grid, rule, numbers, forbidden_cost, *changes, *work)
        return numbers.reshape(x.shape), *changes

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        """The segment of each site of a flat labelling, and the number of segments."""
        from treefield.kernels.grid.regions import label_segments

        grid, numbers = self.kernel_grid(), np.empty(flat.size, np.int32)
        return numbers, label_segments(flat, grid.shape, grid.strides, numbers)

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        """Write the label across a random edge of each segment's border to `out`."""
        from treefield.kernels.grid.regions import labels_across

        grid = self.kernel_grid()
        labels_across(flat, grid.strides, grid.shape, numbers, seed, np.zeros(len(out), np.uint64), out)

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        """Every second site along each axis."""
        sites = np.arange(self.size).reshape(self.shape)
        return sites[tuple(slice(None, None, 2) for _ in self.shape)].reshape(-1)

    def check_tree_set(
        self, trees: Trees | None, *, order: str, bands: int | None, width: int | None, memory: str, threads: int | None
    ) -> None:
        """Raise what `tree_set` would raise for these arguments, without its work."""
        check_options(self, trees, order, bands, width, memory, threads)

    def tree_set(
        self,
        trees: Trees | None = None,
        *,
        order: str = "fixed",
        bands: int | None = None,
        width: int | None = None,
        memory: str = "auto",
        threads: int | None = None,
    ) -> TreeSet:
        """Trees prepared for exact search; `treefield.t_icm` explains the parameters."""
        return tree_set(self, trees, order=order, bands=bands, width=width, memory=memory, threads=threads)

    def whole_tree(self) -> GridForests:
        """All sites as one tree, solved exactly by one sweep; raises `CycleError` if there is a cycle."""
        return GridForests(self, [np.arange(self.size)], dtype=np.float64)  # float32 would not be exact

    def solve_lines(self, nu: float, axis: int) -> np.ndarray:
        """The labelling of least energy without the edges between the lines along an axis, unary costs times `nu`."""
        return solve_lines_alone(self, nu, axis)

    def eliminate(self, max_entries: float, max_bytes: float, threads: int) -> np.ndarray | None:
        """The labelling of least energy by elimination; None if its predicted size exceeds a limit."""
        return eliminate_grid(self, max_entries, max_bytes, threads)

    @property
    def sweep_work(self) -> float:
        """The work of a sweep over the trees, in sites x labels."""
        return float(len(self.shape) * self.size * self.n_labels)

    @property
    def wider_trees(self) -> list[WideTrees]:
        """The tree sets that a search should try besides `search_trees`, the narrowest first."""
        return search_widths(self)

    @property
    def has_few_edges(self) -> bool:
        """Whether there are fewer edges than sites, as in a forest."""
        grid = self.kernel_grid()
        if not grid.uniform:
            return int(np.count_nonzero(grid.weights)) < self.size
        return sum(n > 1 and weight != 0 for n, weight in zip(self.shape, grid.weights, strict=True)) <= 1

    @property
    def tree_bytes(self) -> int:
        """The memory that `whole_tree` needs, at most."""
        return forest_bytes(self)

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        """Memory for tree sets and the dual, roughly, by (memory, arithmetic): the fastest first."""
        arithmetics = list(possible_arithmetics(self))
        packed = tree_set_bytes(self, "auto")
        return {
            ("auto", "exact"): packed + dual_bytes(self, exact_arithmetics(self)),
            ("auto", "auto"): packed + dual_bytes(self, arithmetics),
            ("auto", arithmetics[0]): packed + dual_bytes(self, arithmetics[:1]),
            ("auto", None): packed,
            ("low", None): tree_set_bytes(self, "low"),
        }

    def beliefs(self) -> GridBeliefs:
        """Messages of belief propagation."""
        return GridBeliefs(self)

    def dual(self, arithmetic: str = "auto") -> GridDual:
        """Tree-reweighted messages: see `GridDual` for the arithmetics."""
        return GridDual(self, arithmetic)

    def sampler(self) -> Checkerboard:
        """Single sites, drawn given their neighbours."""
        return Checkerboard(self)

    def tree_sampler(self) -> None:
        """Grids sample single sites."""
        return None

    def marginals(self, axis: int) -> LineMarginals:
        """Min-marginals along an axis."""
        return LineMarginals(self, axis)

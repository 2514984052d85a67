"""The contracts between the parts of treefield: what a solver may ask of a model, and of what it is made of.

A `Model` is what a user builds; its `Backend` answers the questions of solvers and moves. There is one family of
backends for grids and one for graphs, and `tests/contracts` runs the same checks over all of them. Labellings are
C-contiguous int32 arrays of the model's shape wherever the text does not say otherwise. A capability that not every
backend has is an attribute that may be None or False, never a missing attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypedDict, Union, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from treefield.results import MAPResult

Start = ArrayLike | Literal["random", "unary", "scan-line"]
StartOrResult = Union[Start, "MAPResult"]
Trees = str | Sequence[ArrayLike]
Seed = int | np.random.Generator | None
Callback = Callable[["MAPResult"], object]  # called after each iteration; raise StopIteration to stop


class TreeOptions(TypedDict):
    """How the trees of a tree set are ordered, packed and shared out; `treefield.t_icm` explains them."""

    order: str
    bands: int | None
    width: int | None
    memory: str
    threads: int | None


class Limits(TypedDict):
    """When a search ends, and whether it shows its progress: the keywords of every solver, checked."""

    maxiter: int | None
    time_limit: float | None
    callback: Callback | None
    patience: int | None
    tol: float | None
    progress: bool


class Labels(Protocol):
    """Which labellings a model has."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a labelling."""

    @property
    def n_labels(self) -> int:
        """The largest number of labels of a site."""

    @property
    def label_counts(self) -> np.ndarray:
        """The number of labels of each site."""

    @property
    def has_uniform_labels(self) -> bool:
        """Whether all sites have the same number of labels."""

    @property
    def mask(self) -> np.ndarray | None:
        """True where there is a site; None if every site exists."""


@runtime_checkable
class Sweeps(Protocol):
    """A local search in sweeps: what T-ILS needs after a jump."""

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place; return the change of energy.

        With `check` a tree keeps its labels unless the new ones, evaluated in float64, do not raise the energy: the
        result is never positive. With `reverse` the trees are solved in the opposite order, the lines of a grid within
        their axis.
        """


class TreeSet(Sweeps, Protocol):
    """Trees prepared for exact search, swept again and again."""

    has_all_cores: bool  # False while another thread needs a core: sweep with one thread
    patience: int  # sweeps without a gain that make a local minimum: 1 unless the trees are drawn afresh


class WideTrees(NamedTuple):
    """A tree set that is stronger than the usual one, and slower."""

    trees: str
    width: int
    states: float  # at each step of its exact search
    work: float  # of a sweep, in sites x labels
    memory: str  # the `memory` option for which `bytes` is estimated
    bytes: int  # memory of the workspace of one thread


class DualMessages(NamedTuple):
    """The messages of a dual. That of another model can start from them: no messages make a bound untrue."""

    layout: str  # the same for models with the same sites, labels and edges
    scale: float  # messages are costs times this
    arithmetic: str
    values: np.ndarray  # all messages as bytes


class Dual(Protocol):
    """Messages that tighten a lower bound on the energy."""

    bound: float
    margin: float  # how much of the gap rounding in float64 may account for

    def iterate(self, x: np.ndarray) -> float:
        """Pass messages once; write the decoded labelling to `x` and return the bound, which never falls."""

    def refine(self, gap: float) -> bool:
        """Switch to the next more exact arithmetic, keeping the messages; False if none would help to close the gap."""

    def get_messages(self) -> DualMessages:
        """The messages, for the dual of a model that differs in its costs."""

    def start_from(self, messages: DualMessages) -> bool:
        """Start from what `get_messages` returned, before any iteration; False if it has another layout.

        The bound is not taken over: it is proved again, for the costs of this model.
        """

    def get_state(self) -> tuple[str, np.ndarray]:
        """The arithmetic, and all messages as bytes, for a checkpoint."""

    def set_state(self, arithmetic: str, messages: np.ndarray, bound: float) -> None:
        """Continue from what `get_state` returned; raise a ValueError for anything else."""


class Beliefs(Protocol):
    """Messages of belief propagation between all neighbours, 0 at first."""

    def update_all(self, damping: float) -> float:
        """Update all messages at once from the old ones; return the largest change of a message."""

    def update_in_turn(self, damping: float) -> float:
        """Update messages one after the other, forth and back; return the largest change of a message."""

    def decode(self, x: np.ndarray) -> None:
        """Write each site's label of least belief (Eq. 6) to `x`."""

    def decode_in_turn(self, x: np.ndarray) -> None:
        """Write labels to `x` one site after the other, each given the labels before it."""


class Cools(Protocol):
    """Labels drawn given their neighbours, colder and colder."""

    def cool(self, x: np.ndarray, temperatures: np.ndarray, rng: np.random.Generator) -> float:
        """Draw once for each temperature, all above 0, in place; return the change of energy."""


class Sampler(Cools, Protocol):
    """Labels of single sites, drawn given their neighbours."""

    def sample(self, x: np.ndarray, temperature: float, rng: np.random.Generator) -> float:
        """Draw once, in place; return the change of energy.

        Temperature 0 takes the cheapest label, the lowest among equals; infinity takes any that is not forbidden.
        """


class Boxes(Protocol):
    """Boxes of a grid: corners ``low`` (included) and ``high`` (excluded), [box][axis], always three axes."""

    @property
    def shape(self) -> np.ndarray:
        """The grid's three lengths, 1 for a missing first axis."""

    def fill(self, y: np.ndarray, low: np.ndarray, high: np.ndarray, labels: np.ndarray) -> None:
        """Set each box to its label, in place."""

    def fill_best(self, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Set each box, in turn, to the constant label that costs least there, in place.

        Only edges between neighbours along the axes count, also on grids that have others.
        """

    def scramble(self, y: np.ndarray, low: np.ndarray, high: np.ndarray, seed: np.uint64) -> None:
        """Set every site of the boxes to a random label, in place."""


class Balls(Protocol):
    """Balls of a graph: a centre and the sites nearest to it."""

    def draw(self, centres: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The end of each ball in the array of sites, and that array."""

    def neighbours(self, centres: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random neighbour of each centre; the centre itself if it has none."""

    def fill(self, y: np.ndarray, ends: np.ndarray, sites: np.ndarray, labels: np.ndarray) -> None:
        """Set each ball to its label where a site has that label, in place."""

    def fill_best(self, y: np.ndarray, ends: np.ndarray, sites: np.ndarray) -> None:
        """Set each ball, in turn, to the constant label that costs least there, in place."""

    def scramble(self, y: np.ndarray, sites: np.ndarray, seed: np.uint64) -> None:
        """Set every site to a random label, in place."""


class Marginals(Protocol):
    """Min-marginals of the lines along one axis of a grid."""

    def draw(self, x: np.ndarray, closeness: float, temperature: float, seed: int) -> tuple[float, int]:
        """Draw labels, in place, where the two best min-marginals of a site differ by at most `closeness`.

        Returns the sum of the differences between the two best, and the number of sites that have two.
        """


class Backend(Labels, Protocol):
    """How the questions of solvers and moves about one model are answered."""

    @property
    def paper_trees(self) -> str:
        """The trees of the paper's T-ILS."""

    @property
    def search_trees(self) -> str:
        """The best trees for any search."""

    @property
    def size(self) -> int:
        """The number of sites."""

    @property
    def scale(self) -> float:
        """The largest magnitude of a finite cost."""

    @property
    def forbidden_cost(self) -> float:
        """The finite cost that replaces +inf: more than all finite costs can differ by. inf if nothing is forbidden."""

    @property
    def is_whole(self) -> bool:
        """Whether every energy is an integer."""

    @property
    def rounding(self) -> float:
        """How far rounding can raise the energy that an exact method finds above the exact minimum."""

    @property
    def sweep_work(self) -> float:
        """The work of a sweep over the trees, in sites x labels."""

    @property
    def wider_trees(self) -> list[WideTrees]:
        """The tree sets that a search should try besides `search_trees`, the narrowest first."""

    @property
    def dual_work(self) -> float | None:
        """The work of one iteration of the dual, in sites x labels; None where it is close to that of a sweep."""

    @property
    def has_few_edges(self) -> bool:
        """Whether there are fewer edges than sites, as in a forest."""

    @property
    def has_lines(self) -> bool:
        """Whether the sites are those of a grid."""

    @property
    def tree_bytes(self) -> int:
        """The memory that `whole_tree` needs, at most."""

    @property
    def boxes(self) -> Boxes | None:
        """The boxes of a grid; None for graphs."""

    @property
    def balls(self) -> Balls | None:
        """The balls of a graph; None for grids."""

    def fingerprint_parts(self) -> list[object]:
        """Arrays and values that together identify the model."""

    def best_labels(self) -> np.ndarray:
        """Each site's label of least unary cost."""

    def random_labels(self, rng: np.random.Generator, sites: np.ndarray | None = None) -> np.ndarray:
        """A random label for each site, or for each of the given flat indices."""

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        """Flat indices of sites no two of which share an edge."""

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part of the energy, and the number of forbidden costs in it."""

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The connected components of the sites where `x` and `y` differ.

        Returns the component of every site (-1 where they agree) and, for each component, what it adds to the finite
        part of the energy and to the number of forbidden costs when it changes from `x` to `y`.
        """

    def apply_components(self, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, taken: np.ndarray) -> None:
        """Set `x` to `y`, in place, on the components that are taken."""

    def hash_components(
        self, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """64-bit hashes of each component's sites with their labels in `x`, and with those in `y`."""

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        """The segment (connected sites of one label) of each site of a flat labelling, and the number of segments."""

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        """Write the label across a random edge of each segment's border to `out`."""

    def check_tree_set(
        self, trees: Trees | None, *, order: str, bands: int | None, width: int | None, memory: str, threads: int | None
    ) -> None:
        """Raise what `tree_set` would raise for these arguments, without its work."""

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

    def whole_tree(self) -> TreeSet:
        """All sites as one tree, solved exactly by one sweep; raises `CycleError` if there is a cycle."""

    def solve_lines(self, nu: float, axis: int) -> np.ndarray:
        """The labelling of least energy without the edges between the lines along an axis, unary costs times `nu`."""

    def eliminate(self, max_entries: float, max_bytes: float, threads: int) -> np.ndarray | None:
        """The labelling of least energy by elimination; None if its predicted size exceeds a limit.

        `max_entries` limits the sum over all tables, `max_bytes` the peak memory.
        """

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        """Memory for tree sets and the dual, roughly, by (memory, arithmetic): the fastest first."""

    def beliefs(self) -> Beliefs:
        """Messages of belief propagation."""

    def dual(self, arithmetic: str = "auto") -> Dual:
        """Tree-reweighted messages in "int16", "float32" or "float64".

        "auto" begins with the fastest that holds the costs and ends with the first that is exact enough for most uses;
        "exact" may go on to float64, to close the gap to rounding.
        """

    def sampler(self) -> Sampler:
        """Single sites, drawn given their neighbours."""

    def tree_sampler(self) -> Cools | None:
        """Whole trees, drawn given their neighbours; None for grids."""

    def marginals(self, axis: int) -> Marginals | None:
        """Min-marginals along an axis; None for graphs."""


@runtime_checkable
class Model(Protocol):
    """A Markov random field in memory: `GridMRF` or `GraphMRF`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a labelling."""

    @property
    def size(self) -> int:
        """The number of sites."""

    @property
    def n_labels(self) -> int:
        """The largest number of labels of a site."""

    @property
    def backend(self) -> Backend:
        """The object that answers the questions of solvers and moves."""

    def energy(self, x: ArrayLike) -> float:
        """The energy of a labelling, summed in float64; inf if it contains a forbidden cost."""


@runtime_checkable
class TiledModel(Protocol):
    """A Markov random field larger than memory: `TiledMRF`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a labelling."""

    @property
    def n_labels(self) -> int:
        """The number of labels."""

    def search_tiles(
        self,
        method: str,
        x0: Start,
        rng: np.random.Generator,
        limits: Limits,
        options: Mapping[str, object],
    ) -> MAPResult:
        """Search tile by tile with a method that `minimize` knows, within checked limits."""


class Jump(Protocol):
    """A step of T-ILS away from a local minimum: any function with this signature."""

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of the labelling `x`."""


class Accept(Protocol):
    """Which labelling T-ILS continues from: any function with this signature."""

    def __call__(self, mrf: Model, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float | None:
        """Make `x`, in place, the labelling to continue from; return the change of energy, None for a backtrack."""


@runtime_checkable
class Decides(Protocol):
    """An acceptance that decides on changes one by one: `moves.Greedy`, `moves.Metropolis`, `moves.Always`."""

    def decide(self, finite: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Which changes to take, given what each adds to the finite costs and to the number of forbidden ones."""


@runtime_checkable
class Learns(Protocol):
    """A jump that adapts to what it has won."""

    def learn(self, won: float, work: float) -> None:
        """Note the energy that the last jump won, and the work it took in sites x labels."""


@runtime_checkable
class CountsWork(Protocol):
    """A jump that knows its own work."""

    def work(self, mrf: Model) -> float:
        """The work of the last jump, in sites x labels."""


@runtime_checkable
class HasState(Protocol):
    """A move whose state a checkpoint must keep."""

    def get_state(self) -> object:
        """The state, made of what JSON can hold."""

    def set_state(self, state: object) -> None:
        """Restore a state that `get_state` returned; raise an error for any other."""

"""Every implementation of every protocol, with the obvious slow version of it: a new one is one line in a table.

Models are small enough to enumerate and have real-valued costs without ties, so that each search has one right answer.
Sites are flat indices throughout. Nothing compiles or computes at import: tables hold functions.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import naive
import naive_graph
import naive_lattice
import treefield as tf
from small_graphs import random_graph
from treefield import moves


@dataclass(frozen=True, eq=False)
class Example:
    """A model, and its costs as a list of edges. `periodic` has one entry for each axis of a grid."""

    mrf: tf.GridMRF | tf.GraphMRF
    model: naive_graph.Model
    periodic: tuple[bool, ...] = ()

    @functools.cached_property
    def labellings(self):
        """Every labelling, one per row."""
        return np.array(list(naive_graph.labellings(self.model)), np.int32)

    @functools.cached_property
    def energies(self):
        return self.energies_of(self.labellings)

    @property
    def minimum(self):
        return float(self.energies.min())

    def energies_of(self, labellings):
        """The energies of many labellings, one per row."""
        total = np.full(len(labellings), float(self.model.offset))
        for i, costs in enumerate(self.model.unaries):
            total += np.array(costs)[labellings[:, i]]
        for (i, j), table in zip(self.model.edges, self.model.tables, strict=True):
            total += np.array(table)[labellings[:, i], labellings[:, j]]
        return total

    def energy(self, x):
        return float(self.energies_of(x.reshape(1, -1))[0])

    def solve(self, x, sites):
        """The best labels of some sites while all others keep theirs, in place, by enumeration."""
        choices = list(itertools.product(*(range(len(self.model.unaries[i])) for i in sites)))
        every = np.repeat(x.reshape(1, -1), len(choices), axis=0)
        every[:, sites] = choices
        x.reshape(-1)[:] = every[self.energies_of(every).argmin()]

    def random(self, seed):
        return self.mrf.backend.random_labels(np.random.default_rng(seed))


# --- models -----------------------------------------------------------------------------------------------------------


def grid(shape, labels=2, *, connectivity=1, periodic=None, masked=False, table=False, forbidden=False, seed=0):
    rng = np.random.default_rng(seed)
    unary = rng.uniform(0, 3, (*shape, labels))
    if forbidden:
        unary[..., 1:][rng.random((*shape, labels - 1)) < 0.3] = math.inf
    mask = rng.random(shape) < 0.75 if masked else None
    shapes = naive_lattice.edge_shapes(shape, connectivity, periodic)
    weights = [rng.uniform(-1, 2, s) for s in shapes]
    costs = rng.uniform(-1, 1, (labels, labels)) if table else 1 - np.eye(labels)
    tables = [weight[..., None, None] * costs for weight in weights]
    edges = naive_lattice.edges(shape, tables, connectivity, periodic, mask)
    mrf = tf.GridMRF(
        unary,
        tf.Table(costs) if table else tf.Potts(1.0),
        weights=weights,
        mask=mask,
        connectivity=connectivity,
        periodic=False if periodic is None else periodic,
    )
    if masked:
        unary = np.where(mask[..., None], unary, 0.0)
    pairs = [(int(np.ravel_multi_index(i, shape)), int(np.ravel_multi_index(j, shape))) for i, j, _ in edges]
    model = naive_graph.Model(unary.reshape(-1, labels).tolist(), pairs, [cost.tolist() for _, _, cost in edges])
    return Example(mrf, model, periodic or (False,) * len(shape))


def graph(seed, kind, shape="any", *, forbidden=False, sites=None):
    case = random_graph(seed, kind, shape, forbidden, integer=False, most=20_000, sites=sites)
    mrf, model = case.mrf(), case.merged
    kept = range(len(model.edges)) if case.weights is None else np.flatnonzero(case.weights)  # weight 0: no edge
    return Example(mrf, model._replace(edges=[model.edges[k] for k in kept], tables=[model.tables[k] for k in kept]))


MODELS = {
    "grid": lambda: grid((3, 4)),
    "grid, 3 labels, table": lambda: grid((2, 4), 3, table=True),
    "grid, 3-D": lambda: grid((2, 3, 2)),
    "grid, masked": lambda: grid((3, 4), masked=True),
    "grid, forbidden labels": lambda: grid((3, 4), forbidden=True),
    "grid, one row": lambda: grid((1, 6), 3),
    "8 neighbours": lambda: grid((3, 4), connectivity=2),
    "8 neighbours, masked": lambda: grid((3, 4), connectivity=2, masked=True),
    "26 neighbours": lambda: grid((2, 3, 2), connectivity=2),
    "periodic along one axis": lambda: grid((3, 4), periodic=(False, True)),
    "periodic along all axes": lambda: grid((4, 4), periodic=(True, True)),
    "periodic, 8 neighbours": lambda: grid((3, 4), connectivity=2, periodic=(True, True)),
    "graph, Potts": lambda: graph(3, "potts", "dense"),
    "graph, linear": lambda: graph(1, "linear"),
    "graph, tables": lambda: graph(7, "tables", "dense"),
    "graph, forbidden labels": lambda: graph(7, "tables", "dense", forbidden=True),
    "graph, ring": lambda: graph(2, "table", "ring"),
    "graph, tree": lambda: graph(5, "potts", "tree"),
    "spins": lambda: graph(0, "spins", "dense", sites=9),
    "spins, tree": lambda: graph(3, "spins", "tree"),
}


@functools.cache
def example(name):
    return MODELS[name]()


def is_forest(name):
    """Whether a model has no cycle; edges of weight 0 count."""
    model = example(name).model
    return naive_graph.is_forest(model, range(len(model.unaries)))


GRIDS = [name for name in MODELS if not name.startswith(("graph", "spins"))]
GRAPHS = [name for name in MODELS if name.startswith(("graph", "spins"))]
LINES = ["grid", "grid, 3 labels, table", "grid, 3-D", "grid, masked", "grid, one row"]


# --- tree sets --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeSetCase:
    """A tree set of a model, by name or by sites. `order(example, trees, reverse)` lists its trees as a sweep solves
    them; None where that is random."""

    model: str
    trees: str | list[list[int]]
    order: Callable | None
    options: dict = field(default_factory=dict)

    def __str__(self):
        options = "".join(f", {name}={value}" for name, value in self.options.items())
        return f"{self.model}: {self.trees if isinstance(self.trees, str) else 'own lists'}{options}"

    def build(self):
        backend = example(self.model).mrf.backend
        return backend.whole_tree() if self.trees == "whole" else backend.tree_set(self.trees, **self.options)


def _flat(shape, tree):
    return [int(np.ravel_multi_index(i, shape)) for i in tree]


def line_order(schedule):
    """Lines axis by axis; with `reverse` the last of each axis comes first. Of a closed line the first site stays."""

    def order(example, trees, reverse):
        shape, found = example.mrf.shape, []
        lines = [line for step in schedule(shape) for line in step]
        for axis in range(len(shape) - 1, -1, -1):
            own = lines[: math.prod(shape) // shape[axis]]  # schedules go axis by axis, the last axis first
            lines = lines[len(own) :]
            own = [line[1:] if example.periodic[axis] else line for line in own]
            found += [_flat(shape, line) for line in (own[::-1] if reverse else own)]
        if all(example.periodic):
            found.insert(0 if reverse else len(found), [0])
        return found

    return order


def site_rows(example, trees, reverse):
    rows = np.arange(example.mrf.size).reshape(-1, example.mrf.shape[-1])
    return rows[:: -1 if reverse else 1].reshape(-1, 1).tolist()


def comb_order(example, trees, reverse):
    *planes, rows, columns = example.mrf.shape
    combs = naive.combs((rows, columns))
    if planes:
        halves = [range(parity, planes[0], 2) for parity in (0, 1)]
        combs = [[(plane, *i) for plane in half for i in tree] for half in halves for tree in combs]
    found = [_flat(example.mrf.shape, tree) for tree in combs]
    return found[::-1] if reverse else found


def own_lists(lists):
    return lambda example, trees, reverse: lists[::-1] if reverse else lists


def graph_sites(example, trees, reverse):
    sites = [[i] for i in range(example.mrf.size)]
    return sites[::-1] if reverse else sites


def forest_order(example, trees, reverse):
    """The trees of each forest in turn, as the tree set has drawn them for its last sweep, and the sites in none."""
    found = []
    for forest in trees._forests:
        found += [tree.tolist() for tree in np.split(forest.sites, forest.forest.trees[1:-1])]
    found += [[int(i)] for i in trees._rest]
    return found[::-1] if reverse else found


def whole_tree(example, trees, reverse):
    return [list(range(example.mrf.size))]


ROWS_COLUMNS = line_order(naive.rows_columns)
ALTERNATING = line_order(naive.alternating)
BANDS = line_order(lambda shape: naive.bands(shape, 8))
TWO_LISTS = [[0, 1, 2], [2, 3]]

PAIRS = [[0, 1], [1, 2], [3]]

LINE_ORDERS = [("rows-columns", ROWS_COLUMNS), ("alternating", ALTERNATING), ("bands", BANDS)]
LINE_MODELS = [*LINES, "8 neighbours", "8 neighbours, masked", "periodic along one axis", "periodic along all axes"]
LINE_SETS = [(model, *named) for model in LINE_MODELS for named in LINE_ORDERS]

COMB_MODELS = ["grid", "grid, 3 labels, table", "grid, 3-D", "grid, masked"]
WHOLE_RIBBONS = [("grid", 3), ("grid, 3 labels, table", 2), ("grid, 3-D", 4), ("grid, masked", 4), ("8 neighbours", 3)]
FOREST_MODELS = [name for name in (*GRAPHS, "26 neighbours", "periodic, 8 neighbours") if "forbidden" not in name]
FORESTS = ["trees", "random-trees", "forests", "random-forests"]

RIBBONS = [(model, "ribbons", None) for model in LINE_MODELS]  # borders are drawn: no order is known

TREE_SETS = [
    *(TreeSetCase(*case) for case in LINE_SETS),
    *(TreeSetCase(*case, {"memory": "low"}) for case in LINE_SETS),
    *(TreeSetCase(model, trees, None, {"order": "random"}) for model, trees, _ in LINE_SETS),
    TreeSetCase("grid, forbidden labels", "bands", None),
    *(TreeSetCase(*case, {"width": width}) for case in RIBBONS for width in (None, 1, 2)),
    *(TreeSetCase(*case, {"width": 2, "memory": "low"}) for case in RIBBONS),
    *(TreeSetCase(*case, {"width": 2, "order": "random"}) for case in RIBBONS),
    *(TreeSetCase("grid, forbidden labels", "ribbons", None, {"width": width}) for width in (1, 2)),
    *(TreeSetCase(model, "ribbons", whole_tree, {"width": width}) for model, width in WHOLE_RIBBONS),
    *(TreeSetCase(model, "combs", comb_order) for model in COMB_MODELS),
    TreeSetCase("grid", "combs", None, {"order": "random"}),
    *(TreeSetCase(model, "sites", site_rows) for model in (*LINES, "8 neighbours", "8 neighbours, masked")),
    TreeSetCase("grid", TWO_LISTS, own_lists(TWO_LISTS)),
    TreeSetCase("grid", TWO_LISTS, None, {"order": "random"}),
    TreeSetCase("8 neighbours", [[0, 2], [5, 4]], own_lists([[0, 2], [5, 4]])),
    TreeSetCase("grid, one row", "whole", whole_tree),
    *(TreeSetCase(model, name, forest_order) for model in FOREST_MODELS for name in FORESTS),
    *(TreeSetCase(model, "sites", graph_sites) for model in FOREST_MODELS),
    *(TreeSetCase("graph, Potts", name, None, {"order": "random"}) for name in ("trees", "forests", "sites")),
    *(TreeSetCase("spins", name, None, {"order": "random"}) for name in ("trees", "forests", "sites")),
    *(TreeSetCase("graph, forbidden labels", name, None) for name in ("trees", "forests", "sites")),
    *(TreeSetCase(model, PAIRS, own_lists(PAIRS)) for model in ("graph, Potts", "graph, tables", "spins")),
    *(TreeSetCase(model, "whole", whole_tree) for model in ("graph, tree", "spins, tree")),
]


# --- moves ------------------------------------------------------------------------------------------------------------

EVERY, ON_GRIDS, ON_GRAPHS = list(MODELS), GRIDS, GRAPHS
LABELS_OF_BOXES = ("best", "neighbour", "random", "scramble")


@dataclass(frozen=True)
class MoveCase:
    """A move, and the models it is for."""

    create: Callable
    models: list[str]

    def __str__(self):
        return repr(self.create())


JUMPS = [
    MoveCase(lambda: moves.UniformJump(0.5), EVERY),
    MoveCase(moves.BetaJump, EVERY),
    MoveCase(moves.LevyJump, EVERY),
    *(MoveCase(functools.partial(moves.BoxJump, label, size=(1, 3)), ON_GRIDS) for label in LABELS_OF_BOXES),
    *(MoveCase(functools.partial(moves.BallJump, label, size=(1, 3)), ON_GRAPHS) for label in LABELS_OF_BOXES),
    *(MoveCase(functools.partial(moves.SegmentJump, label), EVERY) for label in ("neighbour", "shift")),
    MoveCase(lambda: moves.MessageJump(temperature=2.0, closeness=5.0), ON_GRIDS),
    MoveCase(moves.MessageJump, ON_GRIDS),
    MoveCase(moves.HeatJump, EVERY),
    MoveCase(lambda: moves.HeatJump(trees=True), ON_GRAPHS),
    MoveCase(moves.MixedJump, EVERY),
    MoveCase(lambda: moves.MixedJump([moves.UniformJump(), moves.MixedJump()]), EVERY),
]
RULES = [moves.Greedy, moves.Always, moves.Metropolis, functools.partial(moves.Metropolis, beta=0.5)]
ACCEPTS = [
    *RULES,
    *(lambda rule=rule: moves.PerComponent(rule()) for rule in RULES),
    *(lambda rule=rule: moves.Unvisited(rule()) for rule in RULES),
    lambda: moves.Unvisited(moves.PerComponent(moves.Metropolis()), length=50),
]

PAIRWISE = [
    lambda: tf.Potts(2),
    lambda: tf.TruncatedLinear(1.5, 2),
    lambda: tf.TruncatedLinear(1, np.inf, values=[0, 1, 5]),
    lambda: tf.TruncatedQuadratic(1, 3),
    lambda: tf.Table([[0, 1, 2], [1, 0, 0.5], [3, 1, 0]]),
]

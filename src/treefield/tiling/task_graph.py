"""The search of a tiled grid as a graph of Dask: which task needs which blocks and which other tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.typing import DaskCollection
from dask.typing import Key as DaskKey

from treefield.tiling import tasks
from treefield.tiling.array_protocols import Box, ReadableArray
from treefield.tiling.model import TiledMRF, edge_box
from treefield.tiling.tasks import BoxPlan, Key, LabelSources, Settings
from treefield.tiling.tiles import expand, halo_of, tile_boxes
from treefield.validation import label_dtype

Weights: TypeAlias = (
    "list[Key | np.ndarray] | None"  # of the edges of a box: for each axis the key of a block, or a number
)


class TaskGraph:
    """The tasks of one search of a tiled model.

    The data is a Dask array of costs, or of an image from which they are computed. All tasks are one layer of a graph,
    whose name is a hash of everything they depend on.
    """

    def __init__(self, mrf: TiledMRF, data: da.Array, settings: Settings, *more: object) -> None:
        self._mrf, self._data = mrf, data
        self._weights = [_as_dask_weight(weight) for weight in mrf.weights or []]
        parts = [part.name if isinstance(part, da.Array) else part for part in (data, *more, *self._weights)]
        self._token = tokenize(parts, mrf.shape, mrf.tile, vars(settings))
        self._tiles = mrf.tiles
        self._settings = self._key("settings")
        self._tasks: dict[DaskKey, object] = {self._settings: settings}
        self._inputs: list[da.Array] = []
        self._sources = self._no_sources()
        self._first: list[Key] = []  # the energies of the tiles at first
        self._between: list[Key] = []  # the energies of the edges between them, if `_first` does not include these
        self._searched: list[Key] = []

    def start(self, x0: str | da.Array) -> None:
        """Begin with labels: a Dask array, "random" or "unary"."""
        function = tasks.start_by_name if isinstance(x0, str) else tasks.start_from_labels
        array = x0 if isinstance(x0, da.Array) else self._data
        blocks = self._blocks(array, self._tiles)
        for box in self._tiles:
            block = None if isinstance(x0, str) and x0 == "random" else blocks(box)
            self._sources.add(box, self._add("start", box, (function, self._settings, BoxPlan(box, []), block)))
        self._first = self._energies("energy", has_unary=True)

    def search_alone(self) -> None:
        """Search each tile without the sites around it."""
        blocks = self._blocks(self._data, self._tiles)
        weights = self._edges(self._tiles, has_before=False, has_after=False)
        keys = []
        for box in self._tiles:
            plan = BoxPlan(box, [(False, False)] * len(box), phase=1)
            task = (tasks.search_alone, self._settings, plan, blocks(box), weights(box))
            keys.append(self._add("tile", box, task, plan.phase))
            self._sources.add(box, keys[-1])
        self._first = self._figures(keys)
        self._between = self._energies("between", has_unary=False)

    def add_phase(self, phase: int, classes: list[list[Box]], name: str = "tile") -> None:
        """Search boxes given the labels around them, those of one colour class at once."""
        if any(classes):
            self._search_boxes(phase, classes, name)

    def descend(self, rounds: int) -> None:
        """Solve all tiles, then those shifted by half a tile, and so on.

        From the third round on only tiles near which labels have changed.
        """
        tilings = [tile_boxes(self._mrf.shape, self._mrf.tile, is_shifted) for is_shifted in (False, True)]
        earlier: list[list[LabelSources]] = []
        for number in range(rounds):
            earlier.append(self._search_boxes(number + 1, tilings[number % 2], "tile", earlier[-2:]))

    def _search_boxes(
        self, phase: int, classes: list[list[Box]], name: str, earlier: Sequence[list[LabelSources]] = ()
    ) -> list[LabelSources]:
        """Search boxes; return the tasks of each colour class.

        Given the two rounds before this one, a box is left as it is if nothing near it has changed since it was solved.
        """
        boxes = [box for members in classes for box in members]
        blocks, weights = self._blocks(self._data, boxes), self._edges(boxes)
        searched = [self._no_sources(), self._no_sources()]
        for box, colour in ((box, colour) for colour, members in enumerate(classes) for box in members):
            plan, pieces = self._sources.plan(box, phase=phase)
            watched: list[Key] = []
            if len(earlier) == 2:
                since = [*earlier[1], searched[0] if colour else earlier[0][1]]
                near = [entry for sources in since for entry in sources.find_touching(box)]
                plan.watched, watched = [owner for owner, _ in near], [key for _, key in near]
            task = (tasks.search_in_context, self._settings, plan, blocks(box), weights(box), pieces, watched)
            key = self._add(name, box, task, phase)
            self._sources.add(box, key)
            searched[colour].add(box, key)
            self._searched.append(key)
        if name == "tile":  # every site has been searched: earlier tasks are not needed any more
            self._sources = self._no_sources()
            for box, key in (entry for sources in searched for entry in sources):
                self._sources.add(box, key)
        return searched

    def labels(self) -> da.Array:
        """The labels after all searches, one chunk per tile."""
        spans = _spans(self._tiles)
        name, places = f"treefield-labels-{self._token}", [{span: k for k, span in enumerate(parts)} for parts in spans]
        chunk_tasks: dict[DaskKey, object] = {}
        for box in self._tiles:
            plan, pieces = self._sources.plan(box, has_before=False, has_after=False)
            index = (place[_span(part)] for place, part in zip(places, box, strict=True))
            chunk_tasks[(name, *index)] = (tasks.final_labels, plan, pieces)
        chunks = tuple(tuple(b - a for a, b in part) for part in spans)
        return da.Array(self._graph(name, chunk_tasks), name, chunks, dtype=label_dtype(self._mrf.n_labels))

    def figures(self) -> tuple[da.Array, da.Array]:
        """The energy after all searches, and its bound."""
        total = self._key("total")
        self._tasks[total] = (tasks.total_figures, self._figures(self._searched), self._first, self._between)
        return self._figure("fun", total, 0), self._figure("bound", total, 1)

    def _figure(self, what: str, total: Key, number: int) -> da.Array:
        name = f"treefield-{what}-{self._token}"
        graph = self._graph(name, {(name,): (tasks.pick_figure, total, number)})
        return da.Array(graph, name, (), dtype=np.float64)

    def _graph(self, name: str, layer: dict[DaskKey, object]) -> HighLevelGraph:
        """A layer of tasks on top of all that they need."""
        ours = f"treefield-{self._token}"
        inputs = cast(Sequence[DaskCollection], self._inputs)
        whole = HighLevelGraph.from_collections(ours, self._tasks, dependencies=inputs)
        return HighLevelGraph({**whole.layers, name: layer}, {**whole.dependencies, name: {ours}})

    def _energies(self, name: str, *, has_unary: bool) -> list[Key]:
        """Tasks for the energies of all tiles, or only of the edges between them."""
        weights = self._edges(self._tiles, has_after=False)
        blocks = self._blocks(self._data, self._tiles) if has_unary else None
        keys = []
        for box in self._tiles:
            plan, pieces = self._sources.plan(box, has_after=False)
            block = None if blocks is None else blocks(box)
            keys.append(self._add(name, box, (tasks.box_energy, self._settings, plan, block, weights(box), pieces)))
        return keys

    def _figures(self, searched: list[Key]) -> list[Key]:
        """Tasks for the figures of searches without their labels, which stay on their workers."""
        keys: list[Key] = [(key[0].replace("treefield", "treefield-figures"), *key[1:]) for key in searched]
        self._tasks.update({key: (tasks.figures_of, solved) for key, solved in zip(keys, searched, strict=True)})
        return keys

    def _blocks(self, array: da.Array, boxes: list[Box]) -> Callable[[Box], Key]:
        """Divide an array into boxes, which may overlap; return a function that gives the key of each."""
        spans = _spans(boxes)
        for axis, parts in enumerate(spans):
            ends = [0, *(end for _, end in parts)]
            if [start for start, _ in parts] != ends[:-1] or ends[-1] != array.shape[axis]:
                before = (slice(None),) * axis
                array = da.concatenate([array[(*before, slice(*span))] for span in parts], axis=axis)
        array = array.rechunk({axis: tuple(b - a for a, b in parts) for axis, parts in enumerate(spans)})
        self._inputs.append(array)
        numbers = [{span: number for number, span in enumerate(parts)} for parts in spans]
        rest = (0,) * (array.ndim - len(spans))

        def key(box: Box) -> Key:
            index = (number[_span(part)] for number, part in zip(numbers, box, strict=True))
            return (str(array.name), *index, *rest)

        return key

    def _edges(self, boxes: list[Box], *, has_before: bool = True, has_after: bool = True) -> Callable[[Box], Weights]:
        """A function that gives the weights of the edges of a box, those to its halo included."""
        if not self._weights:
            return lambda box: None

        def place(axis: int, box: Box) -> Box:
            halo = [(low and has_before, high and has_after) for low, high in halo_of(box, self._mrf.shape)]
            return edge_box(axis, box, expand(box, halo))

        blocks = [
            self._blocks(weight, [place(axis, box) for box in boxes]) if isinstance(weight, da.Array) else weight
            for axis, weight in enumerate(self._weights)
        ]
        return lambda box: [block(place(axis, box)) if callable(block) else block for axis, block in enumerate(blocks)]

    def _no_sources(self) -> LabelSources:
        return LabelSources(self._mrf.shape, self._mrf.tile)

    def _key(self, name: str, *numbers: int) -> Key:
        return (f"treefield-{name}-{self._token}", *numbers)

    def _add(self, name: str, box: Box, task: tuple[object, ...], phase: int = 0) -> Key:
        key = self._key(name, phase, *(part.start for part in box))
        self._tasks[key] = task
        return key


def _as_dask_weight(weight: ReadableArray) -> da.Array | np.ndarray:
    """The weights along an axis as a Dask array or a number."""
    if 0 in weight.shape:
        return np.ones(())  # an axis of one site has no edges
    return da.asarray(weight) if weight.shape else np.asarray(weight)


def _span(part: slice) -> tuple[int, int]:
    return part.start, part.stop


def _spans(boxes: list[Box]) -> list[list[tuple[int, int]]]:
    """The intervals of each axis that boxes have, in order."""
    return [sorted({_span(box[axis]) for box in boxes}) for axis in range(len(boxes[0]))]

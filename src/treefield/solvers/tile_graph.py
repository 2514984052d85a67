"""The search of a grid in tiles as a graph of Dask: which task needs which blocks and which earlier tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from treefield.models.stores import label_dtype
from treefield.models.tiled import TiledMRF, edges_of
from treefield.models.tiles import Box, cut, grown, halo_of
from treefield.solvers import tile_tasks as work

Key = Any  # of a task: its name, and numbers


class Graph:
    """The tasks of one search of a tiled model. The data is a Dask array of costs, or of what they are computed from.
    All tasks are one layer of a graph, named after all that they depend on."""

    def __init__(self, mrf: TiledMRF, data: Any, settings: work.Settings, *more: Any) -> None:
        weights = mrf.weights or []
        self._mrf, self._data, self._settings = mrf, data, settings
        # an axis of one site has no edges: whatever they weigh
        self._weights = [1.0 if np.ndim(w) and 0 in w.shape else da.asarray(w) if np.ndim(w) else w for w in weights]
        parts = [getattr(what, "name", what) for what in (data, *more, *self._weights)]
        self._token = tokenize(parts, mrf.shape, mrf.tile, vars(settings))
        self._tiles = mrf.tiles
        self._model = self._key("model")
        self._tasks: dict[Key, Any] = {self._model: settings}
        self._inputs: list[Any] = []
        self._sources = self._no_sources()
        self._first: list[Key] = []  # what the tiles cost at first
        self._between: list[Key] = []  # and what the edges between them cost, if that does not count them
        self._searched: list[Key] = []

    def start(self, x0: Any) -> None:
        """Begin with labels: a Dask array, "random", or "unary"."""
        named = isinstance(x0, str)
        array = x0 if not named else self._data if x0 == "unary" else None
        blocks = None if array is None else self._blocks(array, self._tiles)
        for box in self._tiles:
            block = None if blocks is None else blocks(box)
            task = (work.start_with if named else work.start_from, self._model, work.Job(box, []), block)
            self._sources.add(box, self._add("start", box, task))
        self._first = self._energies("energy", with_unary=True)

    def search_alone(self) -> None:
        """Search each tile by itself."""
        blocks, weights = self._blocks(self._data, self._tiles), self._edges(self._tiles, False, False)
        found = []
        for box in self._tiles:
            job = work.Job(box, [(False, False)] * len(box), 1)
            key = self._add("tile", box, (work.search_alone, self._model, job, blocks(box), weights(box)), 1)
            self._sources.add(box, key)
            found.append(key)
        self._first = self._figures(found)
        self._between = self._energies("between", with_unary=False)

    def turn(self, number: int, lots: list[list[Box]], name: str = "tile") -> None:
        """Search boxes given the labels around them, those of one lot at once."""
        if any(lots):
            self._improve(number, lots, name)

    def descend(self, rounds: int) -> None:
        """Solve all tiles, then those half a tile aside, and so on; from the third round on only where something has
        changed since."""
        cuts = [cut(self._mrf.shape, self._mrf.tile, shifted) for shifted in (False, True)]
        before: list[list[work.Sources]] = []
        for number in range(rounds):
            before.append(self._improve(number + 1, cuts[number % 2], "tile", before[-2:]))

    def _improve(self, number: int, lots: list[list[Box]], name: str, before: Any = ()) -> list[work.Sources]:
        """Search boxes; those of which nothing is new since the last but one of the rounds before are left as they are.
        Returns the tasks of each lot."""
        boxes = [box for lot in lots for box in lot]
        blocks, weights = self._blocks(self._data, boxes), self._edges(boxes, True, True)
        found = [self._no_sources(), self._no_sources()]
        for box, lot in ((box, lot) for lot, several in enumerate(lots) for box in several):
            job, pieces = self._sources.job(box, turn=number)
            news: list[Any] = []
            if len(before) == 2:
                since = [*before[1], found[0] if lot else before[0][1]]
                news = [entry for sources in since for entry in sources.touching(box)]
                job.asked = [owner for owner, _ in news]
            asked = [key for _, key in news]
            task = (work.search_given, self._model, job, blocks(box), weights(box), pieces, asked)
            key = self._add(name, box, task, number)
            self._sources.add(box, key)
            found[lot].add(box, key)
            self._searched.append(key)
        if name == "tile":  # all sites are searched: what was before is of no use
            self._sources = self._no_sources()
            for box, key in (entry for sources in found for entry in sources):
                self._sources.add(box, key)
        return found

    def labels(self) -> Any:
        """The labels as they are in the end, chunk by tile."""
        spans = _spans(self._tiles)
        name, places = f"treefield-labels-{self._token}", [{span: k for k, span in enumerate(parts)} for parts in spans]
        tasks: dict[Key, Any] = {}
        for box in self._tiles:
            job, pieces = self._sources.job(box, before=False, after=False)
            index = (place[_span(part)] for place, part in zip(places, box, strict=True))
            tasks[(name, *index)] = (work.labels_of_box, job, pieces)
        chunks = tuple(tuple(b - a for a, b in part) for part in spans)
        return da.Array(self._graph(name, tasks), name, chunks, dtype=label_dtype(self._mrf.labels))

    def figures(self) -> tuple[Any, Any]:
        """The energy in the end and its bound."""
        total = self._key("total")
        parts = [self._figures(self._searched), self._first, self._between]
        self._tasks[total] = (work.total, *parts)
        found = []
        for number, what in enumerate(("fun", "bound")):
            name = f"treefield-{what}-{self._token}"
            graph = self._graph(name, {(name,): (work.one_of, total, number)})
            found.append(da.Array(graph, name, (), dtype=np.float64))
        return found[0], found[1]

    def _graph(self, name: str, tasks: dict[Key, Any]) -> HighLevelGraph:
        """These tasks and those they need."""
        ours = f"treefield-{self._token}"
        whole = HighLevelGraph.from_collections(ours, self._tasks, dependencies=self._inputs)
        return HighLevelGraph({**whole.layers, name: tasks}, {**whole.dependencies, name: {ours}})

    def _energies(self, name: str, with_unary: bool) -> list[Key]:
        """What tiles, or only the edges between them, cost."""
        weights = self._edges(self._tiles, True, False)
        blocks = self._blocks(self._data, self._tiles) if with_unary else None
        keys = []
        for box in self._tiles:
            job, pieces = self._sources.job(box, after=False)
            block = None if blocks is None else blocks(box)
            keys.append(self._add(name, box, (work.energy_of, self._model, job, block, weights(box), pieces)))
        return keys

    def _figures(self, found: list[Key]) -> list[Key]:
        """The figures of searches, without their labels: these stay where they are."""
        keys = [(key[0].replace("treefield", "treefield-figures"), *key[1:]) for key in found]
        self._tasks.update({key: (work.figures_of, solved) for key, solved in zip(keys, found, strict=True)})
        return keys

    def _blocks(self, array: Any, places: list[Box]) -> Callable[[Box], Key]:
        """An array cut into what the tasks of a turn read, boxes that may overlap; returns the key of each."""
        spans = _spans(places)
        for axis, parts in enumerate(spans):
            ends = [0, *(end for _, end in parts)]
            if [start for start, _ in parts] != ends[:-1] or ends[-1] != array.shape[axis]:
                before = (slice(None),) * axis
                array = da.concatenate([array[(*before, slice(*span))] for span in parts], axis=axis)
        array = array.rechunk({axis: tuple(b - a for a, b in parts) for axis, parts in enumerate(spans)})
        self._inputs.append(array)
        numbers = [{span: number for number, span in enumerate(parts)} for parts in spans]
        rest = (0,) * (array.ndim - len(spans))
        return lambda box: (
            array.name,
            *(found[_span(part)] for found, part in zip(numbers, box, strict=True)),
            *rest,
        )

    def _edges(self, boxes: list[Box], before: bool, after: bool) -> Callable[[Box], list[Any] | None]:
        """The weights of the edges of boxes and to the sites before and after them, as keys or numbers."""
        if not self._weights:
            return lambda box: None

        def place(axis: int, box: Box) -> Box:
            halo = [(low and before, high and after) for low, high in halo_of(box, self._mrf.shape)]
            return edges_of(axis, box, grown(box, halo))

        cuts: list[Any] = [
            self._blocks(weight, [place(axis, box) for box in boxes]) if np.ndim(weight) else None
            for axis, weight in enumerate(self._weights)
        ]
        return lambda box: [
            weight if blocks is None else blocks(place(axis, box))
            for axis, (weight, blocks) in enumerate(zip(self._weights, cuts, strict=True))
        ]

    def _no_sources(self) -> work.Sources:
        return work.Sources(self._mrf.shape, self._mrf.tile)

    def _key(self, name: str, *numbers: int) -> Key:
        return (f"treefield-{name}-{self._token}", *numbers)

    def _add(self, name: str, box: Box, task: Any, turn: int = 0) -> Key:
        key = self._key(name, turn, *(part.start for part in box))
        self._tasks[key] = task
        return key


def _span(part: slice) -> tuple[int, int]:
    return part.start, part.stop


def _spans(boxes: list[Box]) -> list[list[tuple[int, int]]]:
    """The parts of each axis of which boxes are made, in order."""
    return [sorted({_span(box[axis]) for box in boxes}) for axis in range(len(boxes[0]))]

"""Search of models larger than memory: tile by tile, the sites around each tile fixed."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from treefield.protocols import Limits, Start
from treefield.results import MAPResult, Status
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.loop import Loop, Timer
from treefield.solvers.progress import Bar
from treefield.tiling.array_protocols import Box, LabelStore, ReadableArray, as_readable, check_shape
from treefield.tiling.model import AT_ONCE, TiledMRF
from treefield.tiling.stores import FileArray
from treefield.tiling.tile_search import Solved, first_labels, seed_of, solve_tile, take_cheapest_labels, total_bound
from treefield.tiling.tiles import Tile, border_boxes, is_touching, tile_boxes
from treefield.validation import as_choice, as_thread_count

METHODS = ("auto", "t_icm", "t_ils")
STARTS = ("random", "unary")
_SECONDS_PER_COST = 1e-8  # of a site and label, that a round of "auto" may take

_SolvedT = TypeVar("_SolvedT")


def phases(mrf: TiledMRF) -> list[list[list[Box]]]:
    """The boxes of each phase in colour classes: all tiles, then boxes around the borders across each axis."""
    borders = (border_boxes(mrf.shape, mrf.tile, axis) for axis in range(len(mrf.shape)))
    return [tile_boxes(mrf.shape, mrf.tile), *borders]


def search_by_tiles(
    method: str,
    mrf: TiledMRF,
    x0: Start,
    rng: np.random.Generator,
    limits: Limits,
    options: Mapping[str, object],
) -> MAPResult:
    """Search a tiled model by a method of `minimize`, within checked limits; the options are for each tile.

    "t_icm" solves all tiles, then the tiles shifted by half a tile, and so on until nothing changes; `maxiter` limits
    these rounds. The others search all tiles, then boxes around their borders. From "unary", "auto" first searches each
    tile alone: the sum of their bounds is a bound of the whole. Two tiles of a colour class are searched at once, which
    does not change the answer.
    """
    as_choice(method, "method of a TiledMRF", METHODS)
    start = as_tiled_start(x0, mrf)
    with Interrupts() as interrupts:
        x = mrf.new_labelling()
        try:
            search = _TileSearch(method, mrf, x, interrupts, int(rng.integers(2**63)), limits, options)
            with search:
                if method == "t_icm":
                    search.start(start)
                    search.descend()
                else:
                    search.search_tiles_and_borders(start)
            return search.final_result()
        except BaseException:
            mrf.discard_labelling()
            raise


def as_tiled_start(x0: Start, mrf: TiledMRF) -> str | ReadableArray:
    """ "random", "unary", or a labelling that can be sliced; or an error."""
    if isinstance(x0, str):
        return as_choice(x0, "x0 of a TiledMRF", STARTS)
    start = as_readable(x0)
    check_shape(start, "x0", mrf.shape)
    return start


class _TileSearch(Loop):
    """One search of a tiled model. The energy is the sum of the changes of all tiles.

    Tiles are searched in threads. Arrays and functions of the user's, and the store, are used by one thread at a time.
    """

    def __init__(
        self,
        method: str,
        mrf: TiledMRF,
        x: LabelStore,
        interrupts: Interrupts,
        root: int,
        limits: Limits,
        options: Mapping[str, object],
    ) -> None:
        rounds = limits["maxiter"] if method == "t_icm" else None  # for the other methods it limits each tile
        super().__init__(
            method,
            Timer(),
            maxiter=rounds,
            time_limit=limits["time_limit"],
            callback=limits["callback"],
            interrupts=interrupts,
        )
        self._tile_bar = Bar(f"{method}, tiles", None) if limits["progress"] else None
        self._mrf, self._x, self._root, self._options = mrf, x, root, options
        self._energies: list[float] = []
        self._forbidden, self._was_limited = 0, False
        self._remaining = mrf.size  # sites of the boxes still to be searched: they share the time that is left
        self._workers = min(AT_ONCE, as_thread_count(cast(int | None, options.get("threads"))))
        self._thread = threading.current_thread()
        self._lock = threading.Lock()
        self._read_seconds, self._read_sites = 0.0, 0
        self._has_read_all = False
        self._has_changed = False  # since the energies of all tiles and the edges between them were summed

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._tile_bar is not None:
            self._tile_bar.close()
        return super().__exit__(kind, error, trace)

    @property
    def energy(self) -> float:  # type: ignore[override]
        """The energy, as the sum of its changes so far."""
        return math.inf if self._forbidden else math.fsum(self._energies)

    @property
    def time_left(self) -> float | None:
        """Seconds until the costs must be read, those of all tiles once, and once more to sum the energy at the end if
        labels have changed since."""
        left = super().time_left
        if left is None or not self._read_sites:
            return left
        sites = self._mrf.size - (0 if self._has_read_all else self._read_sites)
        return max(0.0, left - self._read_seconds * sites / self._read_sites)

    def is_out_of_time(self) -> bool:
        """Whether no time is left for another tile."""
        return self.time_left == 0

    def start(self, x0: str | ReadableArray) -> None:
        """Write the first labels: those given, random ones, or those of least unary cost."""
        for box in self._mrf.tiles:
            if isinstance(x0, str):
                unary = self._mrf.costs(box) if x0 == "unary" else None
                labels = first_labels(self._root, box, self._mrf.n_labels, unary)
            else:
                labels = self._mrf.as_labels(x0[box], "x0")
            self._write(box, labels)
        finite, self._forbidden = self._mrf.energy_parts(self._x)
        self._energies = [finite]
        self._has_read_all, self._has_changed = True, False
        self._end_iteration(0, is_start=True)

    def search_tiles_and_borders(self, x0: str | ReadableArray) -> None:
        """Search all tiles, and then the boxes around their borders."""
        first, *borders = phases(self._mrf)
        self._remaining += sum(size_of(box) for classes in borders for boxes in classes for box in boxes)
        if isinstance(x0, str) and x0 == "unary" and self.method == "auto":
            self._search_alone([box for boxes in first for box in boxes])
        else:
            self.start(x0)
            self._search(1, first)
        for phase, classes in enumerate(borders, 2):
            self._search(phase, classes)
        if not self.has_ended and self._was_limited:
            each = f"maxiter = {self._options['maxiter']}"
            self.stop(Status.LIMIT, f"all tiles and their borders searched, with {each} each")
        elif not self.has_ended:
            self.stop(Status.CONVERGED, "converged: all tiles and their borders are searched")

    def _search_alone(self, boxes: list[Box]) -> None:
        bounds = []
        for box, solved in self._in_threads(boxes, self._solve_alone):
            self._write(box, solved.x)
            self._add(solved)
            bounds.append(solved.bound)
        self._has_read_all = True
        edges, forbidden, least = zip(*self._mrf.between_tiles(self._x), strict=True)
        # the sums of `TiledMRF.energy_parts`
        self._energies = [math.fsum(pair) for pair in zip(self._energies, edges, strict=True)]
        self._forbidden += sum(forbidden)
        self.bound = total_bound([*bounds, math.fsum(least)])
        self._end_iteration(0)

    def _solve_alone(self, box: Box) -> Solved:
        """Search a tile without the sites around it; in too little time, by one sweep; after an interrupt, give every
        site its cheapest label."""
        tile = self._read(box)
        if not self.should_continue():
            return take_cheapest_labels(tile)
        seconds = self._time_share(box)
        if seconds is not None and seconds < _SECONDS_PER_COST * size_of(box) * tile.n_labels:
            options = {"x0": "unary", "maxiter": 1, "threads": 1}
            swept = solve_tile(tile, "t_icm", options, seed_of(self._root, 1, box))
            return dataclasses.replace(swept, bound=-math.inf)
        return self._solve(tile, 1, box, seconds) or take_cheapest_labels(tile)

    def _search(self, phase: int, classes: list[list[Box]]) -> None:
        if self.has_ended:
            return
        for boxes in classes:
            waiting = (box for box in boxes if self.should_continue())
            for box, solved in self._in_threads(waiting, lambda box: self._solve_in_context(phase, box)):
                self._take(box, solved)
        self._end_iteration()

    def _in_threads(self, boxes: Iterable[Box], solve: Callable[[Box], _SolvedT]) -> Iterator[tuple[Box, _SolvedT]]:
        """Solve boxes of one colour class, some at once, and yield each with its result, in order.

        The first one is solved in this thread, in which compilation does not count for the time limit.
        """
        waiting = iter(boxes)
        for box in itertools.islice(waiting, 1):
            yield box, solve(box)
        running: collections.deque[tuple[Box, Future[_SolvedT]]] = collections.deque()
        with ThreadPoolExecutor(self._workers, thread_name_prefix="treefield") as pool:
            for box in waiting:
                if len(running) == self._workers:
                    yield self._wait(*running.popleft())
                running.append((box, pool.submit(solve, box)))
            while running:
                yield self._wait(*running.popleft())

    def _wait(self, box: Box, future: Future[_SolvedT]) -> tuple[Box, _SolvedT]:
        try:
            return box, future.result()
        except KeyboardInterrupt:  # a second Ctrl-C
            self.interrupt("interrupted")
            return box, future.result()

    def descend(self) -> None:
        """Solve all tiles, then those shifted by half a tile, and so on, as long as a tile may change."""
        tilings = [tile_boxes(self._mrf.shape, self._mrf.tile, is_shifted) for is_shifted in (False, True)]
        waiting = [{_key(box): box for boxes in classes for box in boxes} for classes in tilings]
        while any(waiting) and self.should_continue():
            side = self.nit % 2
            for box in (box for boxes in tilings[side] for box in boxes):
                if _key(box) not in waiting[side]:
                    continue
                if self.has_ended or self._interrupts.pending or self.is_over_limit():
                    break
                changed = self._improve(self.nit + 1, box)
                if not (self._interrupts.pending or self.has_ended or self.is_out_of_time()):
                    del waiting[side][_key(box)]
                if changed is not None:
                    for other, classes in enumerate(tilings):
                        every = (b for boxes in classes for b in boxes)
                        near = (b for b in every if is_touching(b, changed) and (other != side or b != box))
                        waiting[other] |= {_key(b): b for b in near}
            self._end_iteration()
        if not self.has_ended:
            self.stop(Status.CONVERGED, "converged: no tile lowers the energy any more")

    def _improve(self, phase: int, box: Box) -> Box | None:
        """Search a box given the labels around it; return the part of the grid that has changed."""
        return self._take(box, self._solve_in_context(phase, box))

    def _solve_in_context(self, phase: int, box: Box) -> Solved | None:
        tile = self._read(box, self._x)
        return self._solve(tile, phase, box, self._time_share(box))

    def _take(self, box: Box, solved: Solved | None) -> Box | None:
        """Write the labels that a search has found; return the part of the grid that has changed."""
        if solved is None:
            return None
        self._add(solved)
        if solved.changed is None:
            return None
        self._write(box, solved.x)
        self._has_changed = True
        return tuple(
            slice(part.start + k.start, part.start + k.stop) for part, k in zip(box, solved.changed, strict=True)
        )

    def _read(self, box: Box, x: LabelStore | None = None) -> Tile:
        with self._lock:
            start = time.perf_counter()
            tile = self._mrf.read_tile(box, x)
            self._read_seconds += time.perf_counter() - start
            self._read_sites += size_of(box)
            return tile

    @property
    def _is_one_of_some(self) -> bool:
        """Whether this thread is one of those that search tiles at once."""
        return threading.current_thread() is not self._thread

    def _time_share(self, box: Box) -> float | None:
        """The seconds for a box, whose search begins now, of those that are left; None without a limit."""
        with self._lock:
            left, remaining = self.time_left, max(1, self._remaining)
            self._remaining -= size_of(box)
        if left is None or self.method == "t_icm":
            return left
        return left * min(1.0, (self._workers if self._is_one_of_some else 1) * size_of(box) / remaining)

    def _solve(self, tile: Tile, phase: int, box: Box, seconds: float | None) -> Solved | None:
        """The result of a tile's search; None if Ctrl-C comes before there is one."""
        threads = 1 if self._is_one_of_some else self._options.get("threads")
        options = dict(self._options, threads=threads, time_limit=seconds)
        try:
            return solve_tile(tile, self.method, options, seed_of(self._root, phase, box))
        except KeyboardInterrupt:
            self.interrupt("interrupted")
            return None

    def _write(self, box: Box, labels: ArrayLike) -> None:
        try:
            with self._lock:
                self._x[box] = np.asarray(labels)
        except OSError as error:
            cause = error.strerror or " ".join(str(error).split())
            raised = OSError(f"could not write labels to the store: {cause}")
            raised.errno = error.errno
            raise raised from error

    def _add(self, solved: Solved) -> None:
        """Add the change of energy by the search of a tile."""
        self._energies.append(solved.finite)
        self._forbidden += solved.forbidden
        is_limited = solved.status == Status.LIMIT and self._options.get("maxiter") is not None
        self._was_limited = self._was_limited or is_limited
        if solved.status == Status.INTERRUPTED and not self.has_ended:
            self.interrupt(self._interrupts.pending or "interrupted")
        if self._tile_bar is not None:
            self._tile_bar.step(1, self.energy, self.energy)

    def result(self, *, copy: bool = False) -> MAPResult:
        """The result so far, its energy the sum of the changes; `x` is the store itself."""
        return self._make_result(self._store(), self.energy, self._forbidden, is_last_energy=True)

    def final_result(self) -> MAPResult:
        """The result, its energy summed afresh, unless that would give the same sum."""
        finite, forbidden = math.fsum(self._energies), self._forbidden
        if self._has_changed:
            finite, forbidden = self._mrf.energy_parts(self._x)
        if self._interrupts.pending and self.status != Status.INTERRUPTED:
            self.interrupt(self._interrupts.pending)
        fun = math.inf if forbidden else finite
        return self._make_result(self._store(), fun, forbidden, is_last_energy=True)

    def _store(self) -> np.ndarray:
        """The store, a memmap for a file. It may be another array that behaves like one of NumPy's."""
        return self._x.array() if isinstance(self._x, FileArray) else cast(np.ndarray, self._x)


def size_of(box: Box) -> int:
    """The number of sites of a box."""
    return math.prod(part.stop - part.start for part in box)


def _key(box: Box) -> tuple[int, ...]:
    return tuple(part.start for part in box)

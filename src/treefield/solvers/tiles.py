"""Search of models larger than memory: tile by tile, the sites around each tile fixed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from treefield.models.stores import label_dtype
from treefield.models.tiled import TiledMRF
from treefield.models.tiles import Box, Tile, cut, seams, touch
from treefield.results import TRACE, MAPResult, relative_gap
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.progress import Bar
from treefield.solvers.run import CALLBACK, CONVERGED, FORBIDDEN, INTERRUPTED, MAXITER, TIME_LIMIT, Timer
from treefield.validation import as_choice

METHODS = ("auto", "t_icm", "t_ils")  # by tiles
_ROUNDING = 1e-12  # of a tile's energy
STARTS = ("random", "unary")


@dataclasses.dataclass
class Solved:
    """What a search has made of a tile: its labels; by how much these change the energy, the finite part and the number
    of forbidden costs, or for a tile by itself both of them; a bound for that; which part of the box has changed; and
    how the search has ended."""

    x: np.ndarray
    finite: float
    forbidden: int
    bound: float = math.nan
    changed: Box | None = None
    status: int = CONVERGED


def solve_tile(tile: Tile, method: str, options: dict[str, Any], seed: Any) -> Solved:
    """Search a tile by a method of `minimize`. Given labels around it, it takes what is found only if that lowers the
    energy, by more than rounding: so no search goes round in circles between labellings of equal energy."""
    from treefield.solvers.minimize import minimize

    dtype, options = label_dtype(tile.labels), dict(options, method=method, rng=np.random.default_rng(seed))
    if tile.given is None:
        res = minimize(tile.model, **options)
        return Solved(res.x.astype(dtype), *tile.model.energy_parts(res.x), res.lower_bound, None, res.status)
    own = tile.own
    before = tile.energy_parts(own)
    res = minimize(tile.absorbed(), own, **options)
    after = tile.energy_parts(res.x)
    if after[1] > before[1] or (after[1] == before[1] and after[0] >= before[0] - _ROUNDING * abs(before[0])):
        return Solved(own.astype(dtype), 0.0, 0, status=res.status)
    places = np.nonzero(res.x != own)
    changed = tuple(slice(int(k.min()), int(k.max()) + 1) for k in places) if places[0].size else None
    finite, forbidden = after[0] - before[0], after[1] - before[1]
    return Solved(res.x.astype(dtype), finite, forbidden, changed=changed, status=res.status)


def best_alone(tile: Tile) -> Solved:
    """Each site's own best label."""
    x = tile.model.best_labels()
    return Solved(x.astype(label_dtype(tile.labels)), *tile.model.energy_parts(x), bound=-math.inf)


def seed_of(root: int, turn: int, box: Box) -> list[int]:
    """The seed for a tile in a turn: the same in whatever order, and wherever, tiles are searched."""
    return [root, turn, *(part.start for part in box)]


def first_labels(root: int, box: Box, labels: int, unary: np.ndarray | None) -> np.ndarray:
    """The labels that a box starts with: each site's own best, or without costs random ones."""
    if unary is not None:
        return unary.argmin(axis=-1)
    rng = np.random.default_rng(seed_of(root, 0, box))
    return rng.integers(labels, size=[part.stop - part.start for part in box])


def turns(mrf: TiledMRF) -> list[list[list[Box]]]:
    """What is searched after each other: all tiles, then what lies around their borders across each axis; each in lots,
    of which no two boxes touch."""
    return [cut(mrf.shape, mrf.tile), *(seams(mrf.shape, mrf.tile, axis) for axis in range(len(mrf.shape)))]


def total_bound(bounds: list[float]) -> float:
    """The sum of bounds, not above that of the numbers as they are: that of floats may be."""
    total = math.fsum(bounds)
    is_exact = all(number.is_integer() for number in (total, *bounds))
    return total if is_exact else math.nextafter(total, -math.inf)


def by_tiles(
    method: str, mrf: TiledMRF, x0: Any, rng: np.random.Generator, limits: dict[str, Any], options: dict[str, Any]
) -> MAPResult:
    """Search a tiled model by a method of `minimize`, within checked limits; the options are for each tile.

    "t_icm" solves all tiles, then all that lie half a tile aside, and so on until nothing changes; `maxiter` limits
    these rounds. The others search all tiles, and then what lies around their borders. Without a start "auto" searches
    the tiles by themselves: what bounds their energies bounds the whole.
    """
    as_choice(method, "method of a TiledMRF", METHODS)
    if isinstance(x0, str):
        as_choice(x0, "x0 of a TiledMRF", STARTS)
    elif x0 is not None:
        x0 = x0 if hasattr(x0, "shape") else np.asarray(x0)
        if tuple(x0.shape) != mrf.shape:
            raise ValueError(f"x0 has shape {tuple(x0.shape)}, but the model's is {mrf.shape}")
    with Interrupts() as interrupts:
        x = mrf.new_labelling()
        try:
            search = _Search(method, mrf, x, interrupts, int(rng.integers(2**63)), limits, options)
            with search:
                if method == "t_icm":
                    search.start(x0)
                    search.descend()
                else:
                    search.tiles_and_borders(x0)
            return search.result()
        except BaseException:
            mrf.discard_labelling()
            raise


class _Search:
    """One search: its labelling, its energy, its limits. While entered, it swallows the second Ctrl-C."""

    def __init__(
        self,
        method: str,
        mrf: TiledMRF,
        x: Any,
        interrupts: Interrupts,
        root: int,
        limits: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        self._method, self._mrf, self._root, self._options = method, mrf, root, options
        self._maxiter, self._time_limit, self._callback = (
            limits[name] for name in ("maxiter", "time_limit", "callback")
        )
        self._timer, self._x, self._interrupts = Timer(), x, interrupts
        self._bar = Bar(f"{method}, tiles", None) if limits["progress"] else None
        self._energies: list[float] = []
        self._forbidden, self._bound = 0, math.nan
        self._status, self._message, self._was_limited = CONVERGED, "", False
        self._rows: list[tuple[int, float, float, float, float]] = []
        self._nit = 0
        self._to_come = mrf.size  # sites of the tiles that are left, which share the time that is left

    def __enter__(self) -> _Search:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if self._bar is not None:
            self._bar.close()
        if kind is None or not issubclass(kind, KeyboardInterrupt) or not self._rows:
            return False
        self._interrupted("interrupted")
        return True

    def start(self, x0: Any) -> None:
        """Begin with the given labels, with random ones (None, too), or with each site's own best."""
        for box in self._mrf.tiles:
            if x0 is None or isinstance(x0, str):
                unary = self._mrf.costs(box) if x0 == "unary" else None
                labels = first_labels(self._root, box, self._mrf.labels, unary)
            else:
                labels = self._mrf.checked(np.asarray(x0[box]), "x0")
            self._put(box, labels)
        finite, self._forbidden = self._mrf.energy_parts(self._x)
        self._energies = [finite]
        self._record()

    def tiles_and_borders(self, x0: Any) -> None:
        """Search all tiles, and then what is around their borders."""
        first, *borders = turns(self._mrf)
        self._to_come += sum(size_of(box) for lots in borders for lot in lots for box in lot)
        if x0 is None and self._method == "auto":
            self._search_alone([box for lot in first for box in lot])
        else:
            self.start(x0)
            self._search(1, first)
        for turn, lots in enumerate(borders, 2):
            self._search(turn, lots)
        if not self._message and self._was_limited:
            self._stop(MAXITER, f"all tiles and their borders searched, with maxiter = {self._options['maxiter']} each")
        elif not self._message:
            self._stop(CONVERGED, "converged: all tiles and their borders are searched")

    def _search_alone(self, boxes: list[Box]) -> None:
        bounds = []
        for box in boxes:
            tile = self._mrf.read(box)
            # if there is no time, every site takes its own best label
            solved = (self._solved(tile, 1, box) if self._goes_on() else None) or best_alone(tile)
            self._put(box, solved.x)
            self._take(solved)
            bounds.append(solved.bound)
        finite, forbidden, least = self._mrf.between_tiles(self._x)
        self._energies.append(finite)
        self._forbidden += forbidden
        self._bound = total_bound([*bounds, least])
        self._record()

    def _search(self, turn: int, lots: list[list[Box]]) -> None:
        if self._message:
            return
        for box in (box for lot in lots for box in lot):
            if not self._goes_on():
                break
            self._improve(turn, box)
        self._nit += 1
        self._record()

    def descend(self) -> None:
        """Solve all tiles, then those half a tile aside, and so on, as long as one of them may change."""
        cuts = [cut(self._mrf.shape, self._mrf.tile, shifted) for shifted in (False, True)]
        waiting = [{_key(box): box for lot in lots for box in lot} for lots in cuts]
        while any(waiting) and self._goes_on():
            if self._maxiter is not None and self._nit >= self._maxiter:
                self._stop(MAXITER, f"maxiter = {self._maxiter} rounds made")
                break
            side = self._nit % 2
            for box in (box for lot in cuts[side] for box in lot):
                if _key(box) not in waiting[side]:
                    continue
                if not self._goes_on():
                    break
                changed = self._improve(self._nit + 1, box)
                if self._status not in (TIME_LIMIT, INTERRUPTED):
                    del waiting[side][_key(box)]
                if changed is not None:
                    for other, lots in enumerate(cuts):
                        near = (b for lot in lots for b in lot if touch(b, changed) and (other != side or b != box))
                        waiting[other] |= {_key(b): b for b in near}
            self._nit += 1
            self._record()
        if not self._message:
            self._stop(CONVERGED, "converged: no tile lowers the energy any more")

    def _improve(self, turn: int, box: Box) -> Box | None:
        """Search a tile given the labels around it; returns which part of the grid has changed."""
        solved = self._solved(self._mrf.read(box, self._x), turn, box)
        if solved is None:
            return None
        self._take(solved)
        if solved.changed is None:
            return None
        self._put(box, solved.x)
        return tuple(
            slice(part.start + k.start, part.start + k.stop) for part, k in zip(box, solved.changed, strict=True)
        )

    def _solved(self, tile: Tile, turn: int, box: Box) -> Solved | None:
        """What a search makes of a tile; None if Ctrl-C comes before it has made anything."""
        options = dict(self._options)
        if self._time_limit is not None:
            left = max(0.0, self._time_limit - self._timer.seconds())
            share = 1.0 if self._method == "t_icm" else min(1.0, size_of(box) / max(1, self._to_come))
            options["time_limit"] = share * left
        self._to_come -= size_of(box)
        try:
            return solve_tile(tile, self._method, options, seed_of(self._root, turn, box))
        except KeyboardInterrupt:
            self._interrupted("interrupted")
            return None

    def _put(self, box: Box, labels: np.ndarray) -> None:
        try:
            self._x[box] = labels
        except OSError as error:
            cause = error.strerror or " ".join(str(error).split())
            plain = OSError(f"could not write labels to the store: {cause}")
            plain.errno = error.errno
            raise plain from error

    def _take(self, solved: Solved) -> None:
        self._energies.append(solved.finite)
        self._forbidden += solved.forbidden
        self._was_limited = self._was_limited or (solved.status == MAXITER and self._options.get("maxiter") is not None)
        if solved.status == INTERRUPTED and not self._message:
            self._interrupted(self._interrupts.pending or "interrupted")
        if self._bar is not None:
            self._bar.step(1, self._energy, self._energy)

    @property
    def _energy(self) -> float:
        return math.inf if self._forbidden else math.fsum(self._energies)

    def _goes_on(self) -> bool:
        if not self._message and self._interrupts.pending:
            self._interrupted(self._interrupts.pending)
        if not self._message and self._time_limit is not None and self._timer.seconds() >= self._time_limit:
            self._stop(TIME_LIMIT, f"time_limit = {self._time_limit:g} s reached")
        return not self._message

    def _stop(self, status: int, message: str) -> None:
        self._status, self._message = status, message

    def _interrupted(self, how: str) -> None:
        self._stop(INTERRUPTED, f"{how}; the labelling is the best so far")

    def _record(self) -> None:
        energy = self._energy
        self._rows.append((self._nit, self._timer.seconds(), energy, energy, min(self._bound, energy)))
        if self._callback is None:
            return
        try:
            self._callback(self._told(energy))
        except StopIteration:
            self._stop(CALLBACK, "stopped by the callback")

    def result(self) -> MAPResult:
        """What was found; its energy is summed afresh."""
        finite, forbidden = self._mrf.energy_parts(self._x)
        if self._interrupts.pending and self._status != INTERRUPTED:
            self._interrupted(self._interrupts.pending)
        fun = math.inf if forbidden else finite
        if forbidden:
            self._message += f"; the labelling has infinite energy: it holds {forbidden} forbidden costs"
            self._status = self._status if self._status == INTERRUPTED else FORBIDDEN
        return self._told(fun)

    def _told(self, fun: float) -> MAPResult:
        trace = np.array(self._rows, TRACE)
        for name in ("energy", "best"):  # rounding must not put one below the last
            trace[name] = np.maximum(trace[name], fun)
            trace[name][-1] = fun
        trace["bound"] = np.minimum(trace["bound"], fun)
        bound = min(self._bound, fun)
        return MAPResult(
            x=self._x.array() if hasattr(self._x, "array") else self._x,
            fun=fun,
            nit=self._nit,
            success=self._status not in (INTERRUPTED, FORBIDDEN),
            status=self._status,
            message=self._message or "running",
            method=self._method,
            lower_bound=bound,
            gap=relative_gap(fun, bound),
            trace=trace,
        )


def size_of(box: Box) -> int:
    """How many sites a box has."""
    return math.prod(part.stop - part.start for part in box)


def _key(box: Box) -> tuple[int, ...]:
    return tuple(part.start for part in box)

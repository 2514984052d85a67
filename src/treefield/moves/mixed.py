"""A mixture of jumps that learns which kind pays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treefield.moves.balls import BallJump
from treefield.moves.boxes import BoxJump
from treefield.moves.common import own_work, restore, state_of
from treefield.moves.heat import HeatJump
from treefield.moves.segments import SegmentJump
from treefield.protocols import Jump, Learns, Model
from treefield.validation import as_count, as_fields, as_non_negative

_MEMORY = 0.5  # how much of what a kind has won counts after its next use
_NOTHING = 1e-200  # a rate below is that of kinds that have long won nothing
_FLOOR = 0.1  # the share of jumps that are spread evenly over all kinds


def _on_grids() -> list[Jump]:
    return [
        BoxJump("scramble", size=(8, 8), density=1.0),
        BoxJump("best", size=(3, 12)),
        BoxJump("best", size=(12, 64)),
        BoxJump("neighbour"),
        SegmentJump("neighbour"),
        SegmentJump("shift"),
    ]


def _on_graphs() -> list[Jump]:
    return [
        BallJump("scramble", size=(16, 128), density=1.0),
        BallJump("scramble", size=(2, 16), density=0.2),
        BallJump("best", size=(4, 128)),
        SegmentJump("neighbour"),
        HeatJump(),
        HeatJump(trees=True),
    ]


_USUAL = {"grid": _on_grids, "graph": _on_graphs}


class MixedJump:
    """Jumps of several kinds, each used the more often the more energy it has lately won per unit of work.

    Which kind pays depends on the problem and on the moment. Work is counted in sites x labels, not in seconds, so that
    the same seed makes the same choices on any machine.

    Parameters
    ----------
    jumps : list of jumps, optional
        The default is, on a grid, small and large boxes set to their best label, boxes set to a neighbouring label,
        boxes of random labels, and segments set to a neighbour's or to a shifted label; on a graph balls instead of
        boxes, and warming up and cooling down (`HeatJump`).

    Examples
    --------
    >>> import treefield as tf
    >>> jump = tf.moves.MixedJump([tf.moves.BoxJump("best"), tf.moves.SegmentJump("shift")])
    """

    def __init__(self, jumps: Sequence[Jump] | None = None) -> None:
        self.kind = None if jumps is None else "own"
        jumps = _USUAL["grid"]() if jumps is None else jumps
        if not isinstance(jumps, list | tuple) or not jumps:
            raise TypeError(f"jumps must be a list of at least one jump, got {jumps!r}")
        for number, jump in enumerate(jumps):
            if isinstance(jump, type) or not callable(jump):
                raise TypeError(f"jumps[{number}] must be a function of (x, mrf, rng), got {jump!r}")
        self._use(jumps)

    def _use(self, jumps: Sequence[Jump]) -> None:
        self.jumps = list(jumps)
        self.won = np.zeros(len(jumps))
        self.spent = np.zeros(len(jumps))
        self.uses = np.zeros(len(jumps), np.int64)
        self.last = 0

    def _suit(self, kind: str) -> None:
        """Have the usual jumps of a kind of model, if none were given."""
        if self.kind in (None, "grid", "graph") and kind != self.kind:
            self._use(_USUAL[kind]())
            self.kind = kind

    def __repr__(self) -> str:
        return f"MixedJump({self.jumps})" if self.kind == "own" else "MixedJump()"

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        self._suit("grid" if mrf.backend.has_lines else "graph")
        self.last = self._choose(rng)
        self.uses[self.last] += 1
        return self.jumps[self.last](x, mrf, rng)

    def _choose(self, rng: np.random.Generator) -> int:
        if self.uses.min() == 0 and self.uses.sum() % 2 == 0:  # every second jump is of a kind not tried before
            return int(self.uses.argmin())
        rates = self.won / np.maximum(self.spent, 1.0)
        most = rates.max()
        if most < _NOTHING:
            return int(rng.integers(len(rates)))
        odds = rates / most
        odds = _FLOOR / len(rates) + (1 - _FLOOR) * odds / odds.sum()
        return int(rng.choice(len(rates), p=odds / odds.sum()))

    def work(self, mrf: Model) -> float:
        """The work of the last jump, in sites x labels."""
        return own_work(self.jumps[self.last], mrf)

    def learn(self, won: float, work: float) -> None:
        """Note the energy that the last jump won, and the work it took."""
        self.won[self.last] = _MEMORY * self.won[self.last] + won
        self.spent[self.last] = _MEMORY * self.spent[self.last] + work
        inner = self.jumps[self.last]
        if isinstance(inner, Learns):
            inner.learn(won, work)

    def get_state(self) -> dict[str, object]:
        """The gain and the work of each kind so far, and the states of the jumps."""
        inner = [state_of(jump) for jump in self.jumps]
        learnt = {name: getattr(self, name).tolist() for name in ("won", "spent", "uses")}
        return learnt | {"last": self.last, "jumps": inner, "kind": self.kind}

    def set_state(self, state: object) -> None:
        """Restore a state that `get_state` returned; raise an error for any other."""
        names = "won", "spent", "uses", "jumps", "last", "kind"
        *lists, last, kind = as_fields(state, "the state of MixedJump", *names)
        if kind not in (("own",) if self.kind == "own" else (None, *_USUAL)):
            raise ValueError(f"kind = {kind!r} cannot be the state of {self!r}")
        if kind is not None:
            self._suit(kind)
        for name, values in zip(names, lists, strict=False):
            if not isinstance(values, list) or len(values) != len(self.jumps):
                raise ValueError(f"{name} must be a list of {len(self.jumps)} values, one for each jump")
        won, spent, uses, inner = lists
        self.won, self.spent = (
            np.array([as_non_negative(v, "won and spent") for v in values]) for values in (won, spent)
        )
        self.uses = np.array([as_count(value, "uses") for value in uses], np.int64)
        self.last = as_count(last, "last")
        if self.last >= len(self.jumps):
            raise ValueError(f"last must be the number of one of {len(self.jumps)} jumps, got {last}")
        for jump, learnt in zip(self.jumps, inner, strict=True):
            restore(jump, learnt)

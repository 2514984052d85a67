"""A memory of where the search has been."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from treefield.moves.accept import PerComponent
from treefield.moves.state import restore, state_of
from treefield.validation import count


class Unvisited:
    """Keeps a walk from crossing itself: what an acceptance takes must not lead back to where the search has been.

    Around `PerComponent` the memory is of pieces: a component is not given labels that the same sites held before a
    change that was taken. Around other acceptances it is of whole labellings. The search still returns the best
    labelling of all.

    Parameters
    ----------
    accept : acceptance
        What decides on the rest, for instance ``Metropolis()`` or ``PerComponent(Metropolis(beta=0.1))``.
    length : int
        How many places are remembered; the oldest are forgotten.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.moves.Unvisited(tf.moves.Metropolis())
    Unvisited(Metropolis(), length=100000)
    """

    def __init__(self, accept: Any, length: int = 100_000) -> None:
        if isinstance(accept, type) or not callable(accept):
            raise TypeError(f"accept must be an acceptance such as Metropolis() or PerComponent(), got {accept!r}")
        self.accept = accept
        self.length = count(length, "length", 1)
        self._places: OrderedDict[int, None] = OrderedDict()  # in the order of their visits

    def __repr__(self) -> str:
        return f"Unvisited({self.accept!r}, length={self.length})"

    def __call__(self, mrf: Any, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float | None:
        from treefield.kernels.components import hash_components, take_components

        flat = x.reshape(-1), y.reshape(-1)
        if isinstance(self.accept, PerComponent):
            numbers, finite, _ = mrf.components(x, y)
            numbers, pieces = numbers.reshape(-1), len(finite)
        else:
            numbers, pieces = np.zeros(mrf.size, np.int32), 1
        leaving, reaching = np.zeros((2, pieces), np.uint64)
        hash_components(*flat, mrf.labels, numbers, leaving, reaching)
        known = np.array([place in self._places for place in reaching.tolist()], np.bool_)
        before = flat[0].copy()
        if known.any():  # what leads back is taken out of y
            take_components(flat[1], flat[0], numbers, known)
            if known.all():
                return None
        change = self.accept(mrf, x, y, rng)
        if change is not None:
            taken = np.zeros(pieces, np.bool_)
            moved = (flat[0] != before) & (numbers >= 0)
            taken[numbers[moved]] = True
            self._remember(leaving[taken].tolist())
        return change

    def _remember(self, places: list[int]) -> None:
        for place in places[-self.length :]:
            self._places[place] = None
            self._places.move_to_end(place)
        while len(self._places) > self.length:
            self._places.popitem(last=False)

    def get_state(self) -> dict[str, Any]:
        return {"places": list(self._places), "accept": state_of(self.accept)}

    def set_state(self, state: dict[str, Any]) -> None:
        self._places = OrderedDict.fromkeys(state["places"])
        restore(self.accept, state["accept"])

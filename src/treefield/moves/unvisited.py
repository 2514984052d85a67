"""A memory of where the search has been."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from treefield.moves.accept import PerComponent
from treefield.moves.common import restore, state_of
from treefield.protocols import Accept, Decides, Model
from treefield.validation import as_count, as_fields


class Unvisited:
    """Keeps a walk from crossing itself: what an acceptance takes must not lead back to where the search has been.

    Around `PerComponent` the memory is of pieces: a component is not given labels that the same sites held before a
    change that was taken. Around other acceptances it is of whole labellings. The search still returns the best
    labelling of all.

    Parameters
    ----------
    accept : acceptance
        The acceptance of the rest, for instance ``Metropolis()`` or ``PerComponent(Metropolis(beta=0.1))``.
    length : int
        How many places are remembered; the oldest are forgotten.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.moves.Unvisited(tf.moves.Metropolis())
    Unvisited(Metropolis(), length=100000)
    """

    def __init__(self, accept: Accept, length: int = 100_000) -> None:
        if isinstance(accept, type) or not callable(accept):
            raise TypeError(f"accept must be an acceptance such as Metropolis() or PerComponent(), got {accept!r}")
        self.accept = accept
        self.length = as_count(length, "length", 1)
        self._places: OrderedDict[int, None] = OrderedDict()  # in the order of their visits

    def __repr__(self) -> str:
        return f"Unvisited({self.accept!r}, length={self.length})"

    def __call__(self, mrf: Model, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float | None:
        if isinstance(self.accept, PerComponent):
            return self._take_pieces(self.accept.rule, mrf, x, y, rng)
        leaving, new = self._hash_places(mrf, x, y, np.zeros(mrf.size, np.int32), 1)
        before = x.copy()
        change = self.accept(mrf, x, y, rng) if new[0] else None
        if change is not None and not np.array_equal(x, before):
            self._remember(leaving)
        return change

    def _take_pieces(
        self, rule: Decides, mrf: Model, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> float | None:
        numbers, finite, forbidden = mrf.backend.components(x, y)
        leaving, new = self._hash_places(mrf, x, y, numbers.reshape(-1), len(finite))
        taken = new.copy()
        taken[new] = rule.decide(finite[new], forbidden[new], rng)
        if not taken.any():
            return None
        mrf.backend.apply_components(x, y, numbers, taken)
        self._remember(leaving[taken])
        return float(finite[taken].sum())

    def _hash_places(
        self, mrf: Model, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, pieces: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The hash of the place that each piece would leave, and whether the one that it would reach is new."""
        leaving, reaching = mrf.backend.hash_components(x, y, numbers, pieces)
        return leaving, np.array([place not in self._places for place in reaching.tolist()], np.bool_)

    def _remember(self, places: np.ndarray) -> None:
        for place in places[-self.length :].tolist():
            self._places[place] = None
            self._places.move_to_end(place)
        while len(self._places) > self.length:
            self._places.popitem(last=False)

    def get_state(self) -> dict[str, object]:
        """The hashes of the places, oldest first, and the state of the acceptance."""
        return {"places": list(self._places), "accept": state_of(self.accept)}

    def set_state(self, state: object) -> None:
        """Restore a state that `get_state` returned; raise an error for any other."""
        places, accept = as_fields(state, "the state of Unvisited", "places", "accept")
        if not isinstance(places, list) or not all(type(place) is int and 0 <= place < 2**64 for place in places):
            raise ValueError("places must be a list of 64-bit hashes")
        visited = OrderedDict.fromkeys(places)
        if not len(visited) == len(places) <= self.length:
            raise ValueError(f"places must be at most {self.length} different hashes, got {len(places)}")
        restore(self.accept, accept)
        self._places = visited

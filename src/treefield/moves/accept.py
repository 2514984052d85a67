"""Which of the labellings a jump led to the search goes on from.

`Metropolis`, `Greedy` and `Always` decide on changes of energy: on that of the whole labelling, or inside
`PerComponent` on that of every connected component of changed sites by itself.
"""

from __future__ import annotations

import abc
import math

import numpy as np

from treefield.moves.common import restore, state_of
from treefield.protocols import Decides, Model
from treefield.validation import as_count, as_fields, as_real_scalar

_RAISE = 0.8  # the paper's factor on beta
_LOW, _HIGH = 0.45, 0.55  # acceptance rates between which beta stays
_LEAST, _MOST = 1e-300, 1e300  # from 0 and infinity no factor would lead beta back


def not_worse(finite: np.ndarray, forbidden: np.ndarray) -> np.ndarray:
    """Which changes do not raise the energy: fewer forbidden costs come before less energy."""
    return (forbidden < 0) | ((forbidden == 0) & (finite <= 0))


class _Rule(abc.ABC):
    """Takes or leaves changes by themselves; as an acceptance, the labelling as a whole."""

    @abc.abstractmethod
    def decide(self, finite: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Which changes to take, given what they add to the finite costs and to the number of forbidden ones."""

    def __call__(self, mrf: Model, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float | None:
        _, finite, forbidden = mrf.backend.components(x, y)
        whole = np.array([finite.sum()]), np.array([forbidden.sum()])
        if not self.decide(*whole, rng)[0]:
            return None
        np.copyto(x, y)
        return float(whole[0][0])


class Metropolis(_Rule):
    """The paper's acceptance: a change dE is taken with probability min(1, exp(-beta dE)).

    Parameters
    ----------
    beta : float, optional
        A fixed inverse temperature: infinity takes only what does not raise the energy, 0 everything. By default beta
        starts at 1 and is adapted so that about half of the changes are taken.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.moves.Metropolis(), tf.moves.Metropolis(beta=2.5)
    (Metropolis(), Metropolis(beta=2.5))
    """

    def __init__(self, beta: float | None = None) -> None:
        self.adapts = beta is None
        self.beta = 1.0 if beta is None else as_real_scalar(beta, "beta", infinite=True)
        if self.beta < 0:
            raise ValueError(f"beta must be at least 0 (0 accepts all, inf is greedy), got {self.beta}")
        self.taken = self.tried = 0

    def __repr__(self) -> str:
        return "Metropolis()" if self.adapts else f"Metropolis(beta={self.beta})"

    def decide(self, finite: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        draws = rng.random(len(finite))
        taken = not_worse(finite, forbidden)
        worse = ~taken
        rise = np.where(forbidden > 0, math.inf, finite)
        if self.beta == 0:
            taken |= True
        elif self.beta < math.inf:
            taken[worse] = draws[worse] < np.exp(-self.beta * rise[worse])
        if self.adapts and len(taken):
            self._adapt(taken)
        return taken

    def _adapt(self, taken: np.ndarray) -> None:
        self.taken += int(np.count_nonzero(taken))
        self.tried += len(taken)
        rate = 0.9 * self.taken / self.tried + 0.1 * float(np.mean(taken))
        if rate < _LOW:
            self.beta = max(_LEAST, self.beta * _RAISE)
        elif rate > _HIGH:
            self.beta = min(_MOST, self.beta / _RAISE)

    def get_state(self) -> dict[str, float]:
        """The inverse temperature and what it was adapted to."""
        return {"beta": self.beta, "taken": self.taken, "tried": self.tried}

    def set_state(self, state: object) -> None:
        """Restore a state that `get_state` returned; raise an error for any other."""
        beta, taken, tried = as_fields(state, "the state of Metropolis", "beta", "taken", "tried")
        beta = as_real_scalar(beta, "beta", infinite=True)
        if not _LEAST <= beta <= _MOST if self.adapts else beta != self.beta:
            raise ValueError(f"beta = {beta:g} cannot be the state of {self!r}")
        tried = as_count(tried, "tried")
        taken = as_count(taken, "taken")
        if taken > tried:
            raise ValueError(f"taken must be at most tried, got {taken} and {tried}")
        self.beta, self.taken, self.tried = beta, taken, tried


class Greedy(_Rule):
    """Takes what does not raise the energy."""

    def __repr__(self) -> str:
        return "Greedy()"

    def decide(self, finite: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return not_worse(finite, forbidden)


class Always(_Rule):
    """Takes everything."""

    def __repr__(self) -> str:
        return "Always()"

    def decide(self, finite: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.ones(len(finite), np.bool_)


class PerComponent:
    """Take or leave every connected component of the changed sites by itself.

    A jump in many places is then many jumps at once, each with its own acceptance.

    Parameters
    ----------
    rule : Greedy, Metropolis or Always
        The rule that decides on a component; with the default `Greedy` the energy never rises.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.array([[[0, 5], [2, 2], [5, 0]]]), tf.Potts(1))
    >>> x, y = np.array([[0, 0, 0]], np.int32), np.array([[1, 0, 1]], np.int32)
    >>> tf.moves.PerComponent()(mrf, x, y, np.random.default_rng(0)), x
    (-4.0, array([[0, 0, 1]], dtype=int32))
    """

    def __init__(self, rule: Decides | None = None) -> None:
        self.rule = Greedy() if rule is None else rule
        if isinstance(self.rule, type) or not isinstance(self.rule, Decides):
            raise TypeError(f"rule must be Greedy(), Metropolis() or Always(), got {rule!r}")

    def __repr__(self) -> str:
        return f"PerComponent({self.rule!r})"

    def __call__(self, mrf: Model, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float | None:
        numbers, finite, forbidden = mrf.backend.components(x, y)
        taken = self.rule.decide(finite, forbidden, rng)
        if not taken.any():
            return None
        mrf.backend.apply_components(x, y, numbers, taken)
        return float(finite[taken].sum())

    def get_state(self) -> object:
        """The state of the rule; None if it has none."""
        return state_of(self.rule)

    def set_state(self, state: object) -> None:
        """Restore a state that `get_state` returned; raise an error for any other."""
        restore(self.rule, state)

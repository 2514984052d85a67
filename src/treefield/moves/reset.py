"""Jumps that reset the labels of a random share of the sites."""

from __future__ import annotations

import abc

import numpy as np

from treefield.protocols import Model
from treefield.validation import as_positive, as_share


class _ResetJump(abc.ABC):
    """Give random labels to a share of the sites, which is drawn for every jump."""

    @abc.abstractmethod
    def share(self, rng: np.random.Generator) -> float:
        """The share of the sites to reset."""

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        y = x.copy()
        count = max(1, round(self.share(rng) * mrf.size))
        sites = rng.choice(mrf.size, count, replace=False, shuffle=False)
        y.reshape(-1)[sites] = mrf.backend.random_labels(rng, sites)
        return y


class UniformJump(_ResetJump):
    """The paper's jump: random labels for a share of the sites drawn from U(0, `rho_max`).

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.zeros((10, 10, 256)), tf.Potts(1))
    >>> x = np.zeros((10, 10), np.int32)
    >>> int(np.count_nonzero(tf.moves.UniformJump(0.5)(x, mrf, np.random.default_rng(0))))
    32
    """

    def __init__(self, rho_max: float = 0.1) -> None:
        self.rho_max = as_share(rho_max, "rho_max")

    def __repr__(self) -> str:
        return f"UniformJump({self.rho_max})"

    def share(self, rng: np.random.Generator) -> float:
        return rng.uniform(0, self.rho_max)


class BetaJump(_ResetJump):
    """Random labels for a share of the sites drawn from `rho_max` times a Beta(`a`, `b`) distribution.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.moves.BetaJump(1, 9)
    BetaJump(1.0, 9.0, rho_max=1.0)
    """

    def __init__(self, a: float = 1.0, b: float = 9.0, rho_max: float = 1.0) -> None:
        self.a, self.b = as_positive(a, "a"), as_positive(b, "b")
        self.rho_max = as_share(rho_max, "rho_max")

    def __repr__(self) -> str:
        return f"BetaJump({self.a}, {self.b}, rho_max={self.rho_max})"

    def share(self, rng: np.random.Generator) -> float:
        return self.rho_max * rng.beta(self.a, self.b)


class LevyJump(_ResetJump):
    """Random labels for a share of the sites drawn from a power law: mostly small steps, now and then nearly a restart.

    The density is p(rho) ~ rho^-`alpha` between `rho_min` and `rho_max`.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.moves.LevyJump(1.5)
    LevyJump(1.5, rho_min=0.001, rho_max=1.0)
    """

    def __init__(self, alpha: float = 1.5, rho_min: float = 0.001, rho_max: float = 1.0) -> None:
        self.alpha = as_positive(alpha, "alpha")
        self.rho_min, self.rho_max = as_share(rho_min, "rho_min"), as_share(rho_max, "rho_max")
        if self.rho_min > self.rho_max:
            raise ValueError(f"rho_min must be at most rho_max, got {self.rho_min} and {self.rho_max}")

    def __repr__(self) -> str:
        return f"LevyJump({self.alpha}, rho_min={self.rho_min}, rho_max={self.rho_max})"

    def share(self, rng: np.random.Generator) -> float:
        u, power = rng.random(), 1 - self.alpha
        if abs(power) < 1e-9:
            return self.rho_min * (self.rho_max / self.rho_min) ** u
        # relative to rho_min, which no power overflows
        return self.rho_min * (1 + u * ((self.rho_max / self.rho_min) ** power - 1)) ** (1 / power)

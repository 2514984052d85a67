"""What all applications share: a model, what its labels mean, and how it is minimised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.results import MAPResult
from treefield.solvers.minimize import minimize, takes

TOL = 1e-3  # a gap below this is not seen in a picture

_WITH_GAP = ("auto", "trw")  # to the others tol means something else, or nothing
_DIGITS = 2**10


def short(weight: float) -> float:
    """A weight rounded to ten binary digits, so that float32 holds it, and its product with others like it, exactly."""
    part, exponent = math.frexp(weight)
    return math.ldexp(round(part * _DIGITS) / _DIGITS, exponent)


@dataclasses.dataclass
class Problem:
    """A model, what a labelling of it means to the user, and where to start if that is known better than `minimize`
    does."""

    mrf: Any
    output: Callable[[np.ndarray], np.ndarray]
    start: np.ndarray | None = None

    def any_output(self) -> np.ndarray:
        """What the last label everywhere means: an answer of the same shape, dtype and greatest value as any."""
        return self.output(np.full(self.mrf.shape, self.mrf.labels - 1, np.int32))

    def minimize(self, **options: Any) -> MAPResult:
        """The result of `treefield.minimize`, with the model in it as `mrf`."""
        method = options.get("method", "auto")
        names = takes(method)
        if options.get("tol") is None and method in _WITH_GAP:
            options["tol"] = TOL
        if options.get("x0") is None and "x0" in names:
            options["x0"] = self.start
        if "rng" not in names:  # nothing is drawn
            options.pop("rng", None)
        result = minimize(self.mrf, **options)
        result.mrf = self.mrf
        return result

    def solve(self, full_output: bool, **options: Any) -> Any:
        """What the best labelling means; with `full_output` the result, too."""
        result = self.minimize(**options)
        answer = self.output(result.x)
        return (answer, result) if full_output else answer

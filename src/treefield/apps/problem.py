"""The part that all applications share: a model, the meaning of its labels, and the call of `minimize`."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Generic, Literal, TypeVar, cast, overload

import numpy as np

from treefield.io.limits import available_memory, format_bytes
from treefield.models.graph import GraphMRF
from treefield.models.grid import GridMRF
from treefield.results import MAPResult, amend_result
from treefield.solvers.minimize import LABELLINGS, check_method_keywords, minimize, takes
from treefield.tiling.model import TiledMRF
from treefield.validation import as_non_negative

TOL = 1e-3  # no smaller gap can be seen in a picture

_METHODS_WITH_GAP = ("auto", "trw")  # for the others tol means something else, or nothing
MESSAGE_METHODS = ("trw", "loopy_bp")
_FREE_SHARE = 0.9  # of the free memory that a search may use
_MANTISSA = 2**10


def check_options(application: Callable[..., object], options: Mapping[str, object]) -> None:
    """Raise a TypeError for options that neither an application nor the solver to which it passes them on takes."""
    own = [name for name in inspect.signature(application).parameters if name != "options"]
    method = cast(str, options.get("method", "auto"))
    check_method_keywords(method, options, application.__name__, [*own, "method"])


def round_to_ten_bits(weight: float) -> float:
    """Round a weight to ten binary digits, so that float32 holds it, and its product with another, exactly."""
    mantissa, exponent = math.frexp(weight)
    return math.ldexp(round(mantissa * _MANTISSA) / _MANTISSA, exponent)


def name_limit(res: MAPResult, left: float | None, asked: float) -> MAPResult:
    """The result of a search that had `left` seconds, with a message that names the limit that was asked for."""
    return amend_result(res, message=res.message.replace(f"time_limit = {left:g} s", f"time_limit = {asked:g} s"))


def check_search_fits(mrf: GridMRF | GraphMRF | TiledMRF, method: str, memory: int | None) -> None:
    """Raise MemoryError if the search of a model needs too much: for "auto", which needs less where there is less, more
    than `memory` bytes, which the costs have left, for other methods more than is free."""
    if isinstance(mrf, TiledMRF) or mrf.backend.has_few_edges:
        return
    needs, free = mrf.backend.search_bytes(), available_memory()
    if method != "auto":
        need = needs["auto", "exact" if method in MESSAGE_METHODS else None]
        if free is not None and need > _FREE_SHARE * free:
            raise MemoryError(
                f'method="{method}" needs about {format_bytes(need)} for this model, but only {format_bytes(free)} of '
                'memory are free: take fewer labels, a smaller image, or method="auto", which keeps to a memory_limit'
            )
        return
    least = min(needs.values()) + LABELLINGS * 4 * mrf.size
    if memory is not None and least > memory:
        raise MemoryError(
            f"the costs leave {format_bytes(memory)} of the memory limit for the search, which needs at least "
            f"{format_bytes(least)}: give a larger memory_limit (--memory-limit)"
        )


ModelT = TypeVar("ModelT", bound=GridMRF | GraphMRF | TiledMRF)


@dataclasses.dataclass
class Problem(Generic[ModelT]):
    """A model, the answer that a labelling of it stands for, and optionally a labelling to start from.

    `tol` is the default of the keyword of `minimize`. `preparation` is the seconds that building the model took, which
    count for its `time_limit`; `memory` the bytes that the search may use, its `memory_limit`, None for no limit.
    `is_solved` if the answer does not depend on the labelling: an `x0`, of a film's last frame, is ignored then.
    """

    mrf: ModelT
    output: Callable[[np.ndarray], np.ndarray]
    start: np.ndarray | str | None = None
    details: dict[str, object] = dataclasses.field(default_factory=dict)  # further attributes of the result
    tol: float = TOL
    preparation: float = 0.0
    memory: int | None = None
    is_solved: bool = False

    def example_output(self) -> np.ndarray:
        """The answer for the last label everywhere: it has the shape, dtype and greatest value of any answer."""
        return self.output(np.full(self.mrf.shape, self.mrf.n_labels - 1, np.int32))

    def minimize(self, **options: object) -> MAPResult:
        """The result of `treefield.minimize`, with the model as its attribute `mrf`."""
        method = cast(str, options.get("method", "auto"))
        names = takes(method)
        if options.get("tol") is None and method in _METHODS_WITH_GAP:
            options["tol"] = self.tol
        asked = options.get("time_limit")
        if asked is not None:
            asked = as_non_negative(asked, "time_limit", infinite=True)
            options["time_limit"] = left = max(0.0, asked - self.preparation)
        if options.get("x0") is None or self.is_solved:
            options.pop("x0", None)
            if self.start is not None and "x0" in names:
                options["x0"] = self.start
        check_search_fits(self.mrf, method, self.memory)
        if self.memory is not None and "memory_limit" in names:
            options["memory_limit"] = self.memory
        if "rng" not in names:  # the method draws nothing
            options.pop("rng", None)
        search: Callable[..., MAPResult] = minimize  # it checks the keywords itself
        res = search(self.mrf, **options)
        if asked is not None:
            res = name_limit(res, left, asked)
        return amend_result(res, mrf=self.mrf, **self.details)

    @overload
    def solve(self, full_output: Literal[False], **options: object) -> np.ndarray: ...
    @overload
    def solve(self, full_output: Literal[True], **options: object) -> tuple[np.ndarray, MAPResult]: ...
    @overload
    def solve(self, full_output: bool, **options: object) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
    def solve(self, full_output: bool, **options: object) -> np.ndarray | tuple[np.ndarray, MAPResult]:
        """The answer for the best labelling, with `full_output` also the result of the search."""
        result = self.minimize(**options)
        answer = self.output(result.x)
        return (answer, result) if full_output else answer

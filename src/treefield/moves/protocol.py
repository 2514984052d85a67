"""What a search asks of a move: a labelling that is one, how much work it was, and what it has learnt.

A jump that learns which of its kinds pay has ``learn(won, work)``. A move whose state must outlive the process has
``get_state()``, which returns what JSON can hold, and ``set_state(state)``; checkpoints keep it. `set_state` raises an
error for a state that `get_state` cannot have returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.validation import as_count, as_labelling, as_real_scalar

_ACCEPTANCE = 4.0  # labels' worth of a sweep, for every site
_TRIALS = 64  # changes by which temperatures are judged, and labellings where each gives few
_RANGE = 30.0  # the hottest temperature over the coldest, by default: best on Ising, stereo and grey values alike


def jumped(jump: Callable[..., Any], x: np.ndarray, mrf: Any, rng: np.random.Generator, name: str) -> np.ndarray:
    """``jump(x, mrf, rng)`` as a new int32 labelling, or an error that says what was returned instead."""
    y = jump(x, mrf, rng)
    if not isinstance(y, np.ndarray) or y.shape != mrf.shape or y.dtype.kind not in "ui":
        came = f"{y.dtype} array of shape {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
        raise ValueError(f"{name} must return a labelling of shape {mrf.shape}, but {jump!r} gave {came}")
    if np.may_share_memory(y, x):
        raise ValueError(f"{name} must return a changed copy of x and leave x alone, but {jump!r} gave x itself")
    try:
        return as_labelling(y, mrf, "it", copy=False)
    except ValueError as error:
        raise ValueError(f"{name} must return a labelling, but of what {jump!r} gave {error}") from None


def work(jump: Any, mrf: Any, sweeps: int) -> float:
    """The work of an iteration, in sites x labels, never in seconds: the jump's own if it tells it (a method
    ``work(mrf)``), the sweeps along every axis, and the acceptance."""
    return own_work(jump, mrf) + sweeps * mrf.sweep_work + _ACCEPTANCE * mrf.size


def own_work(jump: Any, mrf: Any) -> float:
    """What the jump itself took."""
    return jump.work(mrf) if hasattr(jump, "work") else 0.0


def state_of(move: Any) -> Any:
    """What a move has learnt; None for moves that do not learn."""
    return move.get_state() if hasattr(move, "get_state") else None


def restore(move: Any, state: Any) -> None:
    """Set a move to a state that `state_of` returned, or raise an error."""
    if hasattr(move, "set_state"):
        move.set_state(state)
    elif state is not None:
        raise ValueError(f"there is a state for {move!r}, which has no set_state()")


def usual_temperatures(mrf: Any, rng: np.random.Generator) -> tuple[float, float]:
    """Temperatures that suit the model: hot is what a random change of one site's label costs or wins, on average."""
    changes: list[float] = []
    for _ in range(_TRIALS):
        x = mrf.random_labels(rng)
        y = x.copy()
        apart = mrf.independent_sites(rng)  # sites that do not touch are components of their own
        y.reshape(-1)[apart] = mrf.random_labels(rng, apart)
        _, finite, forbidden = mrf.components(x, y)
        changes.extend(np.abs(finite[(forbidden == 0) & (finite != 0)]).tolist())
        if len(changes) >= _TRIALS:
            break
    hot = float(np.mean(changes)) if changes else 1.0
    return hot, hot / _RANGE


def falling(temperatures: Any) -> tuple[float, float]:
    """Two temperatures, hot and cold, or an error."""
    if not isinstance(temperatures, list | tuple) or len(temperatures) != 2:
        raise ValueError(f"temperatures must be two numbers, hot and cold, got {temperatures!r}")
    hot, cold = (as_real_scalar(t, f"temperatures[{i}]") for i, t in enumerate(temperatures))
    if not hot >= cold > 0:
        raise ValueError(f"temperatures must be above 0 and must not rise, got {hot:g} and {cold:g}")
    return hot, cold


def ascending(value: Any, name: str, what: str) -> tuple[int, int]:
    """Two positive integers, the least and the greatest of something, or an error."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{name} must be two integers, the least and the greatest {what}, got {value!r}")
    least, most = as_count(value[0], f"{name}[0]", 1), as_count(value[1], f"{name}[1]", 1)
    if least > most:
        raise ValueError(f"{name} must ascend, got {(least, most)}")
    return least, most

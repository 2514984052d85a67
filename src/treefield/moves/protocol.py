"""What a search asks of a move: a labelling that is one, how much work it was, and what it has learnt.

A jump that learns which of its kinds pay has ``learn(won, work)``. A move whose state must outlive the process has
``get_state()``, which returns what JSON can hold, and ``set_state(state)``; checkpoints keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_ACCEPTANCE = 4.0  # labels' worth of a sweep, for every site


def jumped(jump: Callable[..., Any], x: np.ndarray, mrf: Any, rng: np.random.Generator, name: str) -> np.ndarray:
    """``jump(x, mrf, rng)`` as an int32 labelling of its own, or an error that says what came instead."""
    y = jump(x, mrf, rng)
    if not isinstance(y, np.ndarray) or y.shape != mrf.shape or y.dtype.kind not in "ui":
        came = f"{y.dtype} array of shape {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
        raise ValueError(f"{name} must return a labelling of shape {mrf.shape}, but {jump!r} gave {came}")
    if np.may_share_memory(y, x):
        raise ValueError(f"{name} must return a changed copy of x and leave x alone, but {jump!r} gave x itself")
    if y.min() < 0 or y.max() >= mrf.labels:
        came = f"labels from {y.min()} to {y.max()}, expected 0 to {mrf.labels - 1}"
        raise ValueError(f"{name} must return a labelling, but {jump!r} gave {came}")
    return np.ascontiguousarray(y, dtype=np.int32)


def work(jump: Any, mrf: Any, sweeps: int) -> float:
    """The work of an iteration, in sites x labels, never in seconds: the jump's own if it tells it (a method
    ``work(mrf)``), the sweeps along every axis, and the acceptance."""
    return own_work(jump, mrf) + sweeps * len(mrf.shape) * mrf.size * mrf.labels + _ACCEPTANCE * mrf.size


def own_work(jump: Any, mrf: Any) -> float:
    """What the jump itself took."""
    return jump.work(mrf) if hasattr(jump, "work") else 0.0


def state_of(move: Any) -> Any:
    """What a move has learnt; None for moves that do not learn."""
    return move.get_state() if hasattr(move, "get_state") else None


def restore(move: Any, state: Any) -> None:
    """Give a move back what it had learnt."""
    if hasattr(move, "set_state"):
        move.set_state(state)

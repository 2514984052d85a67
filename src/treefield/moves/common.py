"""Helpers of searches and moves: call a jump, count its work, save its state, check parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treefield.protocols import CountsWork, HasState, Jump, Model
from treefield.validation import as_count, as_labelling, as_real_scalar

ACCEPT_WORK = 4.0  # work of an acceptance for every site, in labels
_TRIALS = 64  # changes that temperatures are derived from, and the most labellings that are drawn for them
_RANGE = 30.0  # the hot temperature over the cold one: best on Ising, stereo and grey values alike


def call_jump(jump: Jump, x: np.ndarray, mrf: Model, rng: np.random.Generator, name: str) -> np.ndarray:
    """``jump(x, mrf, rng)`` as a new int32 labelling, or an error that names what it returned instead."""
    y: object = jump(x, mrf, rng)
    if not isinstance(y, np.ndarray) or y.shape != mrf.shape or y.dtype.kind not in "ui":
        got = f"{y.dtype} array of shape {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
        raise ValueError(f"{name} must return a labelling of shape {mrf.shape}, but {jump!r} returned {got}")
    if np.may_share_memory(y, x):
        raise ValueError(f"{name} must return a changed copy of x and leave x alone, but {jump!r} returned x itself")
    try:
        return as_labelling(y, mrf.backend, "it", copy=False)
    except ValueError as error:
        raise ValueError(f"{name} must return a labelling, but of what {jump!r} returned {error}") from None


def total_work(jump: Jump, mrf: Model, sweeps: int) -> float:
    """The work of an iteration, in sites x labels and never in seconds: the jump, the sweeps and the acceptance."""
    return own_work(jump, mrf) + sweeps * mrf.backend.sweep_work + ACCEPT_WORK * mrf.size


def own_work(jump: Jump, mrf: Model) -> float:
    """The work of the jump itself; 0 if it does not count it."""
    return jump.work(mrf) if isinstance(jump, CountsWork) else 0.0


def state_of(move: object) -> object:
    """The state of a move for a checkpoint; None if it has none."""
    return move.get_state() if isinstance(move, HasState) else None


def restore(move: object, state: object) -> None:
    """Set a move to a state that `state_of` returned, or raise an error."""
    if isinstance(move, HasState):
        move.set_state(state)
    elif state is not None:
        raise ValueError(f"there is a state for {move!r}, which has no set_state()")


def usual_temperatures(mrf: Model, rng: np.random.Generator) -> tuple[float, float]:
    """A hot and a cold temperature for a model: hot is the mean change of energy when one site changes its label."""
    backend, changes = mrf.backend, []
    for _ in range(_TRIALS):
        x = backend.random_labels(rng)
        y = x.copy()
        apart = backend.independent_sites(rng)  # each of these sites is a component by itself
        y.reshape(-1)[apart] = backend.random_labels(rng, apart)
        _, finite, forbidden = backend.components(x, y)
        changes.extend(np.abs(finite[(forbidden == 0) & (finite != 0)]).tolist())
        if len(changes) >= _TRIALS:
            break
    hot = float(np.mean(changes)) if changes else 1.0
    return hot, hot / _RANGE


def as_temperatures(temperatures: Sequence[float]) -> tuple[float, float]:
    """Two temperatures, hot and cold, or an error."""
    if not isinstance(temperatures, list | tuple) or len(temperatures) != 2:
        raise ValueError(f"temperatures must be two numbers, hot and cold, got {temperatures!r}")
    hot, cold = (as_real_scalar(t, f"temperatures[{i}]") for i, t in enumerate(temperatures))
    if not hot >= cold > 0:
        raise ValueError(f"temperatures must be above 0 and must not rise, got {hot:g} and {cold:g}")
    return hot, cold


def as_size_range(value: Sequence[int], name: str, what: str) -> tuple[int, int]:
    """Two positive integers in ascending order, or an error."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{name} must be two integers, the smallest and the largest {what}, got {value!r}")
    least, most = as_count(value[0], f"{name}[0]", 1), as_count(value[1], f"{name}[1]", 1)
    if least > most:
        raise ValueError(f"{name} must ascend, got {(least, most)}")
    return least, most

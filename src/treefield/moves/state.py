"""What moves learn during a search, so that a checkpoint can keep it.

A move that learns has ``get_state()``, which returns what JSON can hold, and ``set_state(state)``.
"""

from __future__ import annotations

from typing import Any


def state_of(move: Any) -> Any:
    """What a move has learnt; None for moves that do not learn."""
    return move.get_state() if hasattr(move, "get_state") else None


def restore(move: Any, state: Any) -> None:
    """Give a move back what it had learnt."""
    if hasattr(move, "set_state"):
        move.set_state(state)

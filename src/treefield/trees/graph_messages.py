"""Messages between all neighbours of a graph: for belief propagation, and for a lower bound on the energy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treefield.results import tightened
from treefield.trees.conditional import padded
from treefield.trees.schedules import LANES
from treefield.validation import as_choice, as_flat_output

_EPS = float(np.finfo(np.float64).eps)


class GraphBeliefs:
    """The messages of belief propagation, all 0 at first. Memory: a float64 for each label at either end of each edge,
    rounded up to eight; twice that once they are updated in parallel."""

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels import graph_messages as kernels
        from treefield.kernels.jit import as_compile_time

        self._mrf, self._graph = mrf, mrf.kernel_graph()
        self._messages = _messages(mrf, shared=False)
        self._fresh = np.zeros(0)
        none = np.zeros(0, np.int32)
        nothing = self._graph._replace(starts=np.zeros(1, np.int64))
        with as_compile_time():
            kernels.decode(self._graph, self._messages, none)
            kernels.decode_in_turn(self._graph, self._messages, none)
            kernels.update_all(nothing, self._messages, self._fresh, 0.0)
            kernels.update_in_turn(nothing, self._messages, 0.0)

    def update_all(self, damping: float) -> float:
        """All messages at once, from the old ones; returns the greatest change of one."""
        from treefield.kernels.graph_messages import update_all

        if not len(self._fresh):
            self._fresh = np.zeros_like(self._messages.values)
        change = update_all(self._graph, self._messages, self._fresh, damping)
        self._messages, self._fresh = self._messages._replace(values=self._fresh), self._messages.values
        return float(change)

    def update_in_turn(self, damping: float) -> float:
        """Those of one site after the other, forth and back, from those just made; returns the greatest change."""
        from treefield.kernels.graph_messages import update_in_turn

        return float(update_in_turn(self._graph, self._messages, damping))

    def decode(self, x: np.ndarray) -> None:
        """Each site's label of the least belief (Eq. 6), in place."""
        from treefield.kernels.graph_messages import decode

        decode(self._graph, self._messages, x.reshape(-1))

    def decode_in_turn(self, x: np.ndarray) -> None:
        """One site after the other, given the labels of those before it, in place."""
        from treefield.kernels.graph_messages import decode_in_turn

        decode_in_turn(self._graph, self._messages, x.reshape(-1))


class GraphDual:
    """Tree-reweighted messages that tighten a lower bound on the energy, all 0 at first. The edges are shared out among
    chains of sites of rising numbers. Memory: a float64 for each label of each edge, rounded up to eight."""

    def __init__(self, mrf: Any, arithmetic: str = "auto") -> None:
        from treefield.kernels import graph_messages as kernels
        from treefield.kernels.jit import as_compile_time

        if as_choice(arithmetic, "arithmetic", ("auto", "int16", "float32", "float64")) not in ("auto", "float64"):
            raise ValueError(f'arithmetic={arithmetic!r} goes with grids; messages of a graph are "float64"')
        self._mrf, self._graph = mrf, mrf.kernel_graph()
        self._messages = _messages(mrf, shared=True)
        self.bound = -math.inf
        nothing = self._graph._replace(starts=np.zeros(1, np.int64))
        with as_compile_time():
            kernels.pass_forward(nothing, self._messages, np.zeros(0, np.int32))
            kernels.pass_backward(nothing, self._messages)

    def iterate(self, x: np.ndarray) -> float:
        """One pass forward, whose decoding is written to the int32 labelling `x`, and one back; returns the bound,
        which never falls."""
        from treefield.kernels.graph_messages import pass_backward, pass_forward

        pass_forward(self._graph, self._messages, as_flat_output(x, self._mrf))
        least, rounding = pass_backward(self._graph, self._messages)
        rounding += self._mrf.message_error + 2 * _EPS * (abs(least) + abs(self._mrf.offset))
        found = least + self._mrf.offset - rounding
        self.bound = max(self.bound, tightened(found, self._mrf.is_whole))
        return self.bound

    def refine(self) -> bool:
        """There is no more exact arithmetic."""
        return False


def message_bytes(mrf: Any) -> int:
    """The memory that `GraphDual` needs, roughly."""
    return int(8 * _sizes(mrf).max(axis=1, initial=0).sum() + 32 * len(mrf.edges))


def _sizes(mrf: Any) -> np.ndarray:
    """How many places the messages to either end of each edge take."""
    return -(-mrf.label_counts.astype(np.int64) // LANES)[mrf.edges] * LANES


def _messages(mrf: Any, shared: bool) -> Any:
    from treefield.kernels.arrays import zeros
    from treefield.kernels.graph_messages import Messages

    sizes = _sizes(mrf)
    if shared:
        starts = padded(sizes.max(axis=1, initial=0))
        ends = np.stack([starts[:-1], starts[:-1]], axis=1).reshape(-1)
    else:
        starts = padded(sizes.reshape(-1))
        ends = starts[:-1]
    links = mrf.kernel_graph().links[: len(ends)]
    belief, h, out = np.zeros((3, mrf.labels + LANES))
    return Messages(zeros(int(starts[-1]), np.float64), ends[links], ends[links ^ 1], belief, h, out)

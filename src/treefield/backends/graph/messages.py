"""Messages of belief propagation between all neighbours of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.graph.site_costs import padded
from treefield.backends.grid.schedules import LANES

if TYPE_CHECKING:
    from treefield.kernels.graph.messages import Messages


class GraphBeliefs:
    """The messages of belief propagation, all 0 at first.

    Memory: a float64 for each label at either end of each edge, rounded up to eight; twice that once they are updated
    in parallel.
    """

    def __init__(self, costs: GraphCosts) -> None:
        from treefield.kernels.graph import messages as kernels
        from treefield.kernels.simd.jit import as_compile_time

        self._costs, self._graph = costs, costs.kernel_graph
        self._messages = new_messages(costs, shared=False)
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
        from treefield.kernels.graph.messages import update_all

        if not len(self._fresh):
            self._fresh = np.zeros_like(self._messages.values)
        change = update_all(self._graph, self._messages, self._fresh, damping)
        self._messages, self._fresh = self._messages._replace(values=self._fresh), self._messages.values
        return float(change)

    def update_in_turn(self, damping: float) -> float:
        """Update the messages site by site, forward and backward, each from the newest; returns the greatest change."""
        from treefield.kernels.graph.messages import update_in_turn

        return float(update_in_turn(self._graph, self._messages, damping))

    def decode(self, x: np.ndarray) -> None:
        """Each site's label of the least belief (Eq. 6), in place."""
        from treefield.kernels.graph.messages import decode

        decode(self._graph, self._messages, x.reshape(-1))

    def decode_in_turn(self, x: np.ndarray) -> None:
        """One site after the other, given the labels of those before it, in place."""
        from treefield.kernels.graph.messages import decode_in_turn

        decode_in_turn(self._graph, self._messages, x.reshape(-1))


def message_bytes(costs: GraphCosts) -> int:
    """The memory that `GraphDual` needs, roughly."""
    return int(8 * _sizes(costs).max(axis=1, initial=0).sum() + 32 * len(costs.edges))


def _sizes(costs: GraphCosts) -> np.ndarray:
    """How many places the messages to either end of each edge take."""
    return -(-costs.label_counts.astype(np.int64) // LANES)[costs.edges] * LANES


def new_messages(costs: GraphCosts, shared: bool) -> Messages:
    """Messages of 0; `shared`: one for each edge, which both directions overwrite in turn."""
    from treefield.kernels.graph.messages import Messages
    from treefield.kernels.simd.arrays import zeros

    sizes = _sizes(costs)
    if shared:
        starts = padded(sizes.max(axis=1, initial=0))
        ends = np.stack([starts[:-1], starts[:-1]], axis=1).reshape(-1)
    else:
        starts = padded(sizes.reshape(-1))
        ends = starts[:-1]
    links = costs.kernel_graph.links[: len(ends)]
    belief, h, out = np.zeros((3, costs.n_labels + LANES))
    return Messages(zeros(int(starts[-1]), np.float64), ends[links], ends[links ^ 1], belief, h, out)

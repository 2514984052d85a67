"""The dual of a graph: tree-reweighted messages, and the lower bound they prove."""

from __future__ import annotations

import hashlib
import math

import numpy as np

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.graph.messages import new_messages
from treefield.backends.shared import EPS
from treefield.protocols import DualMessages
from treefield.results import tightened
from treefield.validation import as_choice, as_flat_output


class GraphDual:
    """Tree-reweighted messages, all 0 at first, that tighten a lower bound on the energy.

    The edges are divided among chains of sites of rising numbers. Memory: a float64 for each label of each edge,
    rounded up to eight.
    """

    def __init__(self, costs: GraphCosts, arithmetic: str = "auto") -> None:
        from treefield.kernels.graph import messages as kernels
        from treefield.kernels.simd.jit import as_compile_time

        if as_choice(arithmetic, "arithmetic", ("auto", "exact", "int16", "float32", "float64")) in (
            "int16",
            "float32",
        ):
            raise ValueError(f'arithmetic={arithmetic!r} goes with grids; messages of a graph are "float64"')
        self._costs, self._graph = costs, costs.kernel_graph
        self._messages = new_messages(costs, shared=True)
        self.bound, self.margin = -math.inf, 0.0
        nothing = self._graph._replace(starts=np.zeros(1, np.int64))
        with as_compile_time():
            kernels.pass_forward(nothing, self._messages, np.zeros(0, np.int32))
            kernels.pass_backward(nothing, self._messages)

    def iterate(self, x: np.ndarray) -> float:
        """Pass forward, decoding to the int32 labelling `x`, and backward; returns the bound, which never falls."""
        from treefield.kernels.graph.messages import pass_backward, pass_forward

        pass_forward(self._graph, self._messages, as_flat_output(x, self._costs))
        least, rounding = pass_backward(self._graph, self._messages)
        rounding += self._costs.message_error + 2 * EPS * (abs(least) + abs(self._costs.offset))
        self.margin = rounding
        bound = least + self._costs.offset - rounding
        self.bound = max(self.bound, tightened(bound, self._costs.is_whole))
        return self.bound

    def refine(self, gap: float) -> bool:
        """There is no more exact arithmetic."""
        return False

    @property
    def _layout(self) -> str:
        digest = hashlib.blake2b(np.ascontiguousarray(self._costs.label_counts, np.int64).data, digest_size=16)
        digest.update(np.ascontiguousarray(self._costs.edges, np.int64).data)
        return f"graph {digest.hexdigest()}"

    def get_messages(self) -> DualMessages:
        """The messages, for the dual of a model that differs in its costs."""
        return DualMessages(self._layout, 1.0, *self.get_state())

    def start_from(self, messages: DualMessages) -> bool:
        """Start from what `get_messages` returned, before any iteration; False if it has another layout."""
        if messages.layout != self._layout:
            return False
        forbidden = self._costs.forbidden_cost
        most = 2 * (self._costs.scale if math.isinf(forbidden) else forbidden)  # no message of this model is larger
        values = np.nan_to_num(messages.values.view(np.float64))
        np.clip(values, -most, most, out=self._messages.values)
        return True

    def get_state(self) -> tuple[str, np.ndarray]:
        """The arithmetic, and all messages as bytes, for a checkpoint."""
        return "float64", self._messages.values.view(np.uint8)

    def set_state(self, arithmetic: str, messages: np.ndarray, bound: float) -> None:
        """Continue from what `get_state` returned; raise a ValueError for anything else."""
        values = self._messages.values.view(np.uint8)
        if arithmetic != "float64" or len(messages) != len(values):
            raise ValueError(f"messages are {len(messages)} bytes of {arithmetic}, expected {len(values)} of float64")
        values[:] = messages
        self.bound = bound

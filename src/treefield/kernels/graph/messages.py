"""Messages over all edges of a graph: loopy belief propagation, and sequential tree-reweighted messages (TRW-S).

Messages lie in one flat array, each from a multiple of eight on: that over the link at place k of the graph's `links`,
towards the site that has the link, from ``starts[k]`` on. TRW-S needs one per edge: both links of an edge start at the
same place.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.graph.edge_rules import absorb, send
from treefield.kernels.graph.energy import first_label, label_count, least_cost, lowest_label
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, broadcast, load, store
from treefield.kernels.simd.sums import add_exactly


class Messages(NamedTuple):
    """Flat arrays:

    values          all messages
    starts          [place] where the message towards the site begins, for each place of the graph's `links`
    reverse_starts  [place] where the message towards the other end of the same edge begins
    belief, h, out  workspace for the labels of one site, rounded up to a multiple of eight
    """

    values: np.ndarray
    starts: np.ndarray
    reverse_starts: np.ndarray
    belief: np.ndarray
    h: np.ndarray
    out: np.ndarray


@inline_helper
def _collect(graph, messages, i):
    """A site's unary costs and all messages to it, in `belief`; infinity beyond its labels."""
    belief, count = messages.belief, label_count(graph, i)
    at = first_label(graph, i)
    for s in range(count):
        belief[s] = graph.unary[at + s]
    for s in range(count, -(-count // LANES) * LANES):
        belief[s] = np.inf
    for k in range(graph.starts[i], graph.starts[i + 1]):
        start = messages.starts[k]
        for s in range(0, count, LANES):
            store(belief, s, load(belief, s) + load(messages.values, start + s))


@inline_helper
def _send_over(graph, messages, i, k, share):
    """Compute the message over a link, in `out`, from a site whose belief is there; returns its minimum.

    The message is the `share` of the belief less the message that came over the link; its minimum is subtracted.
    """
    count, others = label_count(graph, i), label_count(graph, graph.neighbours[k])
    start, h = messages.starts[k], messages.h
    for s in range(0, count, LANES):
        store(h, s, broadcast(share) * load(messages.belief, s) - load(messages.values, start + s))
    for s in range(count, -(-count // LANES) * LANES):
        h[s] = np.inf
    send(graph, graph.links[k], h, 0, count, least_cost(h, 0, count), messages.out, others)
    for s in range(others, -(-others // LANES) * LANES):
        messages.out[s] = np.inf
    low = least_cost(messages.out, 0, others)
    for s in range(others):
        messages.out[s] -= low
    for s in range(others, -(-others // LANES) * LANES):
        messages.out[s] = 0.0
    return low


@inline_helper
def _store_message(messages, start, others, damping, into):
    """Store `out` among the messages, damped by the old message; returns the greatest change. O(L)."""
    most = 0.0
    for s in range(others):
        old = messages.values[start + s]
        new = damping * old + (1 - damping) * messages.out[s]
        into[start + s] = new
        most = max(most, abs(new - old))
    return most


@kernel
def update_all(graph, messages, fresh, damping):
    """Compute all messages from the old ones into `fresh` (Eq. 5); returns the greatest change of one.

    O(neighbours x cost of a message) per site."""
    most = 0.0
    for i in range(len(graph.starts) - 1):
        _collect(graph, messages, i)
        for k in range(graph.starts[i], graph.starts[i + 1]):
            _send_over(graph, messages, i, k, 1.0)
            others = label_count(graph, graph.neighbours[k])
            most = max(most, _store_message(messages, messages.reverse_starts[k], others, damping, fresh))
    return most


@kernel
def update_in_turn(graph, messages, damping):
    """Compute the messages site by site, forward and backward, each from the newest; returns the greatest change.

    O(neighbours x cost of a message) per site, twice.
    """
    most = 0.0
    size = len(graph.starts) - 1
    for step in range(2 * size):
        i = step if step < size else 2 * size - 1 - step
        _collect(graph, messages, i)
        for k in range(graph.starts[i], graph.starts[i + 1]):
            _send_over(graph, messages, i, k, 1.0)
            others = label_count(graph, graph.neighbours[k])
            most = max(most, _store_message(messages, messages.reverse_starts[k], others, damping, messages.values))
    return most


@kernel
def decode(graph, messages, x):
    """Set each site to its label of lowest belief (Eq. 6). O(neighbours x L) per site."""
    for i in range(len(x)):
        _collect(graph, messages, i)
        x[i] = lowest_label(messages.belief, 0, label_count(graph, i))


@inline_helper
def _decode_given(graph, messages, i, x):
    """The best label of a site given the labels of those before it and messages from those after it."""
    h, count = messages.h, label_count(graph, i)
    at = first_label(graph, i)
    for s in range(count):
        h[s] = graph.unary[at + s]
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j = graph.neighbours[k]
        if j < i:
            absorb(graph, graph.links[k], x[j], 1.0, None, h, 0, count)
        else:
            for s in range(count):
                h[s] += messages.values[messages.starts[k] + s]
    return lowest_label(h, 0, count)


@kernel
def decode_in_turn(graph, messages, x):
    """Decode one site after the other, given the labels of those before it. O(neighbours x L) per site."""
    for i in range(len(x)):
        x[i] = _decode_given(graph, messages, i, x)


@inline_helper
def _chain_share(graph, i):
    """One over the number of chains through a site, and how many edges lead to sites before it."""
    before = 0
    for k in range(graph.starts[i], graph.starts[i + 1]):
        before += graph.neighbours[k] < i
    after = graph.starts[i + 1] - graph.starts[i] - before
    return 1.0 / max(before, after, 1), before


@kernel
def pass_forward(graph, messages, x):
    """Decode each site given those before it, and send its TRW-S messages to the sites after it.

    O(neighbours x cost of a message) per site."""
    for i in range(len(x)):
        x[i] = _decode_given(graph, messages, i, x)
        share, before = _chain_share(graph, i)
        if before == graph.starts[i + 1] - graph.starts[i]:
            continue
        _collect(graph, messages, i)
        for k in range(graph.starts[i], graph.starts[i + 1]):
            if graph.neighbours[k] > i:
                _send_over(graph, messages, i, k, share)
                _store_message(
                    messages, messages.reverse_starts[k], label_count(graph, graph.neighbours[k]), 0.0, messages.values
                )


@kernel
def pass_backward(graph, messages):
    """Send the messages of each site, from the last to the first, to the sites before it.

    Returns a lower bound on the energy, and how far rounding may have raised it. O(neighbours x cost of a message) per
    site.

    Each belief is rounded as often as its site has neighbours, and each message made of it a few times more; no number
    along a labelling of finite energy is larger than the site's beliefs and unary costs.
    """
    bound = carried = rounding = 0.0
    for i in range(len(graph.starts) - 2, -1, -1):
        _collect(graph, messages, i)
        belief, count = messages.belief, label_count(graph, i)
        low, at = least_cost(belief, 0, count), first_label(graph, i)
        most = 0.0
        for s in range(count):
            most = max(most, abs(belief[s]) + abs(np.float64(graph.unary[at + s])))
            belief[s] -= low
        bound, carried = add_exactly(bound, carried, low)
        share, before = _chain_share(graph, i)
        neighbours = graph.starts[i + 1] - graph.starts[i]
        rounding += (neighbours + 8) * (neighbours + 1) * most
        if before == 0:
            continue
        for k in range(graph.starts[i], graph.starts[i + 1]):
            if graph.neighbours[k] < i:
                low = _send_over(graph, messages, i, k, share)
                bound, carried = add_exactly(bound, carried, low)
                rounding += 8 * abs(low)
                _store_message(
                    messages, messages.reverse_starts[k], label_count(graph, graph.neighbours[k]), 0.0, messages.values
                )
    return bound + carried, rounding * 2.0**-52

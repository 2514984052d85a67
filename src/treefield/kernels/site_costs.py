"""Search by what a graph's labels cost given the labels around them: single sites, sampling, trees solved exactly.

One kernel each, for `Conditional` costs of any labels and for `Spins`: what differs has the same name in both modules,
and is chosen by the type of the state.
"""

import numpy as np

from treefield.kernels import conditional, spins
from treefield.kernels.jit import inline_overload, kernel
from treefield.kernels.random import below, bits64
from treefield.kernels.rules import is_kind

_MANY = 32  # one site in this number must have changed for all to be looked at


def _by_state(operation):
    """For kernels, the function of that name from the module of the state's type."""

    @inline_overload(operation, strict=False)
    def chosen(state, *others):
        return getattr(spins if is_kind(state, spins.Spins) else conditional, operation.__name__)

    return operation


@_by_state
def relabel(state, graph, i, label):
    """Give a site another label, and its neighbours what follows from it; all of them are `dirty`."""


@_by_state
def cheapest(state, graph, i):
    """A site's label of the least cost, the lowest among equals."""


@_by_state
def rise(state, graph, i, label):
    """How much the energy rises if a site takes that label."""


@_by_state
def drawn_label(state, graph, i, heat, limit, seed, draw):
    """A label drawn with probabilities proportional to 2**(-cost * heat), none whose cost is above the least by the
    limit or more; `draw` is the number of the draw."""


@_by_state
def upward(state, graph, forest, begin, end, bit, space, temperature, seed):
    """Messages from the leaves of a tree to its root, where something has changed: where a message is as it was, what
    lies above is, too."""


@_by_state
def downward(state, graph, forest, begin, end, bit, space):
    """Labels from the root of a tree to its leaves, where something has changed; returns the change of energy and how
    many there are."""


@kernel
def follow(graph, state, x):
    """Bring the costs to another labelling."""
    for i in range(len(x)):
        if x[i] != state.x[i]:
            relabel(state, graph, i, x[i])


@kernel
def icm_sweep(graph, state, order):
    """Give each site in turn its cheapest label; returns the change of energy (Eq. 4)."""
    total = 0.0
    for i in order:
        label = cheapest(state, graph, i)
        if label != state.x[i]:
            total += rise(state, graph, i, label)
            relabel(state, graph, i, label)
    return total


@kernel
def sample_sweeps(graph, state, order, heats, limits, seed):
    """A sweep for each of the heats: draw each site in turn, none of its labels whose cost is above the least by the
    limit or more; returns the change of energy."""
    total = 0.0
    draw = 0
    for sweep in range(len(heats)):
        for i in order:
            draw += 1
            label = drawn_label(state, graph, i, heats[sweep], limits[sweep], seed, draw)
            if label != state.x[i]:
                total += rise(state, graph, i, label)
                relabel(state, graph, i, label)
    return total


@kernel
def solve_trees(graph, state, forest, firsts, bit, space, temperatures, seed):
    """Solve a forest exactly given the labels around it, once for each of the temperatures; returns the change of
    energy.

    Of several forests one is drawn each time: forest f has the trees from ``firsts[f]`` to ``firsts[f + 1]``. A tree
    takes its new labels only if that does not raise the energy. At a temperature above 0 each cost is lowered by Gumbel
    noise of that scale (a spin's rise moved by logistic noise), and what is best then is taken, whatever it costs.

    A site is looked at if the forest's `bit` of its `dirty` is set, or what is below or above it has changed.
    """
    old, new = space.old, space.new
    total = 0.0
    for turn in range(len(temperatures)):
        f = below(len(firsts) - 1, seed, 2 * turn)
        stream, temperature = bits64(seed, 2 * turn + 1), temperatures[turn]
        for tree in range(firsts[f], firsts[f + 1]):
            begin, end = forest.trees[tree], forest.trees[tree + 1]
            users = np.uint32(0)
            for p in range(begin, end):
                old[p] = state.x[forest.sites[p]]
                if temperature > 0:
                    state.dirty[forest.sites[p]] |= bit
                users |= state.dirty[forest.sites[p]]
            if users & bit == 0:
                continue
            upward(state, graph, forest, begin, end, bit, space, temperature, stream)
            change, moved = downward(state, graph, forest, begin, end, bit, space)
            if moved == 0 or (change > 0 and temperature == 0):
                continue
            total += change
            for p in range(begin, end):
                if new[p] != old[p]:
                    if moved > len(state.x) // _MANY:
                        state.aims[forest.sites[p]] = new[p]
                    else:
                        relabel(state, graph, forest.sites[p], new[p])
            if moved > len(state.x) // _MANY:  # in the order of memory
                for i in range(len(state.x)):
                    if state.aims[i] >= 0:
                        relabel(state, graph, i, state.aims[i])
                        state.aims[i] = -1
            for p in range(begin, end):  # its own changes do not concern a tree
                state.dirty[forest.sites[p]] &= ~bit
    return total

"""Search by conditional costs, those of a site's labels given its neighbours: single sites, sampling, exact trees.

Each kernel serves `ConditionalCosts` of any labels and `Spins`: the functions that differ have the same names in both
modules, and the type of the state chooses between them.
"""

import numpy as np

from treefield.kernels.graph import label_costs, spins
from treefield.kernels.rules.rule import is_kind
from treefield.kernels.simd.jit import inline_overload, kernel
from treefield.kernels.simd.random import below, bits64

_MANY_SITES = 32  # from one site in this number on, changes are applied in one pass over all sites


def _by_state(operation):
    """For kernels, the function of that name from the module of the state's type."""

    @inline_overload(operation, strict=False)
    def chosen(state, *others):
        return getattr(spins if is_kind(state, spins.Spins) else label_costs, operation.__name__)

    return operation


@_by_state
def relabel(state, graph, i, label):
    """Give a site another label and update its neighbours' costs; all of them become `dirty`."""


@_by_state
def cheapest(state, graph, i):
    """A site's label of lowest cost, the lowest label among equals."""


@_by_state
def rise(state, graph, i, label):
    """How much the energy rises if a site takes that label."""


@_by_state
def draw_label(state, graph, i, heat, limit, seed, draw):
    """Draw a label with probabilities proportional to 2**(-cost * heat).

    No label is drawn whose cost is above the least by the limit or more; `draw` is the number of the draw.
    """


@_by_state
def upward(state, graph, forest, begin, end, dirty_bit, workspace, temperature, seed):
    """Send messages from the leaves of a tree to its root where costs have changed, until a message is unchanged."""


@_by_state
def downward(state, graph, forest, begin, end, dirty_bit, workspace):
    """Choose labels from the root of a tree to its leaves where costs or labels have changed.

    Returns the change of energy and the number of new labels.
    """


@kernel
def update_costs(graph, state, x):
    """Update the costs to another labelling. O(neighbours x L) per site that changes."""
    for i in range(len(x)):
        if x[i] != state.x[i]:
            relabel(state, graph, i, x[i])


@kernel
def icm_sweep(graph, state, order):
    """Give each site in turn its cheapest label (Eq. 4); returns the change of energy.

    O(L) per site, and O(neighbours x L) per change.
    """
    total = 0.0
    for i in order:
        label = cheapest(state, graph, i)
        if label != state.x[i]:
            total += rise(state, graph, i, label)
            relabel(state, graph, i, label)
    return total


@kernel
def sample_sweeps(graph, state, order, heats, limits, seed):
    """Draw each site in turn, in one sweep for each of the heats; returns the change of energy.

    No label is drawn whose cost is above the least by the limit or more. O(L) per site, and O(neighbours x L) per
    change.
    """
    total = 0.0
    draw = 0
    for sweep in range(len(heats)):
        for i in order:
            draw += 1
            label = draw_label(state, graph, i, heats[sweep], limits[sweep], seed, draw)
            if label != state.x[i]:
                total += rise(state, graph, i, label)
                relabel(state, graph, i, label)
    return total


@kernel
def solve_trees(graph, state, forest, firsts, dirty_bit, workspace, temperatures, seed, check, reverse):
    """Solve a forest exactly given the labels around it, once for each temperature; returns the change of energy.

    Of several forests one is drawn each time: forest f has the trees from ``firsts[f]`` to ``firsts[f + 1]``. A tree
    takes its new labels, with `check`, only if that does not raise the energy. At a temperature above 0 each cost is
    lowered by Gumbel noise of that scale (a spin's rise moved by logistic noise), and what is best then is taken,
    whatever it costs. With `reverse` the last tree comes first.

    A site is updated if its `dirty` flag has the forest's `dirty_bit`, or if a message or label next to it in the tree
    has changed. O(neighbours x L) per updated site, plus one message.
    """
    old, new = workspace.old, workspace.new
    total = 0.0
    for turn in range(len(temperatures)):
        f = below(len(firsts) - 1, seed, 2 * turn)
        stream, temperature = bits64(seed, 2 * turn + 1), temperatures[turn]
        for k in range(firsts[f], firsts[f + 1]):
            tree = firsts[f] + firsts[f + 1] - 1 - k if reverse else k
            begin, end = forest.trees[tree], forest.trees[tree + 1]
            users = np.uint32(0)
            for p in range(begin, end):
                old[p] = state.x[forest.sites[p]]
                if temperature > 0:
                    state.dirty[forest.sites[p]] |= dirty_bit
                users |= state.dirty[forest.sites[p]]
            if users & dirty_bit == 0:
                continue
            upward(state, graph, forest, begin, end, dirty_bit, workspace, temperature, stream)
            change, moved = downward(state, graph, forest, begin, end, dirty_bit, workspace)
            if moved == 0 or (check and change > 0 and temperature == 0):
                continue
            total += change
            for p in range(begin, end):
                if new[p] != old[p]:
                    if moved > len(state.x) // _MANY_SITES:
                        state.pending_labels[forest.sites[p]] = new[p]
                    else:
                        relabel(state, graph, forest.sites[p], new[p])
            if moved > len(state.x) // _MANY_SITES:  # in the order of memory
                for i in range(len(state.x)):
                    if state.pending_labels[i] >= 0:
                        relabel(state, graph, i, state.pending_labels[i])
                        state.pending_labels[i] = -1
            for p in range(begin, end):  # its own changes do not concern a tree
                state.dirty[forest.sites[p]] &= ~dirty_bit
    return total

"""Single-site search on lines, eight side by side.

Each site takes its best label given all its neighbours (Eq. 4).
"""

import numpy as np

from treefield.kernels.grid.lines import block_view, change_at, collect, edges_at, labels_at, weight_at
from treefield.kernels.grid.packing import slot
from treefield.kernels.rules.rule import add_edge_cost, edge_cost, label_count, prepare
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, broadcast, cast, int_to_mask, lane, load, mask_to_int, store, where


@inline_helper
def _along(packed, lines, view, edge):
    """The weight of the edge between positions `edge` and `edge` + 1, stored in the slot farther from the middle."""
    length = lines.length
    return weight_at(packed, view, 0, slot(edge if edge < length // 2 else edge + 1, length))


@inline_helper
def _label_along(x, lines, view, j):
    return labels_at(x, lines, view, 0, slot(j, lines.length), j)


@inline_helper
def _absorb_along(x, packed, lines, view, edge, own_first, kind, h):
    """Add the edge to the neighbour on the line itself to the costs in `h`."""
    labels = label_count(kind, lines.labels)
    weight = cast(_along(packed, lines, view, edge), h)
    neighbour_labels = _label_along(x, lines, view, edge + 1 if own_first else edge)
    prepared = prepare(kind, edges_at(lines, view, 0, edge), own_first, neighbour_labels, labels)
    for s in range(labels):
        store(h, s * LANES, add_edge_cost(kind, load(h, s * LANES), weight, s, own_first, prepared, labels))


@inline_helper
def _change_along(x, packed, lines, view, edge, own_first, kind, new, old):
    labels = label_count(kind, lines.labels)
    weight = cast(_along(packed, lines, view, edge), np.float64)
    edges = edges_at(lines, view, 0, edge)
    neighbour_labels = _label_along(x, lines, view, edge + 1 if own_first else edge)
    if own_first:
        return edge_cost(kind, weight, edges, new, neighbour_labels, labels) - edge_cost(
            kind, weight, edges, old, neighbour_labels, labels
        )
    return edge_cost(kind, weight, edges, neighbour_labels, new, labels) - edge_cost(
        kind, weight, edges, neighbour_labels, old, labels
    )


@kernel
def icm_lines(x, flat, steps, packed, lines, kind, scratch):
    """One pass of ICM over the lines of each step, position by position; returns the change of energy. O(L) per site.

    New labels are written to the packed labels `x` and to the natural labelling `flat`.
    A site takes a new label only if that does not raise the energy, in float64.
    """
    labels, length = label_count(kind, lines.labels), lines.length
    h, incoming = scratch.h, scratch.left
    total = 0.0
    for step in steps:
        view = block_view(packed, lines.blocks[step], lines, lines.blocks[step])
        for j in range(length):
            for s in range(labels):
                store(incoming, s * LANES, broadcast(h.dtype.type(0)))
            if j > 0:
                _absorb_along(x, packed, lines, view, j - 1, False, kind, incoming)
            if j < length - 1:
                _absorb_along(x, packed, lines, view, j, True, kind, incoming)
            p = slot(j, length)
            low = collect(x, packed, lines, view, p, j, kind, incoming, h)
            old = labels_at(x, lines, view, 0, p, j)
            new = old
            for s in range(labels - 1, -1, -1):
                new = where(load(h, (p * labels + s) * LANES) == low, broadcast(np.int32(s)), new)
            moved = mask_to_int(new != old)
            if moved == 0:
                continue
            change = change_at(x, packed, lines, view, p, j, kind, new, old)
            if j > 0:
                change += _change_along(x, packed, lines, view, j - 1, False, kind, new, old)
            if j < length - 1:
                change += _change_along(x, packed, lines, view, j, True, kind, new, old)
            taken = lines.active[step] & moved & mask_to_int(change <= broadcast(0.0))
            for k in range(LANES):
                if taken >> k & 1:
                    total += lane(change, k)
                    flat[lines.sites[view.block * LANES + k] + j * lines.stride] = lane(new, k)
            store(x, view.own + p * LANES, cast(where(int_to_mask(taken), new, old), x))
    return total

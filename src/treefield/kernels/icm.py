"""Single-site search on lines: each site takes its best label given all its neighbours (Eq. 4), eight lines side by
side."""

import numpy as np

from treefield.kernels.jit import inlined, kernel
from treefield.kernels.lanes import LANES, bits, cast, full, lane, load, mask_of, store, where
from treefield.kernels.lines import change_at, collect, edges_at, here_of, labels_at, weight_at
from treefield.kernels.packing import slot
from treefield.kernels.rules import label_count, pair, plus, prepare


@inlined
def _along(packed, lines, here, edge):
    """The weight of the edge between positions `edge` and `edge` + 1, which is kept in the slot farther from the
    middle."""
    length = lines.length
    return weight_at(packed, here, 0, slot(edge if edge < length // 2 else edge + 1, length))


@inlined
def _label_along(x, lines, here, j):
    return labels_at(x, lines, here, 0, slot(j, lines.length), j)


@inlined
def _absorb_along(x, packed, lines, here, edge, own_first, kind, h):
    """Add the edge to the neighbour on the line itself to the costs in `h`."""
    labels = label_count(kind, lines.labels)
    weight = cast(_along(packed, lines, here, edge), h)
    beside = _label_along(x, lines, here, edge + 1 if own_first else edge)
    prepared = prepare(kind, edges_at(lines, here, 0, edge), own_first, beside, labels)
    for s in range(labels):
        store(h, s * LANES, plus(kind, load(h, s * LANES), weight, s, own_first, prepared, labels))


@inlined
def _change_along(x, packed, lines, here, edge, own_first, kind, new, old):
    labels = label_count(kind, lines.labels)
    weight = cast(_along(packed, lines, here, edge), np.float64)
    edges = edges_at(lines, here, 0, edge)
    beside = _label_along(x, lines, here, edge + 1 if own_first else edge)
    if own_first:
        return pair(kind, weight, edges, new, beside, labels) - pair(kind, weight, edges, old, beside, labels)
    return pair(kind, weight, edges, beside, new, labels) - pair(kind, weight, edges, beside, old, labels)


@kernel
def icm_lines(x, flat, steps, packed, lines, kind, scratch):
    """One pass of ICM over the lines of each step, position by position; returns the change of energy. O(L) per site.

    What changes is written to the packed labels `x` and to the natural labelling `flat`.
    A site takes a new label only if that does not raise the energy, in float64.
    """
    labels, length = label_count(kind, lines.labels), lines.length
    h, incoming = scratch.h, scratch.left
    total = 0.0
    for step in steps:
        here = here_of(packed, lines.blocks[step], lines, lines.blocks[step])
        for j in range(length):
            for s in range(labels):
                store(incoming, s * LANES, full(h.dtype.type(0)))
            if j > 0:
                _absorb_along(x, packed, lines, here, j - 1, False, kind, incoming)
            if j < length - 1:
                _absorb_along(x, packed, lines, here, j, True, kind, incoming)
            p = slot(j, length)
            low = collect(x, packed, lines, here, p, j, kind, incoming, h)
            old = labels_at(x, lines, here, 0, p, j)
            new = old
            for s in range(labels - 1, -1, -1):
                new = where(load(h, (p * labels + s) * LANES) == low, full(np.int32(s)), new)
            moved = bits(new != old)
            if moved == 0:
                continue
            change = change_at(x, packed, lines, here, p, j, kind, new, old)
            if j > 0:
                change += _change_along(x, packed, lines, here, j - 1, False, kind, new, old)
            if j < length - 1:
                change += _change_along(x, packed, lines, here, j, True, kind, new, old)
            taken = lines.active[step] & moved & bits(change <= full(0.0))
            for k in range(LANES):
                if taken >> k & 1:
                    total += lane(change, k)
                    flat[lines.sites[here.block * LANES + k] + j * lines.stride] = lane(new, k)
            store(x, here.own + p * LANES, cast(where(mask_of(taken), new, old), x))
    return total

"""The message rules: what each pairwise kind does to eight sites at once.

Numba picks the code by the type of the kind, one of `treefield.kernels.kinds`. Every kind answers four questions, for
edges of `weight` w and a cost V, with costs in flat arrays laid out [label][lane] (eight lanes, of int16 sixteen):

- `add_edge_cost`: add w V(s, x) to the cost of label s at a site whose neighbour has label x (Eq. 8 of the paper);
- `message`: min over t of h[t] - low + w V(t, s), for every s (Eq. 5, less the constant `low` = min h);
- `argmin_given`: the label t that attains it for one s (the lowest, among equals);
- `edge_cost`: w V(a, b), in float64.

`own_first` says whether the site in question is the edge's first: tables are indexed [first, second]. `edge` numbers
each lane's edge, for `EdgeTables`; the others ignore it.
"""

import numpy as np
from numba.core import types

from treefield.kernels.jit import inline_helper, inline_overload
from treefield.kernels.kinds import (
    BinaryRule,
    CappedEdgeTablesRule,
    CappedTableRule,
    EdgeTablesRule,
    EnvelopeRule,
    LinearRule,
    LinearWindowRule,
    PottsRule,
    SignedPottsRule,
    TableRule,
    WindowRule,
)
from treefield.kernels.lanes import (
    LANES,
    absolute,
    broadcast,
    broadcast_like,
    cast,
    gather,
    lane,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    store,
    where,
    width,
)

_ROOT = 181  # the square of which int16 can hold


def label_count(kind, labels):
    """The number of labels, as a constant where the kind fixes it."""


def message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    """out[s] = min_t h[t] - low + weight * V(t, s), from index `at` of `out` on."""


def argmin_given(kind, weight, edge, own_first, low, h, base, x, labels):
    """The lowest t that minimises h[t] + weight * V(t, x), as int32 lanes."""


def edge_cost(kind, weight, edge, a, b, labels):
    """weight * V(a, b) in float64 lanes; `a` is the label of the edge's first site."""


def prepare(kind, edge, own_first, x, labels):
    """What can be known of the neighbour's label before the loop over one's own."""


def add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    """cost + weight * V(s, x) for one label s and prepared neighbours, up to a constant that is the same for all s."""


def is_kind(kind, *rules):
    """Whether Numba's type of a kind is that of one of the rules."""
    return isinstance(kind, (types.NamedTuple, types.NamedUniTuple)) and kind.instance_class in rules


def _weighted(kind, weight, entry):
    """weight * entry of a table, cut to the cap of the kind."""


@inline_overload(_weighted)
def _weighted_overload(kind, weight, entry):
    if is_kind(kind, TableRule, EdgeTablesRule):
        return lambda kind, weight, entry: weight * entry
    if is_kind(kind, CappedTableRule):
        return lambda kind, weight, entry: minimum(weight * entry, broadcast_like(weight, kind.cap[0]))

    def edge_tables(kind, weight, entry):
        # forbidden entries are infinite, and times 0, the weight of no edge, they would be NaN
        finite = minimum(entry, broadcast_like(weight, kind.largest[0]))
        return minimum(weight * finite, broadcast_like(weight, kind.cap[0]))

    return edge_tables


@inline_overload(label_count)
def _label_count_overload(kind, labels):
    if is_kind(kind, BinaryRule):
        return lambda kind, labels: 2
    return lambda kind, labels: labels


@inline_overload(prepare)
def _prepare_overload(kind, edge, own_first, x, labels):
    if is_kind(kind, LinearRule, LinearWindowRule, WindowRule, EnvelopeRule):
        return lambda kind, edge, own_first, x, labels: gather(kind.truncated.values, 0, x)
    if is_kind(kind, EdgeTablesRule, CappedEdgeTablesRule):

        def edge_tables(kind, edge, own_first, x, labels):
            return edge * broadcast(labels * labels) + cast(x, np.int64) * broadcast(1 if own_first else labels)

        return edge_tables
    return lambda kind, edge, own_first, x, labels: x


@inline_overload(add_edge_cost)
def _plus_overload(kind, cost, weight, s, own_first, prepared, labels):
    if is_kind(kind, PottsRule, SignedPottsRule):

        def potts(kind, cost, weight, s, own_first, prepared, labels):
            # only the neighbour's own label is cheaper than the others
            return where(prepared == broadcast_like(prepared, s), cost - weight, cost)

        return potts
    if is_kind(kind, LinearRule, LinearWindowRule):

        def linear(kind, cost, weight, s, own_first, prepared, labels):
            return cost + weight * minimum(
                absolute(broadcast(kind.truncated.values[s]) - prepared), broadcast(kind.truncated.cutoff[0])
            )

        return linear
    if is_kind(kind, WindowRule, EnvelopeRule):

        def quadratic(kind, cost, weight, s, own_first, prepared, labels):
            d = broadcast(kind.truncated.values[s]) - prepared
            return cost + weight * minimum(d * d, broadcast(kind.truncated.cutoff[0]))

        def small(kind, cost, weight, s, own_first, prepared, labels):
            d = minimum(absolute(broadcast(kind.truncated.values[s]) - prepared), broadcast(np.int16(_ROOT)))
            return cost + weight * minimum(d * d, broadcast(kind.truncated.cutoff[0]))

        return small if cost.element == types.int16 else quadratic
    if is_kind(kind, BinaryRule):

        def binary(kind, cost, weight, s, own_first, prepared, labels):
            own = 2 if own_first else 1
            zero = prepared == broadcast_like(prepared, 0)
            return cost + weight * where(zero, broadcast(kind.table[s * own]), broadcast(kind.table[s * own + 3 - own]))

        return binary
    if is_kind(kind, TableRule, CappedTableRule):

        def table(kind, cost, weight, s, own_first, prepared, labels):
            own = labels if own_first else 1
            other = 1 if own_first else labels
            return cost + _weighted(
                kind, weight, gather(kind.table, s * own, prepared * broadcast_like(prepared, other))
            )

        return table

    def edge_tables(kind, cost, weight, s, own_first, prepared, labels):
        entry = gather(kind.tables, s * (labels if own_first else 1), prepared)
        return cost + _weighted(kind, weight, cast(entry, kind.zero))

    return edge_tables


@inline_overload(argmin_given)
def _back_overload(kind, weight, edge, own_first, low, h, base, x, labels):
    if is_kind(kind, LinearRule, LinearWindowRule, WindowRule, EnvelopeRule):

        def truncated(kind, weight, edge, own_first, low, h, base, x, labels):
            kept = gather(h, base, x * broadcast(np.int32(LANES)) + lane_numbers()) - low
            if mask_to_int(kept < weight * broadcast(kind.truncated.change[0])) == (1 << LANES) - 1:
                return x  # any other label costs more than that, and at least `low`
            return _cheapest(kind, weight, edge, own_first, h, base, x, labels)

        return truncated
    if is_kind(kind, PottsRule):

        def potts(kind, weight, edge, own_first, low, h, base, x, labels):
            kept = gather(h, base, x * broadcast(np.int32(LANES)) + lane_numbers()) - low
            result = x
            if mask_to_int(weight <= kept) != 0:
                lowest = x
                for s in range(labels - 1, -1, -1):
                    lowest = where(load(h, base + s * LANES) == low, broadcast(np.int32(s)), lowest)
                leaving = (weight < kept) | ((weight == kept) & (lowest < x))
                result = where(leaving, lowest, x)
            return result

        return potts

    def any_kind(kind, weight, edge, own_first, low, h, base, x, labels):
        return _cheapest(kind, weight, edge, own_first, h, base, x, labels)

    return any_kind


@inline_helper
def _cheapest(kind, weight, edge, own_first, h, base, x, labels):
    """The lowest t that minimises h[t] + weight * V(t, x): one loop over all labels."""
    prepared = prepare(kind, edge, own_first, x, labels)
    best = add_edge_cost(kind, load(h, base), weight, 0, own_first, prepared, labels)
    label = broadcast(np.int32(0))
    for t in range(1, labels):
        cost = add_edge_cost(kind, load(h, base + t * LANES), weight, t, own_first, prepared, labels)
        label = where(cost < best, broadcast(np.int32(t)), label)
        best = minimum(cost, best)
    return label


@inline_overload(message)
def _message_overload(kind, weight, edge, own_first, low, h, base, out, at, labels):
    if is_kind(kind, PottsRule):

        def potts(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            for s in range(labels):
                store(out, at + s * step, minimum(load(h, base + s * step) - low, weight))

        return potts
    if is_kind(kind, SignedPottsRule):

        def signed(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            # the least cost of another label is `low`, or the second least where this label is the only one at `low`
            second = broadcast(h.dtype.type(np.inf))
            seen = broadcast(h.dtype.type(np.inf))
            for s in range(labels):
                cost = load(h, base + s * step) - low
                second = minimum(second, where(seen < cost, cost, seen))
                seen = minimum(seen, cost)
            for s in range(labels):
                cost = load(h, base + s * step) - low
                other = where(cost == seen, second, seen)
                store(out, at + s * step, minimum(cost, other + weight))

        return signed
    if is_kind(kind, LinearRule):

        def linear(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            values, even, cutoff = kind.truncated.values, kind.truncated.spacing[0], kind.truncated.cutoff[0]
            cap = weight * broadcast(cutoff)
            rise = weight * broadcast(even)
            value = minimum(load(h, base) - low, cap)
            store(out, at, value)
            for s in range(1, labels):
                if even == 0:
                    rise = weight * broadcast(h.dtype.type(min(values[s] - values[s - 1], cutoff)))
                value = minimum(minimum(load(h, base + s * step) - low, cap), value + rise)
                store(out, at + s * step, value)
            for s in range(labels - 2, -1, -1):
                if even == 0:
                    rise = weight * broadcast(h.dtype.type(min(values[s + 1] - values[s], cutoff)))
                value = minimum(load(out, at + s * step), value + rise)
                store(out, at + s * step, value)

        return linear
    if is_kind(kind, LinearWindowRule, WindowRule):

        def window(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            cap = weight * broadcast(kind.truncated.cutoff[0])
            for s in range(labels):
                store(out, at + s * step, minimum(load(h, base + s * step) - low, cap))
            reach = len(kind.costs)
            for d in range(1, reach, 2):  # two distances at a time: four candidates for each load and store of `out`
                near = weight * broadcast(kind.costs[d]) - low
                far = near
                if d + 1 < reach:
                    far = weight * broadcast(kind.costs[d + 1]) - low
                e = d + 1 if d + 1 < reach else d
                for s in range(labels):
                    value = load(out, at + s * step)
                    i = base + s * step
                    if e <= s < labels - e:
                        value = minimum(load(h, i - d * step) + near, value)
                        value = minimum(load(h, i + d * step) + near, value)
                        value = minimum(load(h, i - e * step) + far, value)
                        value = minimum(load(h, i + e * step) + far, value)
                    else:
                        if s >= d:
                            value = minimum(load(h, i - d * step) + near, value)
                        if s >= e:
                            value = minimum(load(h, i - e * step) + far, value)
                        if s < labels - d:
                            value = minimum(load(h, i + d * step) + near, value)
                        if s < labels - e:
                            value = minimum(load(h, i + e * step) + far, value)
                    store(out, at + s * step, value)

        return window
    if is_kind(kind, EnvelopeRule):

        def envelope(kind, weight, edge, own_first, low, h, base, out, at, labels):
            for k in range(LANES):
                _lower_envelope(kind, lane(weight, k), lane(low, k), h, base + k, out, at + k)

        return envelope
    if is_kind(kind, BinaryRule):

        def binary(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            table = kind.table
            zero = load(h, base) - low
            one = load(h, base + step) - low
            cross = 1 if own_first else 2
            store(out, at, minimum(zero + weight * broadcast(table[0]), one + weight * broadcast(table[3 - cross])))
            store(out, at + step, minimum(zero + weight * broadcast(table[cross]), one + weight * broadcast(table[3])))

        return binary
    if is_kind(kind, TableRule, CappedTableRule):
        is_capped = is_kind(kind, CappedTableRule)  # known when compiled: no call of `_weighted` in the inner loop

        def table(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            own = labels if own_first else 1
            other = 1 if own_first else labels
            for s in range(labels):
                value = weight  # of no meaning before the first label
                for t in range(labels):
                    cost = weight * broadcast(kind.table[t * own + s * other])
                    if is_capped:
                        cost = minimum(cost, broadcast(kind.cap[0]))
                    cost = load(h, base + t * step) - low + cost
                    value = cost if t == 0 else minimum(cost, value)
                store(out, at + s * step, value)

        return table

    def edge_tables(kind, weight, edge, own_first, low, h, base, out, at, labels):
        step = width(h)
        for s in range(labels):
            prepared = edge * broadcast(labels * labels) + broadcast(s * (1 if own_first else labels))
            value = add_edge_cost(kind, load(h, base) - low, weight, 0, own_first, prepared, labels)
            for t in range(1, labels):
                cost = load(h, base + t * step) - low
                value = minimum(add_edge_cost(kind, cost, weight, t, own_first, prepared, labels), value)
            store(out, at + s * step, value)

    return edge_tables


@inline_helper
def _lower_envelope(kind, weight, low, h, base, out, at):
    """Felzenszwalb & Huttenlocher's lower envelope of the parabolas h[t] + weight (v - v_t)^2, for one lane. Meeting
    points in float64."""
    values, cutoff, hull, starts = kind.truncated.values, kind.truncated.cutoff[0], kind.hull, kind.starts
    labels = len(values)
    if weight <= 0:
        for s in range(labels):
            out[at + s * LANES] = 0
        return
    count = 0
    hull[0] = 0
    starts[0] = -np.inf
    for t in range(1, labels):
        cost = np.float64(h[base + t * LANES])
        while True:
            r = hull[count]
            rise = cost - np.float64(h[base + r * LANES])
            gap = np.float64(values[t]) - np.float64(values[r])
            if gap > 0:
                meet = (rise / (weight * gap) + np.float64(values[t]) + np.float64(values[r])) / 2
            else:
                meet = -np.inf if rise < 0 else np.inf
            if count == 0 or meet > starts[count]:
                break
            count -= 1
        if meet > starts[count]:
            count += 1
        hull[count] = t
        starts[count] = meet if count > 0 else -np.inf
    starts[count + 1] = np.inf
    r = 0
    for s in range(labels):
        while starts[r + 1] < values[s]:
            r += 1
        d = values[s] - values[hull[r]]
        out[at + s * LANES] = min(h[base + hull[r] * LANES] - low + weight * (d * d), weight * cutoff)


@inline_overload(edge_cost)
def _pair_overload(kind, weight, edge, a, b, labels):
    if is_kind(kind, PottsRule, SignedPottsRule):
        return lambda kind, weight, edge, a, b, labels: where(a == b, weight - weight, weight)
    if is_kind(kind, LinearRule, LinearWindowRule):

        def linear(kind, weight, edge, a, b, labels):
            d = absolute(gather(kind.truncated.values64, 0, a) - gather(kind.truncated.values64, 0, b))
            return weight * minimum(d, broadcast(kind.truncated.cutoff64[0]))

        return linear
    if is_kind(kind, WindowRule, EnvelopeRule):

        def quadratic(kind, weight, edge, a, b, labels):
            d = gather(kind.truncated.values64, 0, a) - gather(kind.truncated.values64, 0, b)
            return weight * minimum(d * d, broadcast(kind.truncated.cutoff64[0]))

        return quadratic
    if is_kind(kind, BinaryRule):

        def binary(kind, weight, edge, a, b, labels):
            table = kind.table64
            zero = b == broadcast(np.int32(0))
            first = where(zero, broadcast(table[0]), broadcast(table[1]))
            return weight * where(
                a == broadcast(np.int32(0)), first, where(zero, broadcast(table[2]), broadcast(table[3]))
            )

        return binary
    if is_kind(kind, TableRule, CappedTableRule):

        def table(kind, weight, edge, a, b, labels):
            return _weighted(kind, weight, gather(kind.table64, 0, a * broadcast(np.int32(labels)) + b))

        return table

    def edge_tables(kind, weight, edge, a, b, labels):
        index = edge * broadcast(labels * labels) + cast(a, np.int64) * broadcast(labels) + cast(b, np.int64)
        return _weighted(kind, weight, cast(gather(kind.tables, 0, index), np.float64))

    return edge_tables

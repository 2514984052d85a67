"""The message rules: what each pairwise kind does to eight sites at once.

Numba picks the code by the type of the kind, one of `treefield.kernels.kinds`. Every kind answers four questions, for
edges of `weight` w and a cost V, with costs in flat arrays laid out [label][lane] (eight lanes, of int16 sixteen):

- `plus`: add w V(s, x) to the cost of label s at a site whose neighbour is fixed at label x (Eq. 8 of the paper);
- `message`: min over t of h[t] - low + w V(t, s), for every s (Eq. 5, less the constant `low` = min h);
- `back`: the label t that attains it for one s (the lowest, among equals);
- `pair`: w V(a, b), in float64.

`own_first` says whether the site in question is the edge's first: tables are indexed [first, second]. `edge` numbers
each lane's edge, for `EdgeTables`; the others ignore it.
"""

import numpy as np
from numba.core import types

from treefield.kernels.jit import inlined, overload_inlined
from treefield.kernels.kinds import (
    BinaryRule,
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
    bits,
    cast,
    full,
    full_like,
    gather,
    lane,
    lane_numbers,
    load,
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


def back(kind, weight, edge, own_first, low, h, base, x, labels):
    """The lowest t that minimises h[t] + weight * V(t, x), as int32 lanes."""


def pair(kind, weight, edge, a, b, labels):
    """weight * V(a, b) in float64 lanes; `a` is the label of the edge's first site."""


def prepare(kind, edge, own_first, x, labels):
    """What can be known of the neighbour's label before the loop over one's own."""


def plus(kind, cost, weight, s, own_first, prepared, labels):
    """cost + weight * V(s, x) for one label s and prepared neighbours, up to a constant that is the same for all s."""


def is_kind(kind, *rules):
    """Whether Numba's type of a kind is that of one of the rules."""
    return isinstance(kind, (types.NamedTuple, types.NamedUniTuple)) and kind.instance_class in rules


def _weighted(kind, weight, entry):
    """weight * entry of a table, cut to the cap of the kind."""


@overload_inlined(_weighted)
def _weighted_overload(kind, weight, entry):
    if is_kind(kind, TableRule):
        return lambda kind, weight, entry: weight * entry
    if is_kind(kind, CappedTableRule):
        return lambda kind, weight, entry: minimum(weight * entry, full_like(weight, kind.cap[0]))

    def edge_tables(kind, weight, entry):
        # forbidden entries are infinite, and times 0, the weight of no edge, they would be NaN
        finite = minimum(entry, full_like(weight, kind.largest[0]))
        return minimum(weight * finite, full_like(weight, kind.cap[0]))

    return edge_tables


@overload_inlined(label_count)
def _label_count_overload(kind, labels):
    if is_kind(kind, BinaryRule):
        return lambda kind, labels: 2
    return lambda kind, labels: labels


@overload_inlined(prepare)
def _prepare_overload(kind, edge, own_first, x, labels):
    if is_kind(kind, LinearRule, LinearWindowRule, WindowRule, EnvelopeRule):
        return lambda kind, edge, own_first, x, labels: gather(kind.truncated.values, 0, x)
    if is_kind(kind, EdgeTablesRule):

        def edge_tables(kind, edge, own_first, x, labels):
            return edge * full(labels * labels) + cast(x, np.int64) * full(1 if own_first else labels)

        return edge_tables
    return lambda kind, edge, own_first, x, labels: x


@overload_inlined(plus)
def _plus_overload(kind, cost, weight, s, own_first, prepared, labels):
    if is_kind(kind, PottsRule, SignedPottsRule):

        def potts(kind, cost, weight, s, own_first, prepared, labels):
            # only the neighbour's own label is cheaper than the others
            return where(prepared == full_like(prepared, s), cost - weight, cost)

        return potts
    if is_kind(kind, LinearRule, LinearWindowRule):

        def linear(kind, cost, weight, s, own_first, prepared, labels):
            return cost + weight * minimum(
                absolute(full(kind.truncated.values[s]) - prepared), full(kind.truncated.cutoff[0])
            )

        return linear
    if is_kind(kind, WindowRule, EnvelopeRule):

        def quadratic(kind, cost, weight, s, own_first, prepared, labels):
            d = full(kind.truncated.values[s]) - prepared
            return cost + weight * minimum(d * d, full(kind.truncated.cutoff[0]))

        def small(kind, cost, weight, s, own_first, prepared, labels):
            d = minimum(absolute(full(kind.truncated.values[s]) - prepared), full(np.int16(_ROOT)))
            return cost + weight * minimum(d * d, full(kind.truncated.cutoff[0]))

        return small if cost.element == types.int16 else quadratic
    if is_kind(kind, BinaryRule):

        def binary(kind, cost, weight, s, own_first, prepared, labels):
            own = 2 if own_first else 1
            zero = prepared == full_like(prepared, 0)
            return cost + weight * where(zero, full(kind.table[s * own]), full(kind.table[s * own + 3 - own]))

        return binary
    if is_kind(kind, TableRule, CappedTableRule):

        def table(kind, cost, weight, s, own_first, prepared, labels):
            own = labels if own_first else 1
            other = 1 if own_first else labels
            return cost + _weighted(kind, weight, gather(kind.table, s * own, prepared * full_like(prepared, other)))

        return table

    def edge_tables(kind, cost, weight, s, own_first, prepared, labels):
        entry = gather(kind.tables, s * (labels if own_first else 1), prepared)
        return cost + _weighted(kind, weight, cast(entry, kind.cap))

    return edge_tables


@overload_inlined(back)
def _back_overload(kind, weight, edge, own_first, low, h, base, x, labels):
    if is_kind(kind, LinearRule, LinearWindowRule, WindowRule, EnvelopeRule):

        def truncated(kind, weight, edge, own_first, low, h, base, x, labels):
            kept = gather(h, base, x * full(np.int32(LANES)) + lane_numbers()) - low
            if bits(kept < weight * full(kind.truncated.change[0])) == (1 << LANES) - 1:
                return x  # any other label costs more than that, and at least `low`
            return _cheapest(kind, weight, edge, own_first, h, base, x, labels)

        return truncated
    if is_kind(kind, PottsRule):

        def potts(kind, weight, edge, own_first, low, h, base, x, labels):
            kept = gather(h, base, x * full(np.int32(LANES)) + lane_numbers()) - low
            result = x
            if bits(weight <= kept) != 0:
                lowest = x
                for s in range(labels - 1, -1, -1):
                    lowest = where(load(h, base + s * LANES) == low, full(np.int32(s)), lowest)
                leaving = (weight < kept) | ((weight == kept) & (lowest < x))
                result = where(leaving, lowest, x)
            return result

        return potts

    def any_kind(kind, weight, edge, own_first, low, h, base, x, labels):
        return _cheapest(kind, weight, edge, own_first, h, base, x, labels)

    return any_kind


@inlined
def _cheapest(kind, weight, edge, own_first, h, base, x, labels):
    """The lowest t that minimises h[t] + weight * V(t, x): one loop over all labels."""
    prepared = prepare(kind, edge, own_first, x, labels)
    best = plus(kind, load(h, base), weight, 0, own_first, prepared, labels)
    label = full(np.int32(0))
    for t in range(1, labels):
        cost = plus(kind, load(h, base + t * LANES), weight, t, own_first, prepared, labels)
        label = where(cost < best, full(np.int32(t)), label)
        best = minimum(cost, best)
    return label


@overload_inlined(message)
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
            second = full(h.dtype.type(np.inf))
            seen = full(h.dtype.type(np.inf))
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
            cap = weight * full(cutoff)
            rise = weight * full(even)
            value = minimum(load(h, base) - low, cap)
            store(out, at, value)
            for s in range(1, labels):
                if even == 0:
                    rise = weight * full(h.dtype.type(min(values[s] - values[s - 1], cutoff)))
                value = minimum(minimum(load(h, base + s * step) - low, cap), value + rise)
                store(out, at + s * step, value)
            for s in range(labels - 2, -1, -1):
                if even == 0:
                    rise = weight * full(h.dtype.type(min(values[s + 1] - values[s], cutoff)))
                value = minimum(load(out, at + s * step), value + rise)
                store(out, at + s * step, value)

        return linear
    if is_kind(kind, LinearWindowRule, WindowRule):

        def window(kind, weight, edge, own_first, low, h, base, out, at, labels):
            step = width(h)
            cap = weight * full(kind.truncated.cutoff[0])
            for s in range(labels):
                store(out, at + s * step, minimum(load(h, base + s * step) - low, cap))
            reach = len(kind.costs)
            for d in range(1, reach, 2):  # two distances at a time: four candidates for each load and store of `out`
                near = weight * full(kind.costs[d]) - low
                far = near
                if d + 1 < reach:
                    far = weight * full(kind.costs[d + 1]) - low
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
            store(out, at, minimum(zero + weight * full(table[0]), one + weight * full(table[3 - cross])))
            store(out, at + step, minimum(zero + weight * full(table[cross]), one + weight * full(table[3])))

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
                    cost = weight * full(kind.table[t * own + s * other])
                    if is_capped:
                        cost = minimum(cost, full(kind.cap[0]))
                    cost = load(h, base + t * step) - low + cost
                    value = cost if t == 0 else minimum(cost, value)
                store(out, at + s * step, value)

        return table

    def edge_tables(kind, weight, edge, own_first, low, h, base, out, at, labels):
        step = width(h)
        for s in range(labels):
            prepared = edge * full(labels * labels) + full(s * (1 if own_first else labels))
            value = plus(kind, load(h, base) - low, weight, 0, own_first, prepared, labels)
            for t in range(1, labels):
                cost = load(h, base + t * step) - low
                value = minimum(plus(kind, cost, weight, t, own_first, prepared, labels), value)
            store(out, at + s * step, value)

    return edge_tables


@inlined
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


@overload_inlined(pair)
def _pair_overload(kind, weight, edge, a, b, labels):
    if is_kind(kind, PottsRule, SignedPottsRule):
        return lambda kind, weight, edge, a, b, labels: where(a == b, weight - weight, weight)
    if is_kind(kind, LinearRule, LinearWindowRule):

        def linear(kind, weight, edge, a, b, labels):
            d = absolute(gather(kind.truncated.values64, 0, a) - gather(kind.truncated.values64, 0, b))
            return weight * minimum(d, full(kind.truncated.cutoff64[0]))

        return linear
    if is_kind(kind, WindowRule, EnvelopeRule):

        def quadratic(kind, weight, edge, a, b, labels):
            d = gather(kind.truncated.values64, 0, a) - gather(kind.truncated.values64, 0, b)
            return weight * minimum(d * d, full(kind.truncated.cutoff64[0]))

        return quadratic
    if is_kind(kind, BinaryRule):

        def binary(kind, weight, edge, a, b, labels):
            table = kind.table64
            zero = b == full(np.int32(0))
            first = where(zero, full(table[0]), full(table[1]))
            return weight * where(a == full(np.int32(0)), first, where(zero, full(table[2]), full(table[3])))

        return binary
    if is_kind(kind, TableRule, CappedTableRule):

        def table(kind, weight, edge, a, b, labels):
            return _weighted(kind, weight, gather(kind.table64, 0, a * full(np.int32(labels)) + b))

        return table

    def edge_tables(kind, weight, edge, a, b, labels):
        index = edge * full(labels * labels) + cast(a, np.int64) * full(labels) + cast(b, np.int64)
        return _weighted(kind, weight, cast(gather(kind.tables, 0, index), np.float64))

    return edge_tables

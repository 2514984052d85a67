"""Every registered message rule against its table by brute force."""

import pathlib
import types
from fractions import Fraction
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treefield as tf
from treefield.backends.shared import WeightRange
from treefield.kernels.graph import edge_rules
from treefield.kernels.rules import registry, rule
from treefield.kernels.rules.binary import BinaryRule
from treefield.kernels.rules.edge_tables import CappedEdgeTablesRule, EdgeTablesRule
from treefield.kernels.rules.linear import LinearRule, LinearWindowRule
from treefield.kernels.rules.potts import PottsRule, SignedPottsRule
from treefield.kernels.rules.quadratic import EnvelopeRule, SpreadRule, WindowRule, spread_rule
from treefield.kernels.rules.table import CappedTableRule, TableRule
from treefield.kernels.simd.arrays import aligned
from treefield.kernels.simd.lanes import LANES, broadcast_like, load, minimum, store, width

CAP = 2.0**12


class Example(NamedTuple):
    """A rule and what it should compute: `tables` [edge][first][second], which messages may use less a constant, and
    weight times cost cut to the cap."""

    rule: tuple
    tables: np.ndarray
    has_negative_weights: bool = False
    cap: float = np.inf


def weights_of(least, largest=3.0, forbidden=np.inf):
    return WeightRange(least, largest, forbidden)


def numbers(rng, shape, whole):
    return rng.integers(-9, 10, shape).astype(np.float64) if whole else rng.normal(size=shape) * 9


def shared(pairwise, labels, dtype, least=0.0):
    table = pairwise.table(labels)
    return Example(
        pairwise.rule(labels, np.dtype(dtype), weights_of(least)), np.broadcast_to(table, (8, *table.shape)), least < 0
    )


def positions(rng, labels, whole):
    steps = rng.integers(0, 4, labels) if whole else rng.random(labels) * 3
    return np.cumsum(steps)


def capped_table(rng, labels, whole, dtype):
    table = np.abs(numbers(rng, (labels, labels), whole))
    table[rng.random(table.shape) < 0.3] = np.inf
    table[0, 0], table[0, 1] = 0.0, np.inf
    made = tf.Table(table).rule(labels, np.dtype(dtype), weights_of(0.5, 3.0, CAP))
    return Example(made, np.broadcast_to(table, (8, *table.shape)), cap=CAP)


def edge_tables(rng, labels, whole, dtype):
    tables = numbers(rng, (8, labels, labels), whole)
    return Example(EdgeTablesRule(tables.reshape(-1), np.zeros(1, dtype)), tables, True)


def capped_edge_tables(rng, labels, whole, dtype):
    tables = np.abs(numbers(rng, (8, labels, labels), whole))
    tables[rng.random(tables.shape) < 0.3] = np.inf
    largest = np.array([np.finfo(dtype).max], dtype)
    made = CappedEdgeTablesRule(tables.reshape(-1), np.zeros(1, dtype), np.array([CAP], dtype), largest)
    return Example(made, tables, cap=CAP)


def quadratic_of_any_spacing(rng, labels, whole, dtype):
    v = positions(rng, labels, whole)
    v[-1] += 5  # never evenly spaced
    return shared(tf.TruncatedQuadratic(1, rng.choice([9.0, np.inf]), values=v), labels, dtype)


def quadratic_that_spreads(rng, labels, whole, dtype):
    values = np.arange(labels) * (2.0 if whole else 0.7)
    found = shared(tf.TruncatedQuadratic(1, rng.choice([1.0, 40.0, np.inf]), values=values), labels, dtype)
    made = found.rule  # too few labels to spread without being asked
    return found._replace(rule=spread_rule(made.truncated, made.costs) if isinstance(made, WindowRule) else made)


def linear_of_any_spacing(rng, labels, whole, dtype):
    cutoff = float(rng.integers(11, 30))
    if labels >= 6 and rng.random() < 0.5:  # evenly spaced, and too far for a window
        return shared(tf.TruncatedLinear(1, cutoff, values=np.arange(labels) * (2.0 if whole else 0.7)), labels, dtype)
    v = positions(rng, labels, whole)
    v[-1] += 5
    return shared(tf.TruncatedLinear(1, cutoff, values=v), labels, dtype)


EXAMPLES = {
    PottsRule: lambda rng, labels, whole, dtype: shared(tf.Potts(1), labels, dtype),
    SignedPottsRule: lambda rng, labels, whole, dtype: shared(tf.Potts(1), labels, dtype, least=-3.0),
    BinaryRule: lambda rng, labels, whole, dtype: shared(tf.Table(numbers(rng, (2, 2), whole)), 2, dtype, least=-3.0),
    LinearWindowRule: lambda rng, labels, whole, dtype: shared(tf.TruncatedLinear(1, 2), labels, dtype),
    LinearRule: linear_of_any_spacing,
    WindowRule: lambda rng, labels, whole, dtype: shared(
        tf.TruncatedQuadratic(1, float(rng.choice([3, 40]))), labels, dtype
    ),
    SpreadRule: quadratic_that_spreads,
    EnvelopeRule: quadratic_of_any_spacing,
    TableRule: lambda rng, labels, whole, dtype: shared(
        tf.Table(numbers(rng, (labels, labels), whole)), labels, dtype, least=-3.0
    ),
    CappedTableRule: capped_table,
    EdgeTablesRule: edge_tables,
    CappedEdgeTablesRule: capped_edge_tables,
}


@numba.njit(error_model="numpy")
def send(kind, weight, edge, own_first, h, labels, sent):
    low = load(h, 0)
    for s in range(1, labels):
        low = minimum(load(h, s * width(h)), low)
    rule.message(kind, load(weight, 0), load(edge, 0), own_first, low, h, 0, sent, 0, labels)


@numba.njit(error_model="numpy")
def absorb(kind, weight, edge, own_first, x, labels, absorbed):
    prepared = rule.prepare(kind, load(edge, 0), own_first, load(x, 0), labels)
    for s in range(labels):
        zero = broadcast_like(load(weight, 0), 0)
        added = rule.add_edge_cost(kind, zero, load(weight, 0), s, own_first, prepared, labels)
        store(absorbed, s * width(absorbed), added)


@numba.njit(error_model="numpy")
def choose(kind, weight, edge, own_first, h, x, labels, best):
    low = load(h, 0)
    for s in range(1, labels):
        low = minimum(load(h, s * LANES), low)
    store(best, 0, rule.argmin_given(kind, load(weight, 0), load(edge, 0), own_first, low, h, 0, load(x, 0), labels))


@numba.njit(error_model="numpy")
def price(kind, weight, edge, a, b, labels, costs):
    store(costs, 0, rule.edge_cost(kind, load(weight, 0), load(edge, 0), load(a, 0), load(b, 0), labels))


def flat(values, dtype):
    array = aligned(np.size(values), dtype)
    array[:] = np.reshape(values, -1)
    return array


def edge_costs(example, weights, own_first, raised):
    """[lane][own label][other label]: weight times cost as a message sees it, `raised` to a least cost of 0."""
    tables = example.tables
    if raised:
        tables = tables - tables.min()
    with np.errstate(invalid="ignore"):
        costs = weights[:, None, None] * tables
    costs = np.minimum(np.where(np.isnan(costs), np.inf if example.cap < np.inf else 0.0, costs), example.cap)
    return costs if own_first else costs.transpose(0, 2, 1)


def uses_raised_tables(example):
    return not isinstance(example.rule, EdgeTablesRule | CappedEdgeTablesRule)


def test_every_registered_rule_has_an_example_here():
    assert set(EXAMPLES) == set(rule.lane_rules)
    assert all(kind.__module__ in {module.__name__ for module in registry.KINDS} for kind in EXAMPLES)


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
@given(seed=st.integers(0, 2**32 - 1), labels=st.integers(3, 9), own_first=st.booleans())
@settings(max_examples=60, deadline=None)
def test_whole_costs_are_those_of_the_table_to_the_bit(kind, seed, labels, own_first):
    rng = np.random.default_rng(seed)
    example = EXAMPLES[kind](rng, labels, True, np.float64)
    assert type(example.rule) is kind
    labels = example.tables.shape[-1]
    weights = rng.integers(-3 if example.has_negative_weights else 1 if example.cap < np.inf else 0, 4, 8) * 1.0
    h = rng.integers(0, 40, (labels, 8)) * 1.0
    x, a, b = rng.integers(0, labels, (3, 8))
    x32, edge, w = flat(x, np.int32), flat(np.arange(8), np.int64), flat(weights, np.float64)
    costs = edge_costs(example, weights, own_first, uses_raised_tables(example))
    totals = h.T[:, :, None] + costs  # [lane][own][other]

    sent = aligned(labels * 8, np.float64)
    send(example.rule, w, edge, own_first, flat(h, np.float64), labels, sent)
    expected = totals.min(axis=1) - h.min(axis=0)[:, None]
    np.testing.assert_array_equal(sent.reshape(labels, 8).T, expected)

    absorbed = aligned(labels * 8, np.float64)
    absorb(example.rule, w, edge, own_first, x32, labels, absorbed)
    difference = absorbed.reshape(labels, 8).T - costs[np.arange(8), :, x]
    assert (difference == difference[:, :1]).all()

    best = aligned(8, np.int32)
    choose(example.rule, w, edge, own_first, flat(h, np.float64), x32, labels, best)
    np.testing.assert_array_equal(best, totals[np.arange(8), :, x].argmin(axis=1))

    priced = aligned(8, np.float64)
    price(example.rule, w, edge, flat(a, np.int32), flat(b, np.int32), labels, priced)
    np.testing.assert_array_equal(priced, edge_costs(example, weights, True, False)[np.arange(8), a, b])


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
@given(
    seed=st.integers(0, 2**32 - 1),
    labels=st.integers(3, 40),
    own_first=st.booleans(),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(max_examples=40, deadline=None)
def test_no_message_is_above_the_exact_one_by_more_than_the_margin(kind, seed, labels, own_first, scale):
    rng = np.random.default_rng(seed)
    example = EXAMPLES[kind](rng, labels, False, np.float64)
    labels = example.tables.shape[-1]
    weights = rng.uniform(0.5 if example.cap < np.inf else 0.0, 3.0, 8) * (1.0 if example.cap < np.inf else scale)
    if example.has_negative_weights:
        weights *= rng.choice([-1.0, 1.0], 8)
    tables = example.tables - (example.tables.min() if uses_raised_tables(example) else 0.0)
    spans = np.abs(weights) * np.where(np.isinf(tables), 0.0, np.abs(tables)).max()
    h = rng.random((labels, 8)) * spans
    sent = aligned(labels * 8, np.float64)
    arrays = flat(weights, np.float64), flat(np.arange(8), np.int64)
    send(example.rule, *arrays, own_first, flat(h, np.float64), labels, sent)
    sent = sent.reshape(labels, 8)
    error = example.rule.message_error(example.tables[0] if uses_raised_tables(example) else np.zeros((0, 0)))
    least = Fraction(example.tables.min()) if uses_raised_tables(example) else Fraction(0)
    for k in range(8):
        table = example.tables[k] if own_first else example.tables[k].T
        low = Fraction(h[:, k].min())
        relative = Fraction(error.relative) * Fraction(max(spans[k], h[:, k].max()))
        margin = relative + Fraction(error.absolute) * Fraction(abs(weights[k]))
        for s in range(labels):
            exact = min(
                Fraction(h[t, k]) - low + exact_cost(weights[k], table[t, s], least, example.cap) for t in range(labels)
            )
            assert Fraction(sent[s, k]) - exact <= margin


def exact_cost(weight, cost, least, cap):
    if np.isinf(cost):
        return Fraction(cap)
    exact = Fraction(weight) * (Fraction(cost) - least)
    return exact if np.isinf(cap) else min(exact, Fraction(cap))


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
@given(seed=st.integers(0, 2**32 - 1), labels=st.integers(3, 9), own_first=st.booleans())
@settings(max_examples=25, deadline=None)
def test_rules_that_fit_int16_give_the_same_messages_there(kind, seed, labels, own_first):
    rng = np.random.default_rng(seed)
    if not EXAMPLES[kind](rng, labels, True, np.float64).rule.fits_int16():
        return
    rng = np.random.default_rng(seed)
    example = EXAMPLES[kind](rng, labels, True, np.int16)
    labels = example.tables.shape[-1]
    weights = np.tile(rng.integers(0, 20, 8), 2)
    h = rng.integers(0, 400, (labels, 16))
    costs = np.tile(edge_costs(example, weights[:8] * 1.0, own_first, True), (2, 1, 1))
    sent = aligned(labels * 16, np.int16)
    edge = flat(np.zeros(16), np.int64)
    send(example.rule, flat(weights, np.int16), edge, own_first, flat(h, np.int16), labels, sent)
    expected = (h.T[:, :, None] + costs).min(axis=1) - h.min(axis=0)[:, None]
    np.testing.assert_array_equal(sent.reshape(labels, 16).T, expected)


# --- registration ---------------------------------------------------------------------------------------------------


class NoMargin(NamedTuple):
    def fits_int16(self):
        return False

    def positions(self):
        return np.zeros(1)


class WithMargin(NamedTuple):
    def message_error(self, table):
        return rule.FEW_ROUNDINGS

    def fits_int16(self):
        return False

    def positions(self):
        return np.zeros(1)


def compiled_parts():
    return {name: value for name, value in vars(rule.lane_rules[PottsRule]).items() if name != "label_count"}


def test_a_rule_without_its_rounding_margin_is_refused():
    with pytest.raises(TypeError, match="the rule NoMargin lacks message_error"):
        rule.register(NoMargin, **compiled_parts())
    assert NoMargin not in rule.lane_rules


@pytest.mark.parametrize("missing", compiled_parts())
def test_a_rule_that_lacks_a_compiled_part_is_refused(missing):
    given_parts = compiled_parts()
    del given_parts[missing]
    with pytest.raises(TypeError, match=f"the rule WithMargin lacks {missing}"):
        rule.register(WithMargin, **given_parts)
    assert WithMargin not in rule.lane_rules


def test_a_graph_rule_without_its_rounding_margin_is_refused():
    given_parts = dict(vars(registry.GRAPH_RULES[0]))
    del given_parts["message_error"]
    with pytest.raises(TypeError, match="message_error"):
        rule.GraphRule(**given_parts)


def test_kernels_refuse_a_tuple_that_is_not_registered():
    arrays = flat(np.zeros(8), np.float64), flat(np.zeros(8), np.int64)
    with pytest.raises(numba.TypingError, match="no message rule is registered for NoMargin"):
        send(NoMargin(), *arrays, True, aligned(24, np.float64), 3, aligned(24, np.float64))


def test_every_module_of_rules_is_in_the_table_of_kinds():
    folder = rule.__name__.rpartition(".")[0]
    shared_modules = {f"{folder}.{name}" for name in ("rule", "registry", "truncated")}
    listed = {module.__name__ for module in registry.KINDS}
    assert all(isinstance(module, types.ModuleType) for module in registry.KINDS)
    assert {kind.__module__ for kind in rule.lane_rules} == listed
    files = {f"{folder}.{path.stem}" for path in pathlib.Path(rule.__file__).parent.glob("[!_]*.py")}
    assert files == listed | shared_modules


# --- graphs ---------------------------------------------------------------------------------------------------------

GRAPH_EXAMPLES = {
    "potts": lambda rng, whole: (tf.Potts(1), True),
    "linear": lambda rng, whole: (tf.TruncatedLinear(1, 5, values=positions(rng, 12, whole)), False),
    "tables": lambda rng, whole: (tf.Table(numbers(rng, (12, 12), whole)), True),
}


@numba.njit(error_model="numpy")
def graph_parts(graph, link, h, count, others, low, label, sent, absorbed):
    edge_rules.send(graph, link, h, 0, count, low, sent, others)
    edge_rules.absorb(graph, link, label, 1.0, None, absorbed, 0, count)
    return edge_rules.argmin_given(graph, link, h, 0, count, low, label), edge_rules.link_cost(graph, link, 1, label)


def pair_of_sites(pairwise, weight, counts):
    unary = [np.zeros(count) for count in (*counts, 12)]  # a third site fixes the number of labels
    costs = [pairwise.V[: counts[0], : counts[1]]] if isinstance(pairwise, tf.Table) else pairwise
    return tf.GraphMRF(unary, [(0, 1)], costs, weights=[weight]).backend


def test_every_graph_rule_has_an_example_here():
    assert list(GRAPH_EXAMPLES) == [found.name for found in registry.GRAPH_RULES]
    assert [registry.graph_code(name) for name in GRAPH_EXAMPLES] == [0, 1, 2]
    with pytest.raises(KeyError, match="no graph rule is named 'cubic'"):
        registry.graph_code("cubic")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", GRAPH_EXAMPLES)
@given(seed=st.integers(0, 2**32 - 1), own_first=st.booleans())
@settings(max_examples=60, deadline=None)
def test_graph_rules_are_those_of_the_table(name, whole, seed, own_first):
    rng = np.random.default_rng(seed)
    pairwise, may_be_negative = GRAPH_EXAMPLES[name](rng, whole)
    weight = float(rng.integers(1, 4)) if whole else float(rng.uniform(0.1, 3))
    weight *= -1.0 if may_be_negative and rng.random() < 0.5 else 1.0
    counts = rng.integers(2, 13, 2)
    backend = pair_of_sites(pairwise, weight, counts)
    assert backend.joined.kind == name
    own, other = counts if own_first else counts[::-1]
    table = pairwise.table(12)[: counts[0], : counts[1]]
    table = table if own_first else table.T
    h = np.full(24, np.inf)
    h[:own] = rng.integers(0, 9, own) if whole else rng.random(own) * 9
    label = int(rng.integers(other))
    sent, absorbed = np.zeros(24), np.zeros(24)
    best, cost = graph_parts(
        backend.kernel_graph, 0 if own_first else 1, h, own, other, h[:own].min(), label, sent, absorbed
    )
    costs = weight * table
    totals = h[:own, None] + costs
    if whole:
        np.testing.assert_array_equal(sent[:other], totals.min(axis=0))
        difference = absorbed[:own] - costs[:, label]
        assert (difference == difference[0]).all()
        assert best == totals[:, label].argmin()
    assert cost == pytest.approx(costs[1, label], rel=1e-15)
    margin = registry.graph_rule(name).message_error(backend.joined.positions) + 8 * rule.EPS
    allowed = Fraction(margin) * Fraction(max(np.abs(costs).max(), h[:own].max()))
    for s in range(other):
        exact = min(Fraction(h[t]) + Fraction(weight) * Fraction(table[t, s]) for t in range(own))
        assert Fraction(sent[s]) - exact <= allowed

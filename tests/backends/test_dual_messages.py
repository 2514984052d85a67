"""A dual that starts from the messages of another model proves its bound for its own costs: against brute force, with
messages of other models and with messages made of random bytes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from bounds import ARITHMETICS, KINDS, holds, least_energy, random_model
from small_graphs import graphs, grid_graph
from treefield.backends.grid.dual import GridDual, _message_arrays, _strips
from treefield.protocols import DualMessages

MODELS = 40  # of each kind
ORDER = ("int16", "float32", "float64")


def foreign_messages(seed, dual, others):
    """Messages of the same layout: of one of the other models, or of random bytes, of any arithmetic and scale."""
    rng = np.random.default_rng(seed)
    if others and rng.random() < 0.5:
        mrf = others[rng.integers(len(others))]
        other, x = mrf.backend.dual("exact"), np.zeros(mrf.shape, np.int32)
        for _ in range(int(rng.integers(1, 5))):
            other.iterate(x)
            if rng.random() < 0.3:
                other.refine(0.0)
        return other.get_messages()
    layout, scale, arithmetic, values = dual.get_messages()
    size = len(values) // np.dtype(arithmetic).itemsize
    if isinstance(dual, GridDual):
        arithmetic = str(rng.choice(ORDER))
        size = sum(len(part) for part in _message_arrays(_strips(dual._costs, np.dtype(arithmetic))))
    kind = rng.integers(4)
    if kind == 0:
        values = np.frombuffer(rng.bytes(size * np.dtype(arithmetic).itemsize), np.uint8)
    else:
        numbers = rng.normal(size=size) * 10.0 ** rng.integers(-3, 5)
        if kind == 1 and arithmetic != "int16":
            numbers = rng.choice([math.inf, -math.inf, math.nan, 1e300, -1e30, 0.0], size)
        with np.errstate(invalid="ignore", over="ignore"):
            values = numbers.astype(arithmetic).view(np.uint8)
    return DualMessages(layout, scale * 10.0 ** rng.integers(-6, 7), arithmetic, values)


def check_warm_bounds(mrf, arithmetic, others, minimum, slack, seed, what):
    """From foreign messages no bound is above the minimum, nor below the one before, in this and in finer numbers."""
    dual, x, before = mrf.backend.dual(arithmetic), np.full(mrf.shape, -1, np.int32), -math.inf
    assert dual.start_from(foreign_messages(seed, dual, others)), what
    assert dual.bound == -math.inf, what
    for number in range(8):
        bound = dual.iterate(x)
        assert before <= bound <= minimum + slack, f"{what}: {bound!r} is above {minimum!r} by {bound - minimum:g}"
        assert (x >= 0).all() and (x < mrf.backend.label_counts.reshape(x.shape)).all(), what
        before = bound
        if number == 3:
            dual.refine(0.0)
    return bound


@pytest.mark.parametrize("kind", KINDS)
def test_no_messages_of_a_grid_lift_the_bound_above_the_minimum(kind):
    tried = close = 0
    for seed in range(MODELS):
        case = random_model(kind, seed)
        mrf, (minimum, slack) = case.mrf(), least_energy(case)
        shape, labels = case.unary.shape[:-1], case.unary.shape[-1]
        others = [mrf]
        for other in (kind, "table", "potts-signed"):
            if labels > 2 or kind == other:
                others.append(random_model(other, seed + 1000, shape, labels).mrf())
        for arithmetic in ("auto", "exact", *(a for a in ARITHMETICS[kind] if holds(mrf, a))):
            what = f"{kind} {seed} in {arithmetic}"
            bound = check_warm_bounds(mrf, arithmetic, others, minimum, slack, seed, what)
            close += minimum - bound <= 1e-3 * abs(minimum)
            tried += 1
    assert close >= tried / 2, (tried, close)


@given(case=graphs(), seed=st.integers(0, 2**32))
def test_no_messages_of_a_graph_lift_the_bound_above_the_minimum(case, seed):
    mrf, minimum = case.mrf(), naive_graph.least_energy(case.merged)
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.integers(-2, 4)
    changed = [size * rng.normal(size=len(unary)) for unary in case.unaries]
    other = tf.GraphMRF(changed, case.edges, case.pairwise, weights=case.weights)
    slack = 0.0 if case.integer or math.isinf(minimum) else 1e-12 * (1 + abs(minimum))
    check_warm_bounds(mrf, "auto", [mrf, other], minimum, slack, seed, case.kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(17, 9), (2, 9, 5), (1, 1)], ids=str)
def test_a_dual_that_starts_from_its_own_messages_continues_where_it_was(kind, shape):
    case = random_model(kind, 2, shape, labels=2 if kind == "binary" else 3, integer=False, odd=False)
    mrf, x = case.mrf(), np.zeros(shape, np.int32)
    first, second = mrf.backend.dual("exact"), mrf.backend.dual("exact")
    for number in range(12):
        first.iterate(x)
        if number == 5:
            first.refine(math.inf)
    messages = first.get_messages()
    assert second.start_from(messages) and second.arithmetic == first.arithmetic
    y = x.copy()
    for _ in range(3):
        first.bound = -math.inf  # or the old one would stand
        second.bound = -math.inf
        assert first.iterate(x) == second.iterate(y)
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["shape", "labels", "graph"])
def test_messages_of_another_layout_are_not_used(name):
    unary = np.random.default_rng(0).random((5, 6, 3))
    others = {"shape": unary.transpose(1, 0, 2), "labels": unary[..., :2]}
    mrf, other = tf.GridMRF(unary, tf.Potts(1.0)), tf.GridMRF(others.get(name, unary), tf.Potts(1.0))
    if name == "graph":
        other = grid_graph((5, 6), 3)
    dual, before = mrf.backend.dual(), mrf.backend.dual()
    for giver, taker in ((other, mrf), (mrf, other)):
        dual = taker.backend.dual()
        before = dual.get_state()
        assert not dual.start_from(giver.backend.dual().get_messages())
        assert dual.get_state()[0] == before[0] and np.array_equal(dual.get_state()[1], before[1])


def test_messages_of_a_graph_with_other_edges_are_not_used():
    unaries = np.random.default_rng(0).random((4, 3))
    first, second = (tf.GraphMRF(unaries, edges, tf.Potts(1.0)) for edges in ([(0, 1), (1, 2)], [(0, 1), (1, 3)]))
    assert not second.backend.dual().start_from(first.backend.dual().get_messages())


def test_real_costs_keep_their_messages_when_the_dual_turns_to_float64():
    """Costs far below 1: rounded down to whole numbers, their messages would be 0."""
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.random((20, 20, 3)) / 100, tf.Potts(0.003))
    dual, x = mrf.backend.dual("exact"), np.zeros(mrf.shape, np.int32)
    while dual.arithmetic != "float32":
        dual.refine(0.0)
    for _ in range(50):
        reached = dual.iterate(x)
    assert dual.refine(0.0) and dual.arithmetic == "float64"
    dual.bound = -math.inf
    assert dual.iterate(x) == pytest.approx(reached, rel=1e-4)

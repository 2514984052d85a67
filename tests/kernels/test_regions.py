"""The regions that jumps change, against flood filling and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_search
from strategies import random_case
from treefield.kernels.grid import regions

SHAPES = [(1, 1), (1, 30), (30, 1), (12, 17), (5, 1, 6), (4, 5, 6)]
# kind and dtype: each pair is compiled by itself
KINDS = {"potts": "float32", "table": "float64", "edge-tables": "float64", "quadratic": "float64"}


def strides(shape):
    return np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])


def kernel_segments(x):
    numbers = np.full(x.size, -7, np.int32)
    count = regions.label_segments(x.reshape(-1), np.array(x.shape), strides(x.shape), numbers)
    return count, numbers


def kernel_labels_across(x, seed):
    count, numbers = kernel_segments(x)
    found = np.full(count, -1, np.int32)
    keys = np.zeros(count, np.uint64)
    regions.labels_across(x.reshape(-1), strides(x.shape), np.array(x.shape), numbers, np.uint64(seed), keys, found)
    return found


def corners(boxes):
    """The two flat arrays of corners that kernels take, of boxes given as three slices each."""
    ends = np.array([[(s.start, s.stop) for s in box] for box in boxes], np.int64).reshape(-1, 3, 2)
    return ends[..., 0].flatten(), ends[..., 1].flatten()


def random_box(rng, shape):
    """A non-empty box, as one slice per axis."""
    ends = [np.sort(rng.choice(n + 1, 2, replace=False)) for n in shape]
    return tuple(slice(int(low), int(high)) for low, high in ends)


def in_3d(shape):
    return (1,) * (3 - len(shape)) + tuple(shape)


# --- segments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_segments_are_those_of_flood_filling(shape):
    rng = np.random.default_rng(0)
    for labels in (1, 2, 3, 9):
        for _ in range(5):
            x = rng.integers(labels, size=shape, dtype=np.int32)
            expected = naive_search.segments(x)
            count, numbers = kernel_segments(x)
            assert count == len(expected)
            np.testing.assert_array_equal(numbers.reshape(shape), naive_search.numbered(shape, expected))


def test_a_segment_that_meets_itself_again_is_one():
    comb = np.zeros((9, 15), np.int32)
    comb[:-1, ::2] = 1  # teeth that only the last row joins
    comb[-1] = 1
    spiral = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 0, 1], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1]], np.int32)
    rings = np.stack([spiral, np.ones((5, 5), np.int32), spiral[::-1]])
    for x in (comb, comb[::-1].copy(), comb.T.copy(), spiral, spiral.T.copy(), rings):
        count, numbers = kernel_segments(x)
        np.testing.assert_array_equal(
            numbers.reshape(x.shape), naive_search.numbered(x.shape, naive_search.segments(x))
        )
        assert count == numbers.max() + 1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_segments_are_described_by_their_sizes_and_labels_and_relabelled_whole(shape):
    rng = np.random.default_rng(1)
    x = rng.integers(3, size=shape, dtype=np.int32)
    count, numbers = kernel_segments(x)
    sizes, labels = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    regions.describe_segments(x.reshape(-1), numbers, sizes, labels)
    expected = naive_search.segments(x)
    assert sizes.tolist() == [len(segment) for segment in expected]
    assert labels.tolist() == [x[min(segment)] for segment in expected]
    y, new = x.copy(), rng.integers(9, size=count, dtype=np.int32)
    regions.relabel(y.reshape(-1), numbers, new)
    assert all(y[i] == new[number] for number, segment in enumerate(expected) for i in segment)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_label_across_the_border_of_a_segment_is_that_of_a_neighbour(shape):
    rng = np.random.default_rng(2)
    for seed in range(10):
        x = rng.integers(4, size=shape, dtype=np.int32)
        for segment, label in zip(naive_search.segments(x), kernel_labels_across(x, seed), strict=True):
            border = naive_search.border(x, segment)
            assert label in border if border else label == -1  # -1: left alone


def test_every_edge_of_the_border_is_as_likely():
    # two sites of label 0 with six edges around them, of labels 1 (three edges), 2 (two) and 3 (one)
    flat = np.array([[9, 1, 1, 9], [2, 0, 0, 3], [9, 1, 2, 9]], np.int32)
    deep = np.full((3, 3, 4), 9, np.int32)  # the same and four edges of label 4 along the first axis
    deep[1] = flat
    deep[[0, 2], 1, 1:3] = 4
    for x, edges in ((flat, {1: 3, 2: 2, 3: 1}), (deep, {1: 3, 2: 2, 3: 1, 4: 4})):
        number = next(k for k, segment in enumerate(naive_search.segments(x)) if x[min(segment)] == 0)
        drawn = [kernel_labels_across(x, seed)[number] for seed in range(6000)]
        for label, count in edges.items():
            assert drawn.count(label) / len(drawn) == pytest.approx(count / sum(edges.values()), abs=0.03)


def test_segments_draw_their_neighbours_by_themselves():
    x = np.array([[1, 0, 2, 9, 1, 0, 2]], np.int32)
    drawn = [kernel_labels_across(x, seed)[[1, 5]] for seed in range(3000)]
    both = {pair: sum(tuple(found) == pair for found in drawn) for pair in [(1, 1), (1, 2), (2, 1), (2, 2)]}
    assert sum(both.values()) == 3000 and all(650 < count < 850 for count in both.values()), both


# --- boxes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_filling_touches_exactly_the_boxes_in_turn(shape):
    rng = np.random.default_rng(3)
    whole = in_3d(shape)
    for count in (0, 1, 4):
        x = rng.integers(5, size=whole, dtype=np.int32)
        boxes = [random_box(rng, whole) for _ in range(count)]
        labels = 10 + np.arange(count, dtype=np.int32)
        expected, y = x.copy(), x.copy()
        for box, label in zip(boxes, labels, strict=True):
            expected[box] = label
        regions.fill_boxes(y.reshape(-1), np.array(whole), *corners(boxes), labels)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scrambling_touches_exactly_the_boxes(shape):
    rng = np.random.default_rng(4)
    whole = in_3d(shape)
    boxes = [random_box(rng, whole) for _ in range(2)]
    inside = np.zeros(whole, bool)
    for box in boxes:
        inside[box] = True
    changed = np.zeros(whole, bool)
    for seed in range(20):
        y = np.full(whole, 77, np.int32)
        regions.scramble_boxes(y.reshape(-1), np.array(whole), *corners(boxes), 6, np.uint64(seed))
        assert np.all(y[~inside] == 77) and y[inside].min() >= 0 and y[inside].max() < 6
        changed |= y != 77
    np.testing.assert_array_equal(changed, inside)


def test_scrambled_labels_are_all_as_likely_and_independent():
    y = np.zeros((1, 100, 120), np.int32)
    box = (slice(0, 1), slice(0, 100), slice(0, 120))
    draws = []
    for seed in range(2):
        regions.scramble_boxes(y.reshape(-1), np.array(y.shape), *corners([box]), 6, np.uint64(seed))
        draws.append(y.copy())
        np.testing.assert_allclose(np.bincount(y.reshape(-1), minlength=6) / y.size, 1 / 6, atol=0.02)
    for a, b in ((draws[0], draws[1]), (y[:, 1:], y[:, :-1]), (y[..., 1:], y[..., :-1])):
        assert np.mean(a == b) == pytest.approx(1 / 6, abs=0.02)


def best_boxes(mrf, x, boxes):
    y, shape = x.copy(), np.array(in_3d(mrf.shape))
    missing = (slice(0, 1),) * (3 - len(mrf.shape))
    ends = corners([missing + box for box in boxes])
    model = y.reshape(-1), mrf.backend.flat_unary, mrf.n_labels, mrf.backend.kernel_grid(), mrf.backend.rule(np.float64)
    work = np.full(mrf.n_labels + 8, np.nan), np.full(3 * mrf.n_labels, np.nan)
    regions.best_boxes(
        *model, mrf.backend.forbidden_cost, mrf.backend.has_edge_tables, mrf.backend.has_diagonal, shape, *ends, *work
    )
    return y


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_constant_label_is_that_of_brute_force(kind):
    @settings(max_examples=60)
    @given(
        st.sampled_from([(1, 1), (1, 7), (7, 1), (4, 5), (2, 3, 4), (3, 1, 3)]),
        st.sampled_from([1, 2, 3, 8, 9, 17]),
        st.booleans(),
        st.integers(0, 2**32 - 1),
    )
    def check(shape, labels, integer, seed):
        case = random_case(seed, kind, shape, labels, KINDS[kind], integer)
        rng = np.random.default_rng(seed)
        x = rng.integers(labels, size=shape, dtype=np.int32)
        boxes = [random_box(rng, shape) for _ in range(2)]
        for box, y in zip(boxes, (best_boxes(case.mrf(), x, boxes[:1]), best_boxes(case.mrf(), x, boxes)), strict=True):
            costs = [finite for _, finite in naive_search.constant_costs(case.unary, case.tables, x, box)]
            expected = x.copy()
            chosen = y[box].flat[0]
            expected[box] = chosen
            np.testing.assert_array_equal(y, expected)  # constant in the box, and nothing else has changed
            assert costs[chosen] == pytest.approx(min(costs), rel=1e-9, abs=1e-9)
            if integer:
                assert chosen == costs.index(min(costs))  # the lowest among equals
            x = y  # the second box sees what the first has become

    check()


@pytest.mark.parametrize("kind", ["table", "edge-tables"])
def test_the_best_constant_label_is_not_forbidden_where_one_is_free(kind):
    @settings(max_examples=60)
    @given(st.sampled_from([(1, 6), (4, 4), (2, 3, 3)]), st.integers(0, 2**32 - 1))
    def check(shape, seed):
        case = random_case(seed, kind, shape, 4, KINDS[kind], integer=True, forbidden=True)
        rng = np.random.default_rng(seed)
        x = rng.integers(4, size=shape, dtype=np.int32)
        box = random_box(rng, shape)
        costs = naive_search.constant_costs(case.unary, case.tables, x, box)
        if min(costs)[0] == 0:
            assert best_boxes(case.mrf(), x, [box])[box].flat[0] == costs.index(min(costs))

    check()

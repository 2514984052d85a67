"""The contract of `TreeSet`, over every tree set of every backend."""

import numpy as np
import pytest

import treefield as tf
from contracts.conformity import check_conforms
from contracts.implementations import TREE_SETS, TreeSetCase, example
from treefield.protocols import Sweeps, TreeSet

STARTS = range(12)
every_tree_set = pytest.mark.parametrize("case", TREE_SETS, ids=str)
with_known_order = pytest.mark.parametrize("case", [case for case in TREE_SETS if case.order], ids=str)


def naive_sweep(case, trees, x, reverse):
    y = x.copy()
    for tree in case.order(example(case.model), trees, reverse):
        example(case.model).solve(y, tree)
    return y


@every_tree_set
def test_tree_set_has_the_members_of_the_protocol(case):
    trees = case.build()
    check_conforms(trees, TreeSet)
    assert isinstance(trees, Sweeps) and trees.has_all_cores is True and trees.patience >= 1


@every_tree_set
def test_sweep_changes_labels_in_place_and_returns_the_change_of_energy(case):
    found, trees = example(case.model), case.build()
    for seed in STARTS:
        x, rng = found.random(seed), np.random.default_rng(seed)
        for number in range(3):
            before = found.energy(x)
            change = trees.sweep(x, rng, number % 2 == 0, number == 1)
            after = found.energy(x)
            assert isinstance(change, float) and (x >= 0).all() and (x < found.mrf.backend.label_counts).all()
            assert change == pytest.approx(after - before, rel=1e-12, abs=1e-11) or np.isinf(before)
            assert change <= 0
            assert after <= before + 1e-11


@with_known_order
@pytest.mark.parametrize("reverse", [False, True])
def test_sweep_solves_the_trees_one_after_the_other_in_the_stated_order(case, reverse):
    trees = case.build()
    for seed in STARTS:
        x = example(case.model).random(seed)
        y = x.copy()
        trees.sweep(y, np.random.default_rng(seed), reverse=reverse)
        np.testing.assert_array_equal(y, naive_sweep(case, trees, x, reverse))


@with_known_order
def test_reverse_changes_the_answer_wherever_the_order_of_trees_does(case):
    found, trees, orders_matter, answers_differ = example(case.model), case.build(), False, False
    for seed in range(40):
        x = found.random(seed)
        forward, backward = x.copy(), x.copy()
        trees.sweep(forward, np.random.default_rng(0))
        orders_matter |= not np.array_equal(*(naive_sweep(case, trees, x, reverse) for reverse in (False, True)))
        trees.sweep(backward, np.random.default_rng(0), reverse=True)
        answers_differ |= not np.array_equal(forward, backward)
    assert answers_differ == orders_matter


def test_order_of_trees_matters_on_every_kind_of_model():
    """Otherwise the tests of `reverse` would show nothing."""
    for model in ("grid", "8 neighbours", "periodic along all axes", "26 neighbours", "graph, Potts", "spins"):
        case = next(case for case in TREE_SETS if case.model == model and case.order)
        trees = case.build()
        starts = [example(model).random(seed) for seed in range(40)]
        ends = [[naive_sweep(case, trees, x, reverse).tolist() for x in starts] for reverse in (False, True)]
        assert ends[0] != ends[1], model


@every_tree_set
def test_sweep_is_the_same_for_the_same_seed(case):
    found, ends = example(case.model), []
    for trees in (case.build(), case.build()):
        x, rng = found.random(1), np.random.default_rng(7)
        changes = [trees.sweep(x, rng, reverse=number % 2 == 1) for number in range(4)]
        ends.append((changes, x.tolist()))
    assert ends[0] == ends[1]


@every_tree_set
def test_sweeps_end_in_a_labelling_that_stays(case):
    found, trees = example(case.model), case.build()
    for seed in STARTS:
        x, rng = found.random(seed), np.random.default_rng(seed)
        for _ in range(50):
            if trees.sweep(x, rng) == 0:
                break
        y = x.copy()
        if case.trees == "ribbons" and not case.order:  # borders that are drawn may find more
            while trees.sweep(x) < 0:
                pass
            y = x.copy()
            assert trees.sweep(y) == 0 and trees.sweep(y, reverse=True) == 0
            np.testing.assert_array_equal(x, y)
        elif not str(case.trees).startswith("random"):
            assert trees.sweep(y, rng) == 0 and trees.sweep(y, rng, reverse=True) == 0
            np.testing.assert_array_equal(x, y)
        if case.order:
            for tree in case.order(found, trees, False):
                before = found.energy(y)
                found.solve(y, tree)
                assert found.energy(y) == pytest.approx(before, abs=1e-9)


@every_tree_set
def test_sweep_refuses_labellings_it_cannot_change_in_place(case):
    trees, shape = case.build(), example(case.model).mrf.shape
    good = np.zeros(shape, np.int32)
    frozen = good.copy()
    frozen.flags.writeable = False
    strided = np.zeros((*shape, 2), np.int32)[..., 0]
    for x in (good.astype(np.int64), good.astype(float), strided, good.tolist(), np.zeros(99, np.int32)):
        with pytest.raises(ValueError, match="x must be a C-contiguous int32 array"):
            trees.sweep(x)
    with pytest.raises(ValueError, match="read-only"):
        trees.sweep(frozen)
    with pytest.raises(ValueError, match="label"):
        trees.sweep(np.full(shape, 99, np.int32))


@every_tree_set
def test_sweep_with_one_core_leads_to_the_same_labelling(case):
    found, ends = example(case.model), []
    for has_all_cores in (True, False):
        trees, x = case.build(), found.random(3)
        trees.has_all_cores = has_all_cores
        ends.append((trees.sweep(x, np.random.default_rng(0)), x.tolist()))
    assert ends[0] == ends[1]


def take_no_threads(count):
    if count > 0:
        raise RuntimeError("a thread was started")
    return []


@pytest.mark.parametrize("name", ["alternating", "ribbons"])
def test_sweep_uses_threads_only_while_it_has_all_cores(name):
    mrf = tf.GridMRF(np.random.default_rng(0).random((160, 160, 8), np.float32), tf.Potts(0.5))
    trees, x = mrf.backend.tree_set(name, threads=2), np.zeros((160, 160), np.int32)
    trees._workers._take = take_no_threads
    trees.has_all_cores = False
    trees.sweep(x)
    trees.has_all_cores = True
    with pytest.raises(RuntimeError, match="a thread was started"):
        trees.sweep(x)


# --- check ------------------------------------------------------------------------------------------------------------


def rounded_model(seed):
    """Costs so large that float32 messages lose what float64 energies see."""
    unary = 2.0**23 + np.random.default_rng(seed).uniform(0, 6, (6, 40, 3))
    return tf.GridMRF(unary.astype(np.float32), tf.Potts(0.4))


@pytest.mark.parametrize("options", [{}, {"memory": "low"}], ids=str)
@pytest.mark.parametrize("name", ["rows-columns", "alternating", "bands", "combs"])
def test_only_check_keeps_rounded_messages_from_raising_the_energy(name, options):
    if name == "combs" and options:
        return
    checked, unchecked = [], []
    for seed in range(20):
        mrf = rounded_model(seed)
        assert mrf.backend.dtype == np.float32
        x = tf.t_icm(mrf, rng=seed).x
        for changes, check in ((checked, True), (unchecked, False)):
            y = x.copy()
            for _ in range(3):
                changes.append(mrf.backend.tree_set(name, **options).sweep(y, check=check))
    assert max(checked) <= 0 < max(unchecked)


@pytest.mark.parametrize("model", ["graph, Potts", "graph, tables", "spins", "26 neighbours"])
@pytest.mark.parametrize("name", ["trees", "random-trees", "forests", "random-forests", "whole", "own lists"])
def test_sweep_of_a_graph_hands_check_and_reverse_to_the_kernel(model, name, monkeypatch):
    from treefield.kernels.graph import site_costs

    if name == "whole":
        model = {"spins": "spins, tree"}.get(model, "graph, tree")
    trees = TreeSetCase(model, [[0, 1], [3]] if name == "own lists" else name, None).build()
    solve, seen = site_costs.solve_trees, []

    def spy(*arguments):
        seen.append(arguments[-2:])
        return solve(*arguments)

    monkeypatch.setattr(site_costs, "solve_trees", spy)
    for check in (True, False):
        for reverse in (True, False):
            seen.clear()
            trees.sweep(example(model).random(0), np.random.default_rng(0), check, reverse)
            assert seen and set(seen) == {(check, reverse)}

"""The contracts of `Jump`, `Accept`, `Decides`, `Learns`, `CountsWork` and `HasState`, over every move."""

import json

import numpy as np
import pytest

from contracts.conformity import check_conforms, parameters
from contracts.implementations import ACCEPTS, GRAPHS, GRIDS, JUMPS, MODELS, RULES, example
from treefield import moves
from treefield.protocols import Accept, CountsWork, Decides, HasState, Jump, Learns

JUMPS_ON_MODELS = [pytest.param(case.create, name, id=f"{case}, {name}") for case in JUMPS for name in case.models]
every_jump = pytest.mark.parametrize(("create", "name"), JUMPS_ON_MODELS)
every_accept = pytest.mark.parametrize("create", ACCEPTS, ids=[repr(create()) for create in ACCEPTS])
every_model = pytest.mark.parametrize("name", MODELS)


def test_every_exported_move_is_in_a_table_of_the_suite():
    covered = {type(case.create()).__name__ for case in JUMPS} | {type(create()).__name__ for create in ACCEPTS}
    assert covered == set(moves.__all__)


@pytest.mark.parametrize("create", [case.create for case in JUMPS], ids=map(str, JUMPS))
def test_jump_has_the_declared_parameters(create):
    jump = create()
    check_conforms(jump, Jump)
    for protocol in (Learns, CountsWork, HasState):
        if isinstance(jump, protocol):
            check_conforms(jump, protocol)


@every_accept
def test_acceptance_has_the_declared_parameters(create):
    accept = create()
    check_conforms(accept, Accept)
    for protocol in (Decides, HasState):
        if isinstance(accept, protocol):
            check_conforms(accept, protocol)


@every_jump
def test_jump_returns_a_changed_copy_of_legal_labels(create, name):
    found, changed = example(name), False
    jump = create()
    for seed in range(25):
        x = found.random(seed)
        before, rng = x.copy(), np.random.default_rng(seed)
        y = jump(x, found.mrf, rng)
        np.testing.assert_array_equal(x, before)
        assert y.dtype == np.int32 and y.shape == x.shape and y.flags.c_contiguous and not np.may_share_memory(x, y)
        assert (y >= 0).all() and (y < found.mrf.backend.label_counts).all()
        changed |= not np.array_equal(x, y)
        if isinstance(jump, CountsWork):
            assert 0 <= jump.work(found.mrf) < np.inf
    assert changed


@every_jump
def test_jump_follows_the_seed_and_its_state(create, name):
    found = example(name)
    first, rng = create(), np.random.default_rng(0)
    x = found.random(0)
    for number in range(12):
        first(x, found.mrf, rng)
        if isinstance(first, Learns):
            first.learn(float(number % 3), 10.0)
    second = create()
    if isinstance(first, HasState):
        state = json.loads(json.dumps(first.get_state()))
        second.set_state(state)
        assert json.loads(json.dumps(second.get_state())) == state
    for seed in range(8):
        ends = [jump(x, found.mrf, np.random.default_rng(seed)) for jump in (first, second)]
        np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("create", [case.create for case in JUMPS], ids=map(str, JUMPS))
def test_jump_is_for_the_models_its_table_says(create):
    case = next(case for case in JUMPS if case.create is create)
    for name in {GRIDS[0], GRAPHS[0]} - set(case.models):
        with pytest.raises(TypeError, match="is for g"):
            create()(example(name).random(0), example(name).mrf, np.random.default_rng(0))


@every_accept
@every_model
def test_acceptance_changes_x_in_place_and_returns_the_change_of_energy(create, name):
    found, outcomes = example(name), set()
    accept, rng = create(), np.random.default_rng(0)
    for seed in range(25):
        x, y = found.random(seed), found.random(seed + 1 + seed % 3)
        before, target = x.copy(), y.copy()
        change = accept(found.mrf, x, y, rng)
        np.testing.assert_array_equal(y, target)
        assert ((x == before) | (x == target)).all()
        outcomes.add(change is None)
        if change is None:
            np.testing.assert_array_equal(x, before)
        elif np.isfinite(found.energy(before)) and np.isfinite(found.energy(x)):
            assert change == pytest.approx(found.energy(x) - found.energy(before), abs=1e-9)
    assert False in outcomes


@every_accept
def test_acceptance_follows_the_seed_and_its_state(create):
    found, first = example("grid"), create()
    rng = np.random.default_rng(0)
    for seed in range(10):
        first(found.mrf, found.random(seed), found.random(seed + 50), rng)
    second = create()
    if isinstance(first, HasState):
        state = json.loads(json.dumps(first.get_state()))
        second.set_state(state)
        assert json.loads(json.dumps(second.get_state())) == state
    for seed in range(20):
        ends = []
        for accept in (first, second):
            x = found.random(seed)
            ends.append((accept(found.mrf, x, found.random(seed + 70), np.random.default_rng(seed)), x.tolist()))
        assert ends[0] == ends[1]


STATEFUL = [c for c in (*(case.create for case in JUMPS), *ACCEPTS) if isinstance(c(), HasState)]


@pytest.mark.parametrize("create", STATEFUL, ids=lambda create: repr(create()))
@pytest.mark.parametrize("state", [3, {"unknown": 1}, [1]], ids=str)
def test_move_refuses_a_state_that_is_not_its_own(create, state):
    with pytest.raises((TypeError, ValueError)):
        create().set_state(state)


@pytest.mark.parametrize("create", RULES, ids=[repr(create()) for create in RULES])
def test_rule_decides_on_each_change_and_takes_what_lowers_the_energy(create):
    rule, rng = create(), np.random.default_rng(0)
    assert parameters(type(rule).decide) == parameters(Decides.decide)
    finite, forbidden = np.array([-1.0, 0.0, 5.0, -5.0, 1e9]), np.array([0, 0, -1, 0, 0])
    taken = rule.decide(finite, forbidden, rng)
    assert taken.dtype == bool and taken.shape == finite.shape and taken[:4].all()
    assert rule.decide(finite[:0], forbidden[:0], rng).shape == (0,)
    if isinstance(rule, moves.Greedy):
        assert not rule.decide(np.array([1.0, -9.0]), np.array([0, 1]), rng).any()

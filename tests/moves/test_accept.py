"""The changes that each acceptance takes, and the change of energy that it returns."""

import json
import math
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_search
import treefield as tf
from strategies import grid_models, random_case
from treefield.moves import Always, Greedy, Metropolis, PerComponent, Unvisited

INF = math.inf


def chain(*costs, weight=0.0):
    """A row of sites with the given costs."""
    return tf.GridMRF(np.array([costs], np.float32), tf.Potts(weight))


def accepted(accept, mrf, x, y, rng):
    """The labelling that the search goes on from, and the answer; `y` must not be needed afterwards."""
    x = np.array(x, np.int32)
    change = accept(mrf, x, np.array(y, np.int32), rng)
    return x, change


def frequency(accept, rise, count=4000):
    """How often a whole change of energy `rise` is taken."""
    mrf, rng = chain((0, rise, 9)), np.random.default_rng(0)
    return sum(accepted(accept, mrf, [[0]], [[1]], rng)[1] is not None for _ in range(count)) / count


# --- whole labellings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.3, 1, 2])
@pytest.mark.parametrize("rise", [0.25, 1, 3])
def test_metropolis_takes_a_rise_with_the_probability_of_the_formula(beta, rise):
    assert frequency(Metropolis(beta), rise) == pytest.approx(math.exp(-beta * rise), abs=0.025)


@pytest.mark.parametrize("beta", [0, 0.3, 50, INF, None])
def test_metropolis_always_accepts_a_change_that_does_not_raise_the_energy(beta):
    assert frequency(Metropolis(beta), -1, 50) == frequency(Metropolis(beta), 0, 50) == 1


def test_metropolis_with_infinite_beta_is_greedy_and_with_beta_0_accepts_all():
    for rise in (1e-6, 1, 8):
        assert frequency(Metropolis(INF), rise, 50) == frequency(Greedy(), rise, 50) == 0
        assert frequency(Metropolis(0), rise, 50) == frequency(Always(), rise, 50) == 1
    assert frequency(Greedy(), 0, 10) == frequency(Greedy(), -1, 10) == 1


@pytest.mark.parametrize("accept", [Greedy(), Metropolis(2), Metropolis(INF), Metropolis()], ids=repr)
def test_a_forbidden_cost_outweighs_any_finite_one(accept):
    mrf, rng = chain((100, INF, 0), (0, INF, 1)), np.random.default_rng(0)
    for _ in range(20):
        x, change = accepted(accept, mrf, [[0, 0]], [[1, 0]], rng)
        assert change is None and x.tolist() == [[0, 0]]  # into what is forbidden
        x, change = accepted(accept, mrf, [[1, 0]], [[0, 0]], rng)
        assert change is not None and x.tolist() == [[0, 0]]  # out of it
    # with as many forbidden costs as before, the finite ones decide
    assert accepted(accept, mrf, [[0, 1]], [[2, 1]], rng)[1] == -100


@pytest.mark.parametrize("accept", [Always(), Metropolis(0)], ids=repr)
def test_acceptances_of_everything_accept_forbidden_costs(accept):
    mrf = chain((0, INF, 0))
    x, change = accepted(accept, mrf, [[0]], [[1]], np.random.default_rng(0))
    assert x.tolist() == [[1]] and change is not None


def scripted(taken):
    """A model whose changes are surely taken, or surely not (a forbidden cost)."""
    finite, forbidden = np.array([-1.0 if taken else 0.0]), np.array([0 if taken else 1])
    backend = SimpleNamespace(components=lambda x, y: (np.zeros(1, np.int32), finite, forbidden))
    return SimpleNamespace(backend=backend)


@settings(max_examples=100)
@given(st.lists(st.booleans(), max_size=200))
def test_metropolis_adapts_beta_by_the_papers_rule(script):
    accept, rng = Metropolis(), np.random.default_rng(0)
    beta = 1.0
    assert accept.beta == beta
    for tried, taken in enumerate(script, 1):
        change = accept(scripted(taken), np.zeros(1, np.int32), np.ones(1, np.int32), rng)
        assert (change is not None) == taken
        beta = naive_search.adapted(beta, sum(script[:tried]), tried, taken)
        assert accept.beta == beta


def test_metropolis_keeps_a_fixed_beta():
    accept, rng = Metropolis(0.7), np.random.default_rng(0)
    for taken in 30 * [True] + 60 * [False]:
        accept(scripted(taken), np.zeros(1, np.int32), np.ones(1, np.int32), rng)
    assert accept.beta == 0.7


def test_an_adapted_beta_makes_about_half_of_the_jumps_count():
    accept, rng = Metropolis(), np.random.default_rng(0)
    models = 60 * [chain((0, rise, 9)) for rise in rng.exponential(50, size=50)]
    taken = [accepted(accept, mrf, [[0]], [[1]], rng)[1] is not None for mrf in models]
    assert 0.4 < np.mean(taken[1000:]) < 0.6 and accept.beta < 0.1


@pytest.mark.parametrize("taken", [True, False])
def test_beta_neither_overflows_nor_vanishes_in_a_long_run(taken):
    accept, rng = Metropolis(), np.random.default_rng(0)
    for _ in range(5000):
        accept(scripted(taken), np.zeros(1, np.int32), np.ones(1, np.int32), rng)
    # from 0 and infinity, and from the least numbers that a float holds, no factor leads back
    assert 1e-305 < accept.beta < 1e305


def test_the_adapted_beta_survives_json():
    accept, again = Metropolis(), Metropolis()
    assert frequency(accept, 2, 100) > 0
    again.set_state(json.loads(json.dumps(accept.get_state())))
    rngs = [np.random.default_rng(1) for _ in range(2)]
    mrf = chain((0, 2, 9))
    for _ in range(100):
        answers = [accepted(a, mrf, [[0]], [[1]], rng)[1] for a, rng in zip((accept, again), rngs, strict=True)]
        assert answers[0] == answers[1] and accept.beta == again.beta != 1


# --- component by component -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("forbidden", [False, True])
def test_greedy_per_component_is_merge(forbidden):
    @settings(max_examples=80)
    @given(grid_models(max_sites=20, kinds=["potts"], dtypes=["float32"], forbidden=forbidden), st.integers(0, 10**6))
    def check(case, seed):
        mrf, rng = case.mrf(), np.random.default_rng(seed)
        x, y = rng.integers(mrf.n_labels, size=(2, *mrf.shape), dtype=np.int32)
        expected = tf.merge(mrf, x, y)
        for accept in (PerComponent(), PerComponent(Greedy()), PerComponent(Metropolis(INF))):
            np.testing.assert_array_equal(accepted(accept, mrf, x, y, rng)[0], expected)

    check()


@pytest.mark.parametrize(
    "accept",
    [
        Greedy(),
        Always(),
        Metropolis(),
        Metropolis(0.3),
        PerComponent(),
        PerComponent(Always()),
        PerComponent(Metropolis(0.3)),
        PerComponent(Metropolis()),
        Unvisited(Metropolis(0.3)),
        Unvisited(PerComponent(Metropolis(0.3))),
    ],
    ids=repr,
)
def test_an_acceptance_returns_the_change_of_energy_or_none_where_x_stays(accept):
    answers = {True: 0, False: 0}

    @settings(max_examples=80)
    @given(grid_models(max_sites=30, max_labels=4, kinds=["potts"], dtypes=["float32"]), st.integers(0, 10**6))
    def check(case, seed):
        mrf, rng = case.mrf(), np.random.default_rng(seed)
        x = rng.integers(mrf.n_labels, size=mrf.shape, dtype=np.int32)
        y = np.where(rng.random(mrf.shape) < 0.4, rng.integers(mrf.n_labels, size=mrf.shape), x).astype(np.int32)
        y.flat[0] = (x.flat[0] + 1) % mrf.n_labels
        if np.array_equal(x, y):  # one label
            return
        z, change = accepted(accept, mrf, x, y, rng)
        answers[change is None] += 1
        assert (change is None) == np.array_equal(z, x)
        if change is not None:
            assert change == pytest.approx(mrf.energy(z) - mrf.energy(x), rel=1e-6, abs=1e-6)
        for component in naive_search.components(x, y):  # each whole or not at all
            sites = tuple(np.transpose(list(component)))
            assert np.array_equal(z[sites], x[sites]) or np.array_equal(z[sites], y[sites])

    check()
    assert answers[False] > 10
    assert answers[True] > 3 or isinstance(getattr(accept, "rule", accept), Always)


@pytest.mark.parametrize("beta", [0.4, 1.5])
def test_metropolis_decides_on_every_component_by_itself(beta):
    # many pairs of sites that do not touch; the changes of a pair cost 1 together
    mrf = tf.GridMRF(np.tile(np.float32([0, 0.5, 9]), (100, 120, 1)), tf.Potts(0))
    x, y = np.zeros((2, 100, 120), np.int32)
    y[::2, 1::4] = y[::2, 2::4] = 1
    pairs = y.sum() // 2
    z, change = accepted(PerComponent(Metropolis(beta)), mrf, x, y, np.random.default_rng(0))
    np.testing.assert_array_equal(z[::2, 1::4], z[::2, 2::4])  # a pair changes together
    assert z.sum() // 2 / pairs == pytest.approx(math.exp(-beta), abs=0.04)
    assert change == pytest.approx(z.sum() / 2) == mrf.energy(z)


def test_per_component_greedy_never_raises_the_energy():
    case = random_case(0, "potts", (30, 40), 4, "float32", integer=False)
    mrf, rng = case.mrf(), np.random.default_rng(0)
    x = rng.integers(4, size=mrf.shape, dtype=np.int32)
    energies = [mrf.energy(x)]
    for _ in range(20):
        PerComponent()(mrf, x, tf.moves.UniformJump(0.2)(x, mrf, rng), rng)
        energies.append(mrf.energy(x))
    assert np.all(np.diff(energies) <= 0) and energies[-1] < energies[0]


# --- never back -----------------------------------------------------------------------------------------------------


def walk(accept, mrf, steps, jump, seed=0):
    """The labellings before and after every step, the proposal, and the answer."""
    rng = np.random.default_rng(seed)
    x = rng.integers(mrf.n_labels, size=mrf.shape, dtype=np.int32)
    for _ in range(steps):
        before, y = x.copy(), jump(x, rng)
        change = accept(mrf, x, y.copy(), rng)
        yield before, y, x.copy(), change


def anywhere(x, rng):
    return rng.integers(3, size=x.shape, dtype=np.int32)


def one_site(x, rng):
    y = x.copy()
    y.flat[rng.integers(x.size)] = rng.integers(3)
    return y


def test_unvisited_never_returns_to_a_labelling_it_has_left():
    mrf, left, none = chain((0, 0, 0), (0, 0, 0)), set(), 0
    for before, y, after, change in walk(Unvisited(Always()), mrf, 200, anywhere):
        if change is None:
            assert y.tobytes() in left  # nothing else is refused
            none += 1
        else:
            np.testing.assert_array_equal(after, y)
        if not np.array_equal(before, after):
            left.add(before.tobytes())
        assert after.tobytes() not in left
    assert len(left) == 3**2 - 1 and none > 50  # all nine labellings have been seen, and the walk ends in the last


@pytest.mark.parametrize("length", [1, 3, 20])
def test_unvisited_forgets_the_oldest_labelling_first(length):
    mrf, left, again = chain(*(3 * [(0, 0, 0)])), OrderedDict(), 0
    accept, ever = Unvisited(Always(), length=length), set()
    for before, y, after, change in walk(accept, mrf, 400, one_site):
        assert (change is None) == (y.tobytes() in left)
        if not np.array_equal(before, after):
            again += after.tobytes() in ever
            ever.add(before.tobytes())
            left[before.tobytes()] = None
            left.move_to_end(before.tobytes())
            if len(left) > length:
                left.popitem(last=False)
        assert len(accept.get_state()["places"]) == len(left) <= length
    assert again > 0 or length == 20


def pieces(x, y):
    """The labels that y holds on each component of the sites where x and y differ."""
    return [frozenset((i, int(y[i])) for i in component) for component in naive_search.components(x, y)]


@pytest.mark.parametrize("rule", [Always(), Metropolis(0.5)], ids=repr)
def test_unvisited_never_gives_a_component_labels_it_held_before(rule):
    case = random_case(3, "potts", (3, 4), 3, "float32", integer=False)
    left, refused, taken = set(), 0, 0
    for before, y, after, change in walk(Unvisited(PerComponent(rule)), case.mrf(), 400, one_site_or_two):
        held = pieces(y, before)
        for reached in pieces(before, y):
            changed = all(after[i] == label for i, label in reached)
            if reached in left:
                refused += 1
                assert not changed
            elif isinstance(rule, Always):
                assert changed
        left |= {was for was in held if all(after[i] != label for i, label in was)}
        assert (change is None) == np.array_equal(before, after)
        taken += change is not None
    assert refused > 50 and taken > 10


def one_site_or_two(x, rng):
    y = one_site(x, rng)
    return one_site(y, rng) if rng.random() < 0.5 else y


def test_unvisited_leaves_the_rest_to_its_acceptance():
    assert frequency(Unvisited(Greedy()), 1, 20) == 0
    mrf = chain((0, 1, 9))
    assert accepted(Unvisited(Greedy()), mrf, [[1]], [[0]], np.random.default_rng(0))[1] == -1


@pytest.mark.parametrize("inner", [Metropolis, lambda: PerComponent(Metropolis())], ids=["whole", "pieces"])
def test_the_memory_of_unvisited_survives_json(inner):
    case = random_case(3, "potts", (3, 4), 3, "float32", integer=False)
    accept, again = Unvisited(inner()), Unvisited(inner())
    *_, (_, _, x, _) = walk(accept, case.mrf(), 60, one_site)
    again.set_state(json.loads(json.dumps(accept.get_state())))
    assert len(accept.get_state()["places"]) > 5
    runs = []
    for a in (accept, again):
        z, rng, answers = x.copy(), np.random.default_rng(1), []
        for _ in range(60):
            answers.append(a(case.mrf(), z, one_site(z, rng), rng))
        runs.append((answers, z.tolist(), a.get_state()))
    assert runs[0] == runs[1] and None in runs[0][0]

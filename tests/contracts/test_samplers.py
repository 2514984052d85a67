"""The contracts of `Cools` and `Sampler`, over every kind of model."""

import numpy as np
import pytest

import naive_graph
import treefield as tf
from contracts.conformity import check_conforms
from contracts.implementations import GRIDS, MODELS, example
from treefield.protocols import Cools, Sampler

every_model = pytest.mark.parametrize("name", MODELS)
SEEDS = range(6)


def check_change(found, change, before, after):
    """The returned change is that of the energy, where both are finite."""
    if np.isfinite(before):
        assert change == pytest.approx(after - before, abs=1e-9)


@every_model
def test_sampler_has_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf.backend.sampler(), Sampler)


@every_model
def test_tree_sampler_has_the_members_of_the_protocol_where_there_is_one(name):
    sampler = example(name).mrf.backend.tree_sampler()
    if sampler is not None:
        check_conforms(sampler, Cools)
    assert name in GRIDS or sampler is not None


@every_model
def test_sampling_at_temperature_0_ends_where_no_site_can_improve(name):
    found = example(name)
    sampler = found.mrf.backend.sampler()
    for seed in SEEDS:
        x, rng = found.random(seed), np.random.default_rng(seed)
        for _ in range(50):
            before = found.energy(x)
            change = sampler.sample(x, 0.0, rng)
            check_change(found, change, before, found.energy(x))
            assert change <= 1e-12
            if change == 0:
                break
        flat = x.reshape(-1).tolist()
        own = naive_graph.rank(found.model, flat)
        for i in range(len(flat)):
            forbidden, finite = min(naive_graph.label_ranks(found.model, flat, i))
            assert forbidden == own[0] and finite >= own[1] - 1e-9


@every_model
def test_sampling_at_infinite_temperature_draws_every_label_that_is_not_forbidden(name):
    found = example(name)
    sampler, rng = found.mrf.backend.sampler(), np.random.default_rng(0)
    x, seen = found.mrf.backend.best_labels(), [set() for _ in found.model.unaries]
    has_forbidden = "forbidden" in name
    for _ in range(150):
        before = found.energy(x)
        change = sampler.sample(x, np.inf, rng)
        check_change(found, change, before, found.energy(x))
        for site, label in enumerate(x.reshape(-1).tolist()):
            seen[site].add(label)
    exists = np.ones(found.mrf.shape, bool) if found.mrf.backend.mask is None else found.mrf.backend.mask
    for costs, labels, there in zip(found.model.unaries, seen, exists.reshape(-1), strict=True):
        possible = {label for label, cost in enumerate(costs) if np.isfinite(cost)}
        assert labels <= possible if has_forbidden else (not there or labels == possible)


@every_model
def test_cooling_returns_the_change_of_energy_and_follows_the_seed(name):
    found = example(name)
    for sampler in (found.mrf.backend.sampler(), found.mrf.backend.tree_sampler()):
        if sampler is None:
            continue
        for seed in SEEDS:
            ends = []
            for _ in range(2):
                x = found.mrf.backend.best_labels()
                before = found.energy(x)
                change = sampler.cool(x, np.geomspace(3, 0.1, 5), np.random.default_rng(seed))
                check_change(found, change, before, found.energy(x))
                assert (x >= 0).all() and (x < found.mrf.backend.label_counts).all()
                ends.append((change, x.tolist()))
            assert ends[0][1] == ends[1][1] and ends[0][0] == pytest.approx(ends[1][0], abs=1e-9)


@every_model
def test_slow_cooling_finds_the_minimum(name):
    found = example(name)
    for sampler in (found.mrf.backend.sampler(), found.mrf.backend.tree_sampler()):
        if sampler is None:
            continue
        energies = []
        for seed in range(10):
            x = found.mrf.backend.best_labels()
            sampler.cool(x, np.geomspace(5, 0.01, 300), np.random.default_rng(seed))
            energies.append(found.energy(x))
        assert min(energies) == pytest.approx(found.minimum, abs=1e-9)


FREE = {
    "grid": lambda: tf.GridMRF(np.zeros((3, 4, 3)), tf.Potts(0)),
    "graph": lambda: tf.GraphMRF(np.zeros((6, 3)), [(0, 1)], tf.Potts(0)),
    "spins": lambda: tf.GraphMRF(np.zeros((6, 2)), [(0, 1)], tf.Potts(0)),
}


@pytest.mark.parametrize("name", FREE)
def test_sampling_at_temperature_0_takes_the_lowest_of_equal_labels(name):
    backend = FREE[name]().backend
    x = backend.random_labels(np.random.default_rng(0))
    assert x.any() and backend.sampler().sample(x, 0.0, np.random.default_rng(0)) == 0
    assert not x.any()


@every_model
def test_sampler_refuses_a_negative_temperature(name):
    x = example(name).random(0)
    with pytest.raises(ValueError, match="temperature must be at least 0"):
        example(name).mrf.backend.sampler().sample(x, -1.0, np.random.default_rng(0))

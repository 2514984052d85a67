"""Figures 1 to 3: what is drawn is what the package does."""

import itertools

import numpy as np
import pytest

import naive
import treefield as tf
from tiny import TINY, tiny_runner
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.experiments import basin_hopping, trees, two_pass_bp
from treefield_reproduce.experiments.conditional_trees import edges, tree_sets
from treefield_reproduce.problems import ising_field

SHAPES = [(9, 9), (7, 9), (4, 5), (20, 35)]


@pytest.fixture(scope="module")
def drawn():
    return trees.experiment(tiny_runner())


@pytest.fixture(scope="module")
def hopping():
    """A field, a run of T-ILS on it, and the way it took."""
    mrf = ising_field(16, 1.0, 3)
    hops, res = basin_hopping.record_hops(Experiment("trees", tiny_runner()), mrf, 3, 12)
    return mrf, hops, res, basin_hopping.build_path(mrf, hops, 3)


def count_components(size, pairs, sites):
    """The number of connected parts of these sites, and whether the edges between them close a cycle."""
    above, cycle = list(range(size)), False

    def root(i):
        while above[i] != i:
            i = above[i]
        return i

    for a, b in pairs:
        cycle |= root(a) == root(b)
        above[root(a)] = root(b)
    return len({root(i) for i in sites}), cycle


def inner(shape, sites):
    """The edges of a grid that have both ends among these sites."""
    return [(int(a), int(b)) for a, b in edges(shape) if a in sites and b in sites]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_tree_is_an_induced_forest_and_every_set_covers_the_grid(shape):
    for name, members in tree_sets(shape).items():
        assert set(np.concatenate([tree.sites for tree in members])) == set(range(np.prod(shape))), name
        for tree in members:
            sites = [tuple(map(int, np.unravel_index(i, shape))) for i in tree.sites]
            assert len(set(sites)) == len(sites)
            assert naive.is_induced_forest(shape, sites), (name, tree.title)


@pytest.mark.parametrize("shape", SHAPES)
def test_dummy_edges_join_every_second_line_to_one_tree(shape):
    members = tree_sets(shape)["alternating"]
    assert len(members) == 4
    for tree in members:
        sites = set(tree.sites.tolist())
        lines, cycle = count_components(np.prod(shape), inner(shape, sites), sites)
        assert lines == len(tree.dummies) + 1 and not cycle
        assert count_components(np.prod(shape), inner(shape, sites) + tree.dummies, sites) == (1, False)


@pytest.mark.parametrize("name", ["combs", "alternating", "rows-columns", "bands"])
def test_the_trees_drawn_are_those_that_t_icm_solves(name):
    mrf = ising_field(9, 1.0, 1)
    drawn = [tree.sites for tree in tree_sets((9, 9))[name]]
    for seed in range(5):
        x = np.random.default_rng(seed).integers(2, size=(9, 9), dtype=np.int32)
        swept = [tf.t_icm(mrf, x, trees=set_, maxiter=1).x for set_ in (drawn, name)]
        assert np.array_equal(*swept)


def test_a_step_of_bands_takes_one_line_of_each():
    for tree in tree_sets((9, 9))["bands"]:
        lines = np.unique(np.unravel_index(tree.sites, (9, 9))[1 - tree.axis])
        assert np.searchsorted(tree.cuts, lines, side="right").tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_two_passes_on_random_costs_find_what_the_exact_solver_finds(seed):
    rng = np.random.default_rng(seed)
    unary, weights = rng.random((7, 3), np.float32), rng.normal(size=7).astype(np.float32)
    passes = two_pass_bp.two_passes(
        unary.astype(float), two_pass_bp.PARENTS, weights[:, None, None] * two_pass_bp.differences(3)
    )
    exact = tf.tree_bp(two_pass_bp.in_grid(unary, weights))
    assert np.array_equal(passes.labels, exact.x.flat[list(two_pass_bp.PLACES)])
    assert np.allclose(passes.sums.min(axis=1), exact.fun), "the least sum of each site is the least energy"


def test_the_numbers_of_figure_1_are_exact_and_leave_no_tie():
    _, passes = two_pass_bp.draw_passes()
    exact = tf.tree_bp(two_pass_bp.in_grid(two_pass_bp.UNARY, np.full(7, two_pass_bp.WEIGHT)))
    assert np.array_equal(passes.labels, exact.x.flat[list(two_pass_bp.PLACES)])
    least, second = np.sort(passes.sums, axis=1)[:, :2].T
    assert np.all(least == exact.fun) and np.all(second > least)
    assert set(passes.labels) == {0, 1, 2}, "every label is shown"


def test_recording_does_not_change_the_run(hopping):
    mrf, hops, res, _ = hopping
    plain = tf.t_ils(mrf, "random", maxiter=12, rng=3)
    assert len(hops) == 12 and np.array_equal(res.x, plain.x)
    assert np.array_equal(res.trace["energy"], plain.trace["energy"])
    assert res.nit > sum(hop.accepted for hop in hops) > 0, "some jumps are accepted, some not"


def test_each_hop_begins_where_the_one_before_left_the_run(hopping):
    mrf, hops, res, _ = hopping
    for before, after in itertools.pairwise(hops):
        assert np.array_equal(after.left, before.improved if before.accepted else before.left)
    assert [mrf.energy(hop.left) for hop in hops] == pytest.approx(res.trace["energy"][1:-1])


def test_the_result_of_a_hop_is_one_sweep_after_its_jump(hopping):
    mrf, hops, _, _ = hopping
    lines = mrf.backend.tree_set("rows-columns")
    for number, hop in enumerate(hops):
        x = hop.jumped.copy()
        lines.sweep(x, reverse=number % 2 == 1)
        assert np.array_equal(x, hop.improved)
        assert hop.accepted or mrf.energy(hop.improved) > mrf.energy(hop.left), "only what raises the energy is refused"


def test_the_path_goes_through_the_labellings_of_the_run_with_their_energies(hopping):
    mrf, hops, _, path = hopping
    ends = [x for hop in hops for x in ([hop.jumped, hop.improved] + ([] if hop.accepted else [hop.left]))]
    assert np.array_equal(path.labellings[0], hops[0].left)
    assert len(ends) == len(path.legs)
    for x, (_, first, last) in zip(ends, path.legs, strict=True):
        assert np.array_equal(path.labellings[last], x)
        assert path.energies[last] == mrf.energy(x)
        away = np.count_nonzero(path.labellings[first] != x)
        assert path.changed[last] - path.changed[first] == away


def test_the_path_goes_in_short_steps(hopping):
    _, _, _, path = hopping
    steps = [np.count_nonzero(a != b) for a, b in itertools.pairwise(path.labellings)]
    assert steps == np.diff(path.changed).tolist()
    assert max(steps) <= max(1, path.changed[-1] // basin_hopping.POINTS)


@pytest.mark.parametrize("search", basin_hopping.SEARCHES)
def test_a_surrogate_is_never_above_the_landscape_and_is_stuck(hopping, search):
    mrf, _, _, path = hopping
    energies = basin_hopping.surrogate_energies(tiny_runner(), mrf, path, search)
    assert np.all(energies <= path.energies + 1e-6)
    assert np.any(energies < path.energies - 1)
    ends = (
        tf.icm(mrf, path.labellings[-1])
        if search == "ICM"
        else tf.t_icm(mrf, path.labellings[-1], trees="rows-columns")
    )
    assert energies[-1] == pytest.approx(ends.fun)


def test_unevenness_and_constancy_of_a_path_made_by_hand():
    legs = [("jump", 0, 2), ("search", 2, 4)]
    path = basin_hopping.Path([], np.arange(5), np.zeros(5), legs)
    energies = np.array([0.0, 3.0, 3.0, -1.0, -2.0])
    assert basin_hopping.unevenness(path, energies) == 2.0
    assert (
        basin_hopping.unevenness(path, energies, "jump") == 1.5
        and basin_hopping.unevenness(path, energies, "search") == 2.5
    )
    assert basin_hopping.constancy(energies) == 0.25


def test_the_experiment_has_three_parts_with_their_files(drawn):
    assert len(drawn.sections) == 3 and len(drawn.comparisons) == 2
    stems = {"two-passes", "conditional-trees", "basin-hopping", "run"}
    assert {f"{stem}.{end}" for stem in stems for end in ("svg", "png")} < set(drawn.files)
    rows = drawn.files["traces.csv"].decode().splitlines()
    assert len(rows) == 1 + TINY.seeds * (TINY.iterations + 2), "a start, a first minimum, then iterations"


def test_landscape_claims_fail_where_t_icm_is_no_better():
    experiment = Experiment("trees", tiny_runner())
    better, worse = trees._Landscape(-2.0, 0.1, 0.1, 0.9), trees._Landscape(-1.0, 0.5, 0.5, 0.1)
    trees._compare(experiment, [worse, worse], [better, better])
    trees._compare(experiment, [worse, better], [better, better])
    assert [comparison.worse for comparison in experiment.comparisons] == [False, False, True, True]

"""Propositions 1 and 2 of the paper and the promises of every solver, against brute force on small models of every
kind."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import treefield as tf
from strategies import ALL_KINDS, grid_models

SOME_KINDS = ("potts", "quadratic", "table", "edge-tables")  # where compiling all would take long
TREES = ("bands", "rows-columns", "alternating", "combs")


def close(a, b):
    return a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-4)


def random_x(case, seed):
    return np.random.default_rng(seed).integers(case.unary.shape[-1], size=case.unary.shape[:-1])


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("forbidden", [False, True])
def test_the_energy_of_a_grid_equals_the_naive_one(kind, forbidden):
    @settings(max_examples=60)
    @given(grid_models(kinds=[kind], forbidden=forbidden), st.integers(0, 99))
    def check(case, seed):
        x = random_x(case, seed)
        expected = naive.energy(case.unary, case.tables, x)
        assert case.mrf().energy(x) == (expected if case.integer else pytest.approx(expected, rel=1e-12, abs=1e-12))

    check()


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("forbidden", [False, True])
def test_tree_bp_is_exact_on_chains(kind, forbidden):
    @settings(max_examples=60)
    @given(
        grid_models(kinds=[kind], forbidden=forbidden).filter(
            lambda case: sum(n > 1 for n in case.unary.shape[:-1]) < 2
        )
    )
    def check(case):
        best, _ = naive.brute_force(case.unary, case.tables)
        res = tf.tree_bp(case.mrf())
        assert res.fun == best if case.integer else close(res.fun, best)
        assert res.fun == case.mrf().energy(res.x) and res.lower_bound <= res.fun
        assert res.fun - res.lower_bound <= (0 if case.integer else 1e-10 * (1 + abs(res.fun)))

    check()


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("trees", TREES)
def test_every_tree_of_a_sweep_is_solved_exactly_and_never_raises_the_energy(kind, trees):
    """Proposition 1: after a tree is solved no other labels of it, the rest fixed, have less energy."""
    if trees == "combs" and kind not in SOME_KINDS:
        pytest.skip("the forest kernel is tested with other kinds, and with this one in tree_bp")

    @settings(max_examples=40)
    @given(grid_models(kinds=[kind]), st.integers(0, 99))
    def check(case, seed):
        mrf = case.mrf()
        shape = mrf.shape
        x = random_x(case, seed)
        if trees == "combs":
            steps = [[[np.unravel_index(i, shape) for i in tree]] for tree in comb_sites(shape)]
        else:
            schedule = {
                "bands": lambda s: naive.bands(s, 8),
                "rows-columns": naive.rows_columns,
                "alternating": naive.alternating,
            }
            steps = schedule[trees](shape)
        res = tf.t_icm(mrf, x, trees=trees, maxiter=20)
        assert np.all(np.diff(res.trace["energy"]) <= 0)
        assert (
            res.fun == mrf.energy(res.x) == res.trace["energy"][-1] <= naive.energy(case.unary, case.tables, x) + 1e-9
        )
        assert res.message.startswith("converged")
        for step in steps:
            for tree in step:
                best, _ = naive.solve_tree_brute(case.unary, case.tables, res.x, [tuple(map(int, i)) for i in tree])
                assert res.fun == best if case.integer else close(res.fun, best)

    check()


def comb_sites(shape):
    from treefield.backends.grid.forests import combs

    return combs(shape)


@pytest.mark.parametrize("trees", TREES)
def test_a_tree_is_optimal_after_a_sweep_if_the_labels_around_it_are(trees):
    """Proposition 2: if the labels around the tree belong to a minimum, so do the tree's."""

    @settings(max_examples=60)
    @given(grid_models(kinds=["potts", "table"]), st.integers(0, 10**6))
    def check(case, seed):
        mrf = case.mrf()
        best, minima = naive.brute_force(case.unary, case.tables)
        rng = np.random.default_rng(seed)
        x = minima[0].copy()
        sites = (
            comb_sites(mrf.shape)[0]
            if trees == "combs"
            else np.ravel_multi_index(np.transpose(naive.lines(mrf.shape, -1)[0]), mrf.shape)
        )
        x.reshape(-1)[sites] = rng.integers(mrf.n_labels, size=len(sites))
        res = tf.t_icm(mrf, x, trees=[sites], maxiter=1)
        assert res.fun == best if case.integer else close(res.fun, best)

    check()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_forbidden_costs_are_avoided_where_a_tree_can(kind):
    @settings(max_examples=60)
    @given(grid_models(kinds=[kind], forbidden=True), st.integers(0, 99))
    def check(case, seed):
        mrf = case.mrf()
        x = random_x(case, seed)
        for trees in ("bands", "combs", "sites") if kind in SOME_KINDS else ("bands", "combs"):
            res = tf.t_icm(mrf, x, trees=trees, maxiter=10)
            before = naive.conditional_energy(case.unary, case.tables, x, list(np.ndindex(mrf.shape)))
            after = naive.conditional_energy(case.unary, case.tables, res.x, list(np.ndindex(mrf.shape)))
            assert after[0] <= before[0] and (after[0] < before[0] or after[1] <= before[1] + 1e-9)
            assert res.fun == mrf.energy(res.x) and res.success == math.isfinite(res.fun)
            if not res.success:
                assert f"{after[0]} forbidden" in res.message

    check()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_scan_line_solves_every_line_exactly(kind):
    @settings(max_examples=40)
    @given(grid_models(kinds=[kind]), st.sampled_from((0.4, 1.0)), st.integers(-2, 1))
    def check(case, nu, axis):
        mrf = case.mrf()
        res = tf.scan_line(mrf, nu=nu, axis=axis)
        expected = naive.scan_line(case.unary, case.tables, nu, axis % len(mrf.shape))
        assert close(lines_energy(case, nu, axis, res.x), lines_energy(case, nu, axis, expected))
        assert res.fun == mrf.energy(res.x)

    check()


def lines_energy(case, nu, axis, x):
    axis %= x.ndim
    tables = [table if a == axis else np.zeros_like(table) for a, table in enumerate(case.tables)]
    return naive.energy(nu * case.unary.astype(np.float64), tables, x)


@pytest.mark.parametrize("kind", ["potts-signed", "table", "edge-tables"])
def test_icm_ends_where_no_single_site_can_improve(kind):
    @settings(max_examples=60)
    @given(grid_models(kinds=[kind]), st.integers(0, 99))
    def check(case, seed):
        mrf = case.mrf()
        res = tf.icm(mrf, random_x(case, seed))
        assert np.all(np.diff(res.trace["energy"]) <= 0)
        for i in np.ndindex(mrf.shape):
            best, _ = naive.solve_tree_brute(case.unary, case.tables, res.x, [i])
            assert res.fun == best if case.integer else close(res.fun, best)

    check()

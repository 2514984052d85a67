"""Costs of three and more sites become auxiliary sites, and every energy stays."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_files import energy
from one_line import check_one_line_error
from treefield.io import load_model, read_uai, read_wcsp, save_model, write_cfn, write_uai, write_wcsp
from treefield.io.models.factors import MOST_ASSIGNMENTS, Factors, count_own_sites


@st.composite
def factor_lists(draw):
    """Label counts, and scopes with tables of up to four sites, some with the same sites in another order."""
    counts = draw(st.lists(st.integers(1, 3), min_size=4, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    factors = []
    for arity in draw(st.lists(st.integers(0, 4), max_size=6)):
        scope = tuple(rng.permutation(len(counts) if rng.random() < 0.5 else 4)[:arity].tolist())
        table = rng.integers(-5, 9, [counts[site] for site in scope]).astype(float)
        if arity > 0 and rng.random() < 0.6:
            table[rng.random(table.shape) < 0.3] = math.inf
        factors.append((scope, table))
    return counts, factors


def least(mrf, x):
    """The least energy that agrees with the labels of the sites that are no auxiliary ones."""
    rest = np.ndindex(*mrf.label_counts[len(x) :])
    return min(energy(mrf, [*x, *labels]) for labels in rest)


@given(factor_lists())
def test_the_least_energy_over_auxiliary_labels_is_the_sum_over_the_factors(case):
    counts, listed = case
    factors = Factors("a file", np.array(counts), 10**6)
    for scope, table in listed:
        factors.add(scope, table)
    mrf = factors.graph()
    assert count_own_sites(mrf) == len(counts) and mrf.auxiliary == len(
        {tuple(sorted(s)) for s, _ in listed if len(s) > 2}
    )
    if np.prod(mrf.label_counts[len(counts) :], dtype=float) > 3000:
        return
    for x in np.ndindex(*counts):
        total = sum(table[tuple(x[site] for site in scope)] for scope, table in listed)
        assert least(mrf, x) == total


@given(factor_lists(), st.sampled_from([math.inf, 2.0]))
def test_sparse_tables_of_factors_equal_full_ones(case, default):
    counts, listed = case
    full, sparse = (Factors("a file", np.array(counts), 10**6) for _ in range(2))
    for scope, table in listed:
        if not scope:
            continue
        rows = np.argwhere(np.ones(table.shape, bool))[::2]
        expected = np.full(table.shape, default)
        expected[tuple(rows.T)] = table[tuple(rows.T)]
        full.add(scope, expected)
        sparse.add_sparse(scope, default, rows, table[tuple(rows.T)])
    one, two = full.graph(), sparse.graph()
    assert one.label_counts.tolist() == two.label_counts.tolist() and one.edges.tolist() == two.edges.tolist()
    assert all((a == b).all() for a, b in zip(one.unaries, two.unaries, strict=True))
    assert all((one.edge_costs(e) == two.edge_costs(e)).all() for e in range(len(one.edges)))


def test_a_large_function_with_few_allowed_assignments_is_read(tmp_path):
    scope = " ".join(map(str, range(30)))
    rows = [" ".join(["7"] * 30) + " 5", " ".join(["9"] * 29) + " 3 2"]
    text = f"wide 30 10 1 100\n{'10 ' * 30}\n30 {scope} 100 2\n{rows[0]}\n{rows[1]}\n"
    (tmp_path / "a.wcsp").write_text(text)
    mrf = read_wcsp(tmp_path / "a.wcsp")
    assert mrf.auxiliary == 1 and mrf.size == 31 and mrf.label_counts[30] == 2
    assert least(mrf, [7] * 30) == 5
    assert least(mrf, [9] * 29 + [3]) == 2 and math.isinf(least(mrf, [7] * 29 + [8]))
    again = f"30 {' '.join(map(str, reversed(range(30))))} 100 2\n{rows[0]}\n{' '.join(['1'] * 30)} 4\n"
    (tmp_path / "b.wcsp").write_text(text.replace("1 100", "2 100", 1) + again)
    both = read_wcsp(tmp_path / "b.wcsp")
    assert both.auxiliary == 1 and both.label_counts[30] == 1 and least(both, [7] * 30) == 10


def test_a_factor_with_too_many_assignments_is_refused(tmp_path):
    text = f"MARKOV 3 20 20 20 1 3 0 1 2 8000 {'1 ' * 8000}"
    (tmp_path / "a.uai").write_text(text)
    words = ["a.uai", "factor of arity 3", "sites 0, 1, 2", "8000 assignments", str(MOST_ASSIGNMENTS)]
    check_one_line_error(lambda: read_uai(tmp_path / "a.uai"), ValueError, *words)
    (tmp_path / "a.wcsp").write_text("wide 9 10 1 100\n" + "10 " * 9 + "\n9 0 1 2 3 4 5 6 7 8 0 0\n")
    check_one_line_error(lambda: read_wcsp(tmp_path / "a.wcsp"), ValueError, "arity 9", "1000000000 assignments")


def test_models_with_auxiliary_sites_are_saved_as_npz_alone(tmp_path):
    (tmp_path / "a.uai").write_text("MARKOV 3 2 2 2 1 3 0 1 2 8 1 2 3 4 0 6 7 8")
    mrf = read_uai(tmp_path / "a.uai")
    assert mrf.auxiliary == 1 and mrf.label_counts.tolist() == [2, 2, 2, 7]
    for write in (write_uai, write_wcsp, write_cfn):
        check_one_line_error(lambda write=write: write(tmp_path / "b", mrf), ValueError, "1 auxiliary", ".npz")
    save_model(tmp_path / "a.npz", mrf)
    again = load_model(tmp_path / "a.npz")
    assert again.auxiliary == 1
    assert least(again, [0, 1, 0]) == pytest.approx(-math.log(3))

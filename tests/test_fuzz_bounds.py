"""No lower bound is above the exact minimum, on a few hundred random models; and the fuzzer that checks it works.

`python tests/fuzz_bounds.py --minutes 30` does the same for as long as wanted, with all dtypes of unary costs.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import fuzz_bounds
import naive_graph
import treefield as tf
from exact_energies import Truth, edge_terms, exact
from fuzz_bounds import KINDS, check, main, random_model, seeds_of
from fuzz_models import DTYPES
from small_graphs import random_graph

MODELS = 20  # of each kind
# Kernels are compiled for each dtype: few of them here.
KEPT_DTYPES = {"grid-potts": ("float16", "float32"), "lattice-potts": ("float16", "float32")}
# Seeds where longer runs found a false bound, a wrong energy or a warning, by the cause.
FOUND = {
    "forbidden pairs with uneven weights": (1660, 8806, 10444, 13126, 14944, 20686),
    "products that only look whole": (619, 3538, 3797, 5382, 9668, 12543),
    "parallel edges or loops": (6297, 14574, 15767, 17256),
    "float32 weights with a mask": (12837, 15571, 16956, 19081),
    "an infinite cost with tiny ones": (16646,),
    "large costs of labels that sites do not have": (219036, 242996, 2026634),
    "positions of labels rounded on graphs": (207745,),
    "costs near the limits of float64": (
        511,
        629,
        1125,
        2557,
        13622,
        200523,
        204935,
        208007,
        1006384,
        1007853,
        4043912,
    ),
}


def models(kind, number):
    """The first models of a kind whose unary costs have the dtypes of this file."""
    dtypes = KEPT_DTYPES.get(kind, ("float64",))
    drawn = (random_model(seed) for seed in seeds_of([kind]))
    return itertools.islice((model for model in drawn if model.dtype in dtypes), number)


@pytest.mark.parametrize("kind", KINDS)
def test_no_lower_bound_of_random_models_is_above_the_exact_minimum(kind):
    outcomes = [check(model) for model in models(kind, MODELS)]
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    assert not failures, "\n".join(failures)
    assert sum(not outcome.refused for outcome in outcomes) > MODELS / 2


@pytest.mark.parametrize("seed", [seed for seeds in FOUND.values() for seed in seeds])
def test_model_that_once_failed_passes_all_checks(seed):
    failures = check(random_model(seed)).failures
    assert not failures, "\n".join(failures)


def test_lower_bound_with_forbidden_pairs_and_uneven_weights_is_not_above_the_minimum():
    inf = math.inf
    unary = np.array([[[3.0, 2, 3], [5, 5, 0]], [[8, 5, 7], [0, 6, 4]]])
    down = [[[inf, 3, -2], [-7, inf, inf], [inf, 8, -9]], [[inf, inf, inf], [inf, -7, -3], [inf, -9, 5]]]
    right = [[[-4, -2, 0], [6, inf, inf], [-6, -6, inf]], [[3, -9, inf], [inf, 6, -6], [inf, 4, -9]]]
    weights = [1e-11, 1e6, 1e4, 1e-10]
    pairwise = tf.EdgeTables([np.array(down).reshape(1, 2, 3, 3), np.array(right).reshape(2, 1, 3, 3)])
    mrf = tf.GridMRF(unary, pairwise, weights=[np.reshape(weights[:2], (1, 2)), np.reshape(weights[2:], (2, 1))])
    terms = [((site,), costs) for site, costs in enumerate(exact(unary.reshape(4, 3)))]
    edges = [(0, 2), (1, 3), (0, 1), (2, 3)]
    terms += edge_terms(edges, [Fraction(weight) for weight in weights], list(exact([*down, *right])))
    truth = Truth((3,) * 4, terms)
    assert round(truth.minimum) == -8999986
    for res in (tf.minimize(mrf, rng=0), tf.trw(mrf), tf.trw(mrf, arithmetic="float64", maxiter=8)):
        assert Fraction(res.lower_bound) <= truth.minimum <= truth.energy(res.x)


# --- the fuzzer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("kind", ["potts", "linear-values", "asymmetric", "rectangle", "tables"])
def test_exact_minimum_equals_that_of_brute_force_on_whole_numbers(kind, forbidden):
    for seed in range(20):
        model = random_graph(seed, kind, "any", forbidden, clean=False).model
        terms = [((site,), exact(costs)) for site, costs in enumerate(model.unaries)]
        terms += edge_terms(model.edges, [Fraction(1)] * len(model.edges), [exact(table) for table in model.tables])
        truth = Truth([len(costs) for costs in model.unaries], [*terms, ((), exact(model.offset))])
        (forbidden_costs, least), x = naive_graph.minimum(model)
        assert truth.minimum == (None if forbidden_costs else least)
        assert truth.energy(np.array(x)) == truth.minimum


def test_exact_energies_keep_products_that_only_look_whole_in_float64():
    truth = Truth([2, 2], edge_terms([(1, 0)], [Fraction(0.3) * 10], [exact([[1, 2], [1.0, math.inf]])]))
    assert 0.3 * 10 == 3 and truth.minimum == Fraction(0.3) * 10 < 3
    assert truth.energy(np.array([1, 0])) == 2 * truth.minimum  # the first label is that of site 1
    assert truth.energy(np.array([1, 1])) is None


def test_random_models_hold_all_that_bounds_must_survive():
    drawn = [random_model(seed) for seed in range(900)]
    assert {model.kind for model in drawn} == set(KINDS) and {model.dtype for model in drawn} == set(DTYPES)
    options = {(name, str(value)[:4]) for model in drawn for name, value in model.call.options.items()}
    assert {("connectivity", "2"), ("periodic", "True"), ("periodic", "(Tru")} <= options
    assert {"mask", "weights", "offset"} <= {name for name, _ in options}
    given = [model.call.options["weights"] for model in drawn if "weights" in model.call.options]
    parts = [part for weights in given for part in (weights if isinstance(weights, list) else [weights])]
    weights = np.abs(np.concatenate([np.reshape(part, -1) for part in parts]))
    assert weights[weights > 0].min() < 1e-11 and weights.max() > 1e12 and 0 in weights
    assert any(model.truth.minimum is None for model in drawn)
    graphs = [model.call.args[1].tolist() for model in drawn if model.call.name == "GraphMRF"]
    assert any(edge[0] == edge[1] for edges in graphs for edge in edges)
    assert any(edge[::-1] in edges and edges.count(edge) > 1 for edges in graphs for edge in edges)
    source = "\n".join(map(str, drawn))
    for part in (
        "inf",
        "nan",
        "values=",
        "lambda",
        "tf.Table(",
        "TruncatedLinear(",
        "TruncatedQuadratic(",
        "EdgeTables(",
    ):
        assert part in source


@pytest.mark.parametrize("kind", KINDS)
def test_printed_code_builds_the_same_model(kind):
    for model in models(kind, 3):
        names = {}
        exec(str(model), names)
        mrf, rng = model.call.make(), np.random.default_rng(0)
        assert repr(names["mrf"]) == repr(mrf)
        for x in [mrf.backend.random_labels(rng) for _ in range(9)]:
            assert names["mrf"].energy(x) == mrf.energy(x)


def test_bound_one_bit_above_the_minimum_fails_and_is_reported(monkeypatch, capsys):
    seed = next(model.seed for model in models("grid-tables", 99) if model.truth.minimum not in (None, 0))
    model, minimize = random_model(seed), tf.minimize

    def minimize_above(mrf, **options):
        res, minimum = minimize(mrf, **options), float(model.truth.minimum)
        res.lower_bound = minimum if Fraction(minimum) > model.truth.minimum else math.nextafter(minimum, math.inf)
        return res

    monkeypatch.setattr(tf, "minimize", minimize_above)
    assert any(f"seed {seed} grid-tables minimize: the lower bound" in text for text in check(model).failures)
    assert main(["--seed", str(seed), "--models", "1"]) == 1
    printed = capsys.readouterr().out
    assert f"mrf = {model.call}" in printed and f"seed {seed} grid-tables minimize: the lower bound" in printed
    assert "1 models, 0 refused, 1 with failures" in printed


def test_wrong_energy_and_unexpected_error_fail(monkeypatch):
    (model,) = models("grid-tables", 1)

    def tree_bp(mrf):
        raise ZeroDivisionError

    def trw(mrf, **options):
        return tf.MAPResult(x=mrf.backend.best_labels(), fun=math.nan, lower_bound=math.nan, message="converged")

    monkeypatch.setattr(Truth, "is_forest", True)
    monkeypatch.setattr(tf, "tree_bp", tree_bp)
    monkeypatch.setattr(tf, "trw", trw)
    failures = "\n".join(check(model, ["tree_bp", "trw float64"]).failures)
    for part in ("tree_bp: raised ZeroDivisionError()", "the lower bound is NaN", "fun is nan"):
        assert part in failures


def test_command_counts_refused_models_and_succeeds_without_failures(monkeypatch, capsys):
    monkeypatch.setattr(fuzz_bounds, "check", lambda model: check(model, ()))
    kinds = ["grid-table", "graph-potts"]
    seed = next(seed for seed in seeds_of(kinds[:1]) if check(random_model(seed), ()).refused)
    assert main(["--seed", str(seed), "--models", "20", "--kind", *kinds]) == 0
    printed = capsys.readouterr().out
    assert f"seeds from {seed} on" in printed and "20 models" in printed and ", 0 with failures" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith("gr")]
    assert [row[:2] for row in rows] == [["grid-table", "10"], ["graph-potts", "10"]] and int(rows[0][2]) > 0
    assert "refused 1: " in printed

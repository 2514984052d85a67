"""The contract of `Backend`, over every kind of model."""

import numpy as np
import pytest

import naive_graph
from contracts.conformity import check_conforms
from contracts.implementations import GRAPHS, GRIDS, MODELS, example, is_forest
from treefield.errors import CycleError
from treefield.protocols import Backend

every_model = pytest.mark.parametrize("name", MODELS)
SEEDS = range(6)


def ranks_differ(found, x, y):
    """How the number of forbidden costs and the sum of the others change from `x` to `y`."""
    before, after = (naive_graph.rank(found.model, z.reshape(-1).tolist()) for z in (x, y))
    return after[0] - before[0], pytest.approx(after[1] - before[1], abs=1e-10)


def segments_of(found, flat):
    """The connected sites of one label."""
    pieces = []
    for label in set(flat.tolist()):
        pieces += naive_graph.pieces(found.model, np.flatnonzero(flat == label).tolist())
    return sorted(pieces)


@every_model
def test_backend_has_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf.backend, Backend)


@every_model
def test_backend_describes_the_labellings_of_the_model(name):
    found = example(name)
    backend, counts = found.mrf.backend, [len(costs) for costs in found.model.unaries]
    assert backend.shape == found.mrf.shape and backend.size == len(counts) and backend.n_labels == max(counts)
    assert np.broadcast_to(backend.label_counts, backend.shape).reshape(-1).tolist() == counts
    assert backend.has_uniform_labels == (len(set(counts)) == 1)
    assert backend.has_lines == (name in GRIDS) == (backend.boxes is not None) == (backend.balls is None)
    assert (backend.marginals(0) is None) == (name in GRAPHS)


@every_model
def test_backend_measures_the_costs(name):
    found = example(name)
    backend, finite = found.mrf.backend, found.energies[np.isfinite(found.energies)]
    has_forbidden = "forbidden" in name
    assert np.isfinite(backend.forbidden_cost) == has_forbidden and not backend.is_whole
    assert not has_forbidden or backend.forbidden_cost > np.ptp(finite)
    assert 0 < backend.scale < np.inf and 0 <= backend.rounding < 1e-8
    assert backend.sweep_work > 0 and (backend.dual_work is None or backend.dual_work > 0)
    assert backend.tree_bytes > 0 and all(need > 0 for need in backend.search_bytes().values())
    assert backend.has_few_edges == (len(naive_graph.merged(found.model).edges) < backend.size)


@every_model
def test_energy_parts_are_the_finite_costs_and_the_number_of_forbidden_ones(name):
    found = example(name)
    for seed in SEEDS:
        x = found.random(seed)
        forbidden, finite = naive_graph.rank(found.model, x.reshape(-1).tolist())
        assert found.mrf.backend.energy_parts(x) == (pytest.approx(finite, abs=1e-10), forbidden)


@every_model
def test_best_labels_have_the_least_unary_costs(name):
    found = example(name)
    x = found.mrf.backend.best_labels()
    assert x.dtype == np.int32 and x.shape == found.mrf.shape
    assert x.reshape(-1).tolist() == [int(np.argmin(costs)) for costs in found.model.unaries]


@every_model
def test_random_labels_are_legal_and_0_where_there_is_no_site(name):
    backend, seen = example(name).mrf.backend, []
    for seed in range(30):
        x = backend.random_labels(np.random.default_rng(seed))
        assert x.dtype == np.int32 and x.shape == backend.shape
        assert (x >= 0).all() and (x < backend.label_counts).all()
        assert backend.mask is None or not x[~backend.mask].any()
        sites = np.array([backend.size - 1, 0])
        some = backend.random_labels(np.random.default_rng(seed), sites)
        assert (some < np.broadcast_to(backend.label_counts, backend.shape).reshape(-1)[sites]).all()
        seen.append(x.max())
    assert max(seen) == backend.n_labels - 1


@every_model
def test_independent_sites_share_no_edge(name):
    found = example(name)
    for seed in SEEDS:
        sites = set(found.mrf.backend.independent_sites(np.random.default_rng(seed)).tolist())
        assert sites and not any(i in sites and j in sites for i, j in found.model.edges if i != j)


@every_model
def test_components_are_connected_and_their_changes_add_up_to_that_of_the_energy(name):
    found = example(name)
    for seed in SEEDS:
        x, y = found.random(seed), found.random(seed + 100)
        before = x.copy(), y.copy()
        numbers, finite, forbidden = found.mrf.backend.components(x, y)
        pieces, changes = naive_graph.components(found.model, x.reshape(-1).tolist(), y.reshape(-1).tolist())
        assert numbers.shape == x.shape and ((numbers >= 0) == (x != y)).all()
        assert len(finite) == len(forbidden) == len(pieces)
        for piece, (more, change) in zip(pieces, changes, strict=True):
            (number,) = set(numbers.reshape(-1)[piece].tolist())
            assert finite[number] == pytest.approx(change, abs=1e-10) and forbidden[number] == more
        assert (int(forbidden.sum()), float(finite.sum())) == ranks_differ(found, x, y)
        np.testing.assert_array_equal(before, (x, y))


@every_model
def test_apply_components_changes_only_the_components_that_are_taken(name):
    found = example(name)
    for seed in SEEDS:
        x, y = found.random(seed), found.random(seed + 100)
        numbers, finite, forbidden = found.mrf.backend.components(x, y)
        taken = np.random.default_rng(seed).random(len(finite)) < 0.5
        z = x.copy()
        found.mrf.backend.apply_components(z, y, numbers, taken)
        np.testing.assert_array_equal(z, np.where((numbers >= 0) & np.append(taken, False)[numbers], y, x))
        assert (int(forbidden[taken].sum()), float(finite[taken].sum())) == ranks_differ(found, x, z)


@every_model
def test_hashes_of_components_tell_their_sites_and_labels(name):
    backend = example(name).mrf.backend
    for seed in SEEDS:
        x, y = (backend.random_labels(np.random.default_rng(seed + k)) for k in (0, 100))
        numbers, finite, _ = backend.components(x, y)
        before, after = backend.hash_components(x, y, numbers, len(finite))
        back, forth = backend.hash_components(y, x, numbers, len(finite))
        assert before.dtype == after.dtype == np.uint64
        np.testing.assert_array_equal((before, after), (forth, back))
        assert len({*before.tolist(), *after.tolist()}) == 2 * len(finite)


@every_model
def test_segments_are_the_connected_sites_of_one_label(name):
    found = example(name)
    for seed in SEEDS:
        flat = found.random(seed).reshape(-1)
        numbers, count = found.mrf.backend.segments(flat)
        expected = segments_of(found, flat)
        if found.mrf.backend.mask is None:  # an edge to a site that does not exist joins segments, at no cost
            assert count == len(expected)
            assert sorted(np.flatnonzero(numbers == k).tolist() for k in range(count)) == expected
        assert set(numbers.tolist()) == set(range(count))


@every_model
def test_labels_across_are_those_of_neighbouring_segments(name):
    found = example(name)
    if found.mrf.backend.mask is not None:
        return
    for seed in SEEDS:
        flat = found.random(seed).reshape(-1)
        numbers, count = found.mrf.backend.segments(flat)
        own = np.full(count, -7, np.int32)
        found.mrf.backend.labels_across(flat, numbers, np.uint64(seed), own)
        for k in range(count):
            inside = np.flatnonzero(numbers == k).tolist()
            around = {
                int(flat[j]) for i in inside for j in naive_graph.neighbours_of(found.model, i) if numbers[j] != k
            }
            assert own[k] in around if around else own[k] == -7


@every_model
def test_whole_tree_is_solved_exactly_or_its_cycle_refused(name):
    found = example(name)
    if not is_forest(name):
        with pytest.raises(CycleError):
            found.mrf.backend.whole_tree()
        return
    for seed in SEEDS:
        x = found.random(seed)
        found.mrf.backend.whole_tree().sweep(x, check=False)
        assert found.energy(x) == pytest.approx(found.minimum, abs=1e-10)


@every_model
def test_elimination_finds_the_minimum_unless_its_tables_are_too_large(name):
    found = example(name)
    assert found.mrf.backend.eliminate(0, 1e9, 1) is None
    assert found.mrf.backend.eliminate(1e7, 0, 1) is None
    x = found.mrf.backend.eliminate(1e7, 1e9, 2)
    assert x.shape == found.mrf.shape and found.energy(x) == pytest.approx(found.minimum, abs=1e-10)


@every_model
def test_solve_lines_ignores_the_edges_between_lines(name):
    found = example(name)
    if name in GRAPHS:
        with pytest.raises(TypeError, match="no lines"):
            found.mrf.backend.solve_lines(1.0, 0)
        return
    if any(found.periodic) or "forbidden" in name:  # a closed line is cut open; forbidden labels stay so
        return
    for axis in range(len(found.mrf.shape)):
        places = np.array(np.unravel_index(np.arange(found.mrf.size), found.mrf.shape))
        pairs = list(zip(found.model.edges, found.model.tables, strict=True))
        along = [(e, t) for e, t in pairs if np.flatnonzero(np.diff(places[:, list(e)])).tolist() == [axis]]
        nu = 0.5
        unaries = (nu * np.array(found.model.unaries)).tolist()
        lines = naive_graph.Model(unaries, [e for e, _ in along], [t for _, t in along])
        x = found.mrf.backend.solve_lines(nu, axis)
        assert x.dtype == np.int32 and x.shape == found.mrf.shape
        least = naive_graph.least_energy(lines)
        assert naive_graph.energy(lines, x.reshape(-1).tolist()) == pytest.approx(least, abs=1e-10)


@every_model
def test_fingerprint_is_that_of_the_costs(name):
    def fingerprint(mrf):
        given = mrf.backend.fingerprint_parts()
        return [part.tobytes() if isinstance(part, np.ndarray) else part for part in given]

    other = next(key for key in MODELS if key != name and (key in GRIDS) == (name in GRIDS))
    assert fingerprint(example(name).mrf) == fingerprint(MODELS[name]().mrf) != fingerprint(example(other).mrf)


WRONG_TREES = [
    ("diagonals", {}),
    ([], {}),
    ([[0, 0]], {}),
    ([[99]], {}),
    (None, {"order": "upwards"}),
    (None, {"memory": "little"}),
    (None, {"threads": 0}),
    (None, {"bands": -1}),
]


@every_model
@pytest.mark.parametrize(("trees", "wrong"), WRONG_TREES, ids=str)
def test_check_tree_set_raises_what_tree_set_raises(name, trees, wrong):
    backend = example(name).mrf.backend
    options = {"order": "fixed", "bands": None, "width": None, "memory": "auto", "threads": None} | wrong
    errors = []
    for call in (backend.check_tree_set, backend.tree_set):
        with pytest.raises((ValueError, TypeError)) as caught:
            call(trees, **options)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


@every_model
def test_named_trees_of_a_search_exist(name):
    backend = example(name).mrf.backend
    for trees in (backend.paper_trees, backend.search_trees, None):
        backend.check_tree_set(trees, order="fixed", bands=None, width=None, memory="auto", threads=None)
        assert backend.tree_set(trees).sweep(backend.best_labels()) <= 0

"""Graph models for the tests of file formats, and obvious slow sums over what files hold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import treefield as tf
from problems import data_folder

COSTS = {
    "floats": lambda rng, size: rng.normal(0, 20, size),
    "integers": lambda rng, size: rng.integers(-9, 10, size).astype(float),
    "counts": lambda rng, size: rng.integers(0, 30, size).astype(float),
    "odd": lambda rng, size: rng.choice([0.0, -0.0, 1 / 3, 1e-9, 123456.75, -2.5e-7, 7.0], size),
}


@st.composite
def graph_models(draw, kinds=tuple(COSTS), labels=4, forbidden=True, offset=True):
    """Small graphs: one-label and isolated sites, no edges, forbidden costs, a constant."""
    size = draw(st.integers(1, 5))
    counts = [draw(st.integers(1, labels)) for _ in range(size)]
    pairs = list(itertools.permutations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=6, unique_by=frozenset)) if pairs else []
    cost, rng = COSTS[draw(st.sampled_from(kinds))], np.random.default_rng(draw(st.integers(0, 999)))

    def table(*shape):
        costs = cost(rng, shape)
        if forbidden and rng.random() < 0.3:
            costs[rng.random(shape) < 0.3] = math.inf
        return costs

    constant = float(cost(rng, ())) if offset and draw(st.booleans()) else 0.0
    tables = [table(counts[i], counts[j]) for i, j in edges]
    return tf.GraphMRF([table(count) for count in counts], np.array(edges).reshape(-1, 2), tables, offset=constant)


@st.composite
def spin_models(draw, fields=True, offset=True):
    """Ising models, as the formats of two labels hold them."""
    size = draw(st.integers(1, 6))
    pairs = list(itertools.combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=8, unique=True)) if pairs else []
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    scale = draw(st.sampled_from((1.0, 1e-9, 12345.0)))
    field = scale * rng.normal(size=size) if fields else np.zeros(size)
    weights = np.round(scale * rng.normal(size=len(edges)), draw(st.integers(0, 12)))
    constant = draw(st.sampled_from((0.0, -2.75, 1e-7))) if offset else 0.0
    edges = np.array(edges).reshape(-1, 2)
    spins = tf.Table([[1, -1], [-1, 1]])
    return tf.GraphMRF(np.stack([-field, field], axis=1), edges, spins, weights=weights, offset=constant)


def energy(mrf, x):
    """The energy of a labelling as an obvious sum over the model's costs."""
    total = mrf.offset + sum(costs[label] for costs, label in zip(mrf.unaries, x, strict=True))
    return total + sum(mrf.edge_costs(e)[x[i], x[j]] for e, (i, j) in enumerate(mrf.edges.tolist()))


def labellings(mrf, count=20, seed=0):
    """Some random labellings."""
    rng = np.random.default_rng(seed)
    return [[int(rng.integers(n)) for n in mrf.label_counts] for _ in range(count)]


def check_same_energies(one, two, rel=0.0, abs=0.0, shift=0.0):
    """Two models have the same sites and labels, and the same energies."""
    assert one.label_counts.tolist() == two.label_counts.tolist()
    for x in labellings(one):
        assert energy(two, x) == pytest.approx(energy(one, x) + shift, rel=rel, abs=abs)


def check_round_trip(folder, suffix, mrf, read, write, **close):
    """Fail unless a written model is read with the same energies, and written again to the same bytes."""
    first, second = folder / f"model{suffix}", folder / "again" / f"model{suffix}"
    second.parent.mkdir(exist_ok=True)
    write(first, mrf, force=True)
    again = read(first)
    check_same_energies(mrf, again, **close)
    write(second, again, force=True)
    assert first.read_bytes() == second.read_bytes()


def data_file(name):
    """A file of the shared data, or a skipped test."""
    folder = data_folder()
    if folder is None or not (folder / name).exists():
        pytest.skip(f"no shared data: {name}")
    return folder / name


def data_models(pattern):
    """The names of the shared data's files, for parametrize; one that is skipped where there are none."""
    folder = data_folder()
    return [str(path.relative_to(folder)) for path in sorted(folder.glob(pattern))] if folder else [pattern]

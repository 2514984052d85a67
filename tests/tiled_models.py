"""Small grids in tiles, and the same grids whole."""

import numpy as np
from hypothesis import strategies as st

import treefield as tf

KINDS = {
    "potts": lambda rng, labels: tf.Potts(3),
    "linear": lambda rng, labels: tf.TruncatedLinear(2, cutoff=2),
    "quadratic": lambda rng, labels: tf.TruncatedQuadratic(1, cutoff=4),
    "table": lambda rng, labels: tf.Table(rng.integers(-4, 9, (labels, labels))),
    "forbidding": lambda rng, labels: tf.Table(np.where(rng.random((labels, labels)) < 0.2, np.inf, 2.0)),
}


def edge_weights(rng, shape, kind):
    """Whole weights for each edge, or one for each axis, or none."""
    if kind == "none":
        return None
    if kind == "axes":
        return [int(w) for w in rng.integers(0, 4, len(shape))]
    shapes = [tuple(n - (axis == a) for a, n in enumerate(shape)) for axis in range(len(shape))]
    return [rng.integers(0 if kind == "positive" else -2, 4, edges) for edges in shapes]


def both(seed, shape, labels, pairwise, weights, forbidden=0.0, tile=4, **options):
    """A model in tiles, and the same in one piece; all its costs are whole numbers or forbidden."""
    rng = np.random.default_rng(seed)
    unary = rng.integers(0, 20, (*shape, labels)).astype(np.float64)
    unary[rng.random(unary.shape) < forbidden] = np.inf
    given = KINDS[pairwise](rng, labels), edge_weights(rng, shape, weights)
    tiled = tf.TiledMRF(unary, given[0], weights=given[1], tile=tile, **options)
    return tiled, tf.GridMRF(unary, given[0], weights=given[1])


@st.composite
def cases(draw):
    """Arguments of `both`, without models in which a negative weight makes a forbidden cost a gain."""
    shape = draw(st.one_of(st.tuples(*[st.integers(1, 14)] * 2), st.tuples(*[st.integers(1, 7)] * 3)))
    pairwise = draw(st.sampled_from(list(KINDS)))
    weights = draw(st.sampled_from(["none", "axes", "positive"] + ["any"] * (pairwise != "forbidding")))
    forbidden = draw(st.sampled_from([0.0, 0.0, 0.1]))
    tile = draw(st.integers(4, 9))
    return draw(st.integers(0, 2**32)), shape, draw(st.integers(1, 5)), pairwise, weights, forbidden, tile


def random_labels(mrf, seed=0):
    return np.random.default_rng(seed).integers(mrf.n_labels, size=mrf.shape).astype(np.int32)

"""Print the energies of searches that reach most kernels, on models whose sizes are no multiple of a vector's lanes."""

import numpy as np

import treefield as tf
from treefield.moves import MixedJump, PerComponent

SHAPE = (19, 11)


def models():
    """Models by name; few signatures, since each is compiled."""
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 20, (*SHAPE, 9)).astype(np.float64)
    edges = rng.integers(0, 50, (120, 2))
    return {
        "grid": tf.GridMRF(unary, tf.TruncatedQuadratic(1, 5)),
        "spins": tf.GridMRF(unary[..., :2], tf.Table([[0, 3], [2, 0]]), weights=[rng.normal(size=(18, 11)), 1]),
        "graph": tf.GraphMRF(unary.reshape(-1, 9)[:50], edges, tf.Potts(2), weights=rng.normal(size=120)),
    }


SEARCHES = {
    "grid": {
        "minimize": lambda mrf: tf.minimize(mrf, maxiter=3, tol=0, rng=0),
        "icm": lambda mrf: tf.icm(mrf, rng=0),
        "anneal": lambda mrf: tf.anneal(mrf, maxiter=3, rng=0),
        "loopy_bp": lambda mrf: tf.loopy_bp(mrf, maxiter=3),
    },
    "spins": {
        "t_ils": lambda mrf: tf.t_ils(mrf, jump=MixedJump(), accept=PerComponent(), maxiter=3, rng=0),
        "trw": lambda mrf: tf.trw(mrf, maxiter=3),
        "scan_line": lambda mrf: tf.scan_line(mrf),
    },
    "graph": {
        "minimize": lambda mrf: tf.minimize(mrf, maxiter=3, tol=0, rng=0),
        "anneal": lambda mrf: tf.anneal(mrf, maxiter=3, rng=0),
    },
}


def energies():
    """The energy and the bound of each search, as text."""
    return [
        f"{name} {method} {res.fun!r} {float(res.lower_bound)!r}"
        for name, mrf in models().items()
        for method, res in ((method, search(mrf)) for method, search in SEARCHES[name].items())
    ]


if __name__ == "__main__":
    print("\n".join(energies()))

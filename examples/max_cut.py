"""Cut a random graph in two, so that as much weight as can be goes across: a spin glass.

    python examples/max_cut.py --nodes 200

Needs networkx.
"""

import argparse

import networkx as nx
import numpy as np

import treefield as tf


def max_cut(graph, **limits):
    """The two sides, the weight across, and a bound that no cut exceeds."""
    free = np.zeros((len(graph), 2))  # no node prefers a side
    free[0, 1] = np.inf  # but the sides have no names: let the first node be on side 0
    mrf = tf.GraphMRF.from_networkx(graph, free, tf.Potts(-1))  # an edge across earns its weight
    res = tf.minimize(mrf, **limits)
    sides = [{node for node, label in zip(graph, res.x, strict=True) if label == side} for side in (0, 1)]
    return sides, -res.fun, -res.lower_bound


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--degree", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=2.0)
    given = parser.parse_args(arguments)

    graph = nx.random_regular_graph(given.degree, given.nodes, seed=0)
    sides, cut, bound = max_cut(graph, time_limit=given.time_limit, rng=0)
    print(f"{graph}: {len(sides[0])} nodes against {len(sides[1])}")
    print(f"{cut:g} edges are cut, and no cut has more than {bound:g}; networkx.one_exchange: ", end="")
    print(f"{nx.approximation.one_exchange(graph, seed=0)[0]:g}")


if __name__ == "__main__":
    main()

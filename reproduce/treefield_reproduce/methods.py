"""The methods that are compared, with the names that tables and figures give them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import treefield as tf
from treefield import moves
from treefield.results import MAPResult

BEST = {"jump": moves.MixedJump(), "accept": moves.PerComponent(), "trees": "bands"}
GENETIC: dict[str, object] = {"crossover": "site", "trees": "rows-columns"}
MERGED = {"crossover": "merge", "mutation": moves.MixedJump(), "trees": "bands"}


@dataclasses.dataclass(frozen=True)
class Method:
    """A solver with its settings, a description of them, and the style of its curve."""

    solve: Callable[..., MAPResult]
    description: str
    colour: str
    options: dict[str, object] = dataclasses.field(default_factory=dict)
    line: str = "-"


METHODS = {
    "ICM": Method(tf.icm, "one site at a time (Eq. 4)", "#8a8f98"),
    "T-ICM": Method(tf.t_icm, "Algorithm 1, rows, then columns", "#3b8ea5", {"trees": "rows-columns"}),
    "loopy BP (paper)": Method(
        tf.loopy_bp, "all messages at once, undamped, labels by Eq. 6", "#d1495b", {"tol": 0}, "--"
    ),
    "loopy BP (sequential)": Method(
        tf.loopy_bp, "messages along each axis in turn, undamped", "#e08e45", {"tol": 0, "schedule": "sequential"}, "--"
    ),
    "loopy BP (strong)": Method(
        tf.loopy_bp,
        "messages in turn, damped by a half, labels one after the other",
        "#b07aa1",
        {"tol": 0, "schedule": "sequential", "damping": 0.5, "decoding": "sequential"},
        "--",
    ),
    "T-ILS (paper)": Method(tf.t_ils, "Algorithm 2 with the paper's settings", "#1f4e9c"),
    "T-ILS (best)": Method(tf.t_ils, "mixed jumps, accepted per component, bands", "#1b8a5a", BEST),
    "genetic (paper)": Method(
        tf.genetic, "T-ICM on individuals crossed site by site, rows and columns", "#7a3e9d", GENETIC, ":"
    ),
    "genetic (best)": Method(tf.genetic, "individuals merged, mixed jumps, bands", "#c26fb0", MERGED, ":"),
    "annealing": Method(tf.anneal, "Gibbs sampling, colder and colder", "#8d6a2b"),
    "TRW-S": Method(tf.trw, "the dual alone: a labelling and a lower bound", "#5b6c2f", {"tol": 0}),
    "minimize": Method(tf.minimize, "the best treefield has: dual and T-ILS together", "#111111", {"tol": 0}),
}
BELIEFS = tuple(name for name in METHODS if name.startswith("loopy BP"))

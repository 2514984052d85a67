"""T-ILS: its best against annealing, on the pictures, and the gain of each jump."""

import numpy as np

import peers
import problems
import treefield as tf
from measure import milliseconds, say, table
from treefield import moves
from treefield_reproduce.methods import BEST
from treefield_reproduce.problems import ising_field

GOALS = {"Tsukuba": {1.0: 392_700, 4.0: 392_000}, "Venus": {4.0: 631_500}, "Penguin": {4.0: 410_000}}


SCRAMBLED = moves.BoxJump("scramble", size=(8, 8), density=1.0)


def best_search(mrf, x0=None, jump=None, **limits):
    """T-ILS with the best jump, for most models, and acceptance."""
    return tf.t_ils(mrf, x0, **BEST | ({} if jump is None else {"jump": jump}) | limits)


def energy_at(res, seconds):
    """The best energy of a run after the given number of seconds."""
    trace = res.trace
    return trace["best"][np.searchsorted(trace["seconds"], seconds, side="right") - 1]


def seconds_to(res, energy):
    """When a run first was at or below an energy; inf if never."""
    reached = np.flatnonzero(res.trace["best"] <= energy)
    return res.trace["seconds"][reached[0]] if len(reached) else np.inf


def has_pictures():
    """Whether the paper's pictures are available; says so if they are not."""
    if problems.data_folder() is None:
        say("Stereo and Penguin: skipped, the pictures are not here (set TREEFIELD_DATA)")
        return False
    return True


def merge():
    """merge against one sweep, 1000 x 1000 sites."""
    rng = np.random.default_rng(0)
    rows = []
    for labels in (16, 2):
        mrf = tf.GridMRF(rng.random((1000, 1000, labels), dtype=np.float32), tf.Potts(0.3))
        trees = mrf.backend.tree_set(threads=1)
        x = rng.integers(labels, size=mrf.shape, dtype=np.int32)
        first = milliseconds(lambda mrf=mrf, trees=trees, x=x: trees.sweep(x.copy()), 9)
        for _ in range(5):
            trees.sweep(x)
        sweep = milliseconds(lambda trees=trees, x=x: trees.sweep(x), 15)
        y = tf.t_icm(mrf, rng=1, maxiter=6).x
        others = {"another local minimum": y, "a jump of 10 %, swept": swept_jump(mrf, trees, x, rng)}
        for share in (0.01, 0.1, 1.0):
            noise = rng.integers(labels, size=x.shape)
            others[f"random labels, {share:.0%} of the sites"] = np.where(rng.random(x.shape) < share, noise, x)
        for what, other in others.items():
            other = other.astype(np.int32)
            ms = milliseconds(lambda mrf=mrf, x=x, other=other: tf.merge(mrf, x, other), 9)
            share = np.mean(x != other)
            rows.append(
                [f"{labels} labels, {what}", f"{share:.0%}", f"{ms:.1f}", f"{ms / sweep:.2f}", f"{ms / first:.2f}"]
            )
    columns = ["merge, 1000x1000 Potts", "sites differ", "ms", "to a sweep", "to a first sweep"]
    table("merge against one T-ICM sweep, one thread", columns, rows)


def swept_jump(mrf, trees, x, rng):
    """Where a jump and a sweep lead."""
    y = moves.UniformJump(0.1)(x, mrf, rng)
    trees.sweep(y)
    return y


def anneal():
    """The Ising field, lambda = 1, against simulated annealing."""
    mrf = ising_field()
    result = peers.dwave_anneal(mrf)
    if result is None:
        return
    _, theirs, took = result
    tf.anneal(mrf, maxiter=2, rng=0)
    best_search(mrf, maxiter=10, rng=0)
    ours = tf.anneal(mrf, maxiter=4000, rng=0)
    rows = [
        ["dwave-samplers annealing, 4000 sweeps", f"{theirs:,.0f}", f"{took:.2f}", "1"],
        [
            "anneal, 4000 sweeps",
            f"{ours.fun:,.0f}",
            f"{ours.trace['seconds'][-1]:.2f}",
            f"1/{took / seconds_to(ours, theirs):.0f}",
        ],
    ]
    for name, res in (
        ("T-ILS (paper)", tf.t_ils(mrf, rng=0, time_limit=took)),
        ("T-ILS (mixed jumps, per component)", best_search(mrf, rng=0, time_limit=took)),
        ("T-ILS (scrambled boxes, per component)", best_search(mrf, rng=0, time_limit=took, jump=SCRAMBLED)),
    ):
        reached = took / seconds_to(res, theirs)
        share = f"{abs(theirs - res.fun) / abs(theirs):.2%} {'lower' if res.fun < theirs else 'higher'}"
        rows.append([name, f"{res.fun:,.0f} ({share})", f"{took:.2f}", f"1/{reached:.0f}" if reached > 0 else "never"])
    columns = ["Ising 500x500, lambda = 1", "energy", "s", "share of its time to its energy"]
    table("Annealing and T-ILS", columns, rows)


def best():
    """The best jump and acceptance on the pictures, from scan-line, without any dual."""
    if not has_pictures():
        return
    rows = []
    for name, mrf in (("Tsukuba", problems.tsukuba()), ("Venus", problems.venus()), ("Penguin", problems.penguin())):
        best_search(mrf, "scan-line", maxiter=12, rng=0)
        runs = [best_search(mrf, "scan-line", rng=seed, time_limit=4.0) for seed in range(5)]
        for seconds in (0.5, 1.0, 2.0, 4.0):
            energies = [energy_at(res, seconds) for res in runs]
            goal = GOALS[name].get(seconds)
            rows.append(
                [
                    f"{name}, {seconds:g} s",
                    f"{np.median(energies):,.0f}",
                    f"{min(energies):,.0f} - {max(energies):,.0f}",
                    f"{goal:,}" if goal else "",
                ]
            )
    columns = ["T-ILS, mixed jumps, per component", "energy (median of 5)", "range", "goal"]
    table("The paper's energies without any bound, two threads", columns, rows)


def jumps():
    """The gain of each jump and each acceptance, 2 s each."""
    models = {"Ising": (ising_field(), None)}
    if has_pictures():
        models["Tsukuba"] = problems.tsukuba(), "scan-line"
    choices = {
        "UniformJump(), Metropolis()": (moves.UniformJump(), moves.Metropolis()),
        "UniformJump()": (moves.UniformJump(), None),
        "UniformJump(0.6)": (moves.UniformJump(0.6), None),
        "BetaJump()": (moves.BetaJump(), None),
        "LevyJump()": (moves.LevyJump(), None),
        "MessageJump()": (moves.MessageJump(), None),
        "BoxJump('best')": (moves.BoxJump("best"), None),
        "BoxJump('neighbour')": (moves.BoxJump("neighbour"), None),
        "BoxJump('random')": (moves.BoxJump("random"), None),
        "BoxJump('scramble')": (SCRAMBLED, None),
        "SegmentJump('neighbour')": (moves.SegmentJump("neighbour"), None),
        "SegmentJump('shift')": (moves.SegmentJump("shift"), None),
        "MixedJump()": (moves.MixedJump(), None),
        "MixedJump(), Greedy()": (moves.MixedJump(), moves.Greedy()),
        "MixedJump(), PerComponent(Metropolis(1))": (moves.MixedJump(), moves.PerComponent(moves.Metropolis(1.0))),
        "MixedJump(), Unvisited(PerComponent())": (moves.MixedJump(), moves.Unvisited(moves.PerComponent())),
    }
    rows = []
    for what, (jump, accept) in choices.items():
        row = [what]
        for mrf, x0 in models.values():
            options = {"jump": jump, "accept": accept or moves.PerComponent(), "trees": "bands", "rng": 0}
            tf.t_ils(mrf, x0, maxiter=3, **options)
            row.append(f"{tf.t_ils(mrf, x0, time_limit=2.0, **options).fun:,.0f}")
        rows.append(row)
    for what, solve in (
        (
            "4 searches with MixedJump(), merged",
            lambda mrf, x0: best_search(mrf, x0, rng=0, time_limit=2.0, restarts=4),
        ),
        ("genetic, merge", lambda mrf, x0: tf.genetic(mrf, x0, mutation=moves.MixedJump(), rng=0, time_limit=2.0)),
        (
            "genetic, site (the paper's proposal)",
            lambda mrf, x0: tf.genetic(mrf, x0, crossover="site", rng=0, time_limit=2.0),
        ),
        ("anneal", lambda mrf, x0: tf.anneal(mrf, x0, rng=0, time_limit=2.0)),
    ):
        rows.append([what, *(f"{solve(mrf, x0).fun:,.0f}" for mrf, x0 in models.values())])
    table("Energy after 2 s, accepted per component unless said", ["jump", *models], rows)

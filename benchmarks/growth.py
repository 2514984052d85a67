"""How cost grows with the number of sites."""

import numpy as np

import peers
import treefield as tf
from measure import milliseconds, picture, say, slope, table
from treefield_reproduce.methods import BEST
from treefield_reproduce.plotting import new_figure

SIZES = (64, 128, 256, 512, 1024, 2048)  # sites along each side
FITTED = 128  # the slope is of this size and larger ones
LABELS = 8
ROUNDS = 5
SETTLED = 8  # sweeps before those that are timed: the first packs the costs, and later ones change less
STYLES = {"treefield": "o-", "peer": "s--", "yardstick": "k:"}
WORDS = (
    "Growth: costs are random, so that the sites of small and large grids are alike. Timed is the sweep after "
    f"{SETTLED} from a random start, again and again; iterations from the second on, T-ILS's the mean of 12, which "
    "jump in several ways; expansion's first cycle. One thread, but where two are named. Beyond the caches a site "
    "costs more, as a copy of the costs shows. Others on the machine slow long runs more than short ones: the slope "
    "of the least times of all rounds knows less of them."
)


def growth():
    """Time per sweep, iteration or cycle on grids of 64^2 to 2048^2 sites, and the slope of its growth."""
    times = {name: {} for name in METHODS}
    for number in range(ROUNDS):
        for size in SIZES:
            mrf = field(size, seed=number)
            for name, (_, work, largest) in METHODS.items():
                seconds = work(mrf) if size <= largest else None
                if seconds is not None:
                    times[name].setdefault(size, []).append(seconds)
    times = {name: by_size for name, by_size in times.items() if by_size}
    medians = {
        name: {size: float(np.median(some)) for size, some in by_size.items()} for name, by_size in times.items()
    }
    rows = []
    for name, by_size in medians.items():
        least = {size: min(some) for size, some in times[name].items()}
        cells = [f"{1e3 * by_size[size]:.3g}" if size in by_size else "" for size in SIZES]
        rows.append([name, *cells, f"{fit_slope(by_size):.2f}", f"{fit_slope(least):.2f}"])
    columns = [f"ms; float32, Potts, {LABELS} labels", *(f"{size}^2" for size in SIZES), "slope", "of the least"]
    title = f"Growth with sites: medians of {ROUNDS} rounds; slope of log time to log sites from {FITTED}^2"
    table(title, columns, rows)
    say(WORDS)
    draw(medians)


def field(size, seed):
    """Random whole costs, with which neighbours disagree about as often as not."""
    costs = np.random.default_rng(seed).integers(0, 256, (size, size, LABELS), dtype=np.uint8)
    return tf.GridMRF(costs.astype(np.float32), tf.Potts(64.0))


def fit_slope(by_size):
    """The slope of time against sites."""
    sizes = [size for size in by_size if size >= FITTED]
    return slope([size**2 for size in sizes], [by_size[size] for size in sizes])


def time_sweep(threads):
    """Time a banded T-ICM sweep."""

    def seconds(mrf):
        trees = mrf.backend.tree_set(threads=threads)
        x = np.random.default_rng(0).integers(LABELS, size=mrf.shape, dtype=np.int32)
        for _ in range(SETTLED):
            trees.sweep(x)
        y = x.copy()
        repeat = 7 if mrf.size > 2**18 else 25
        return milliseconds(lambda: trees.sweep(y), repeat, prepare=lambda: np.copyto(y, x)) / 1e3

    return seconds


def time_iteration(solve, iterations, **options):
    """Time an iteration of a solver: the first, in which costs are brought in, left out."""

    def seconds(mrf):
        trace = solve(mrf, maxiter=iterations + 1, rng=0, **options).trace["seconds"]
        return (trace[-1] - trace[-1 - iterations]) / iterations

    return seconds


def time_cycle(solve):
    """Time one cycle of a peer's expansion; None without it."""

    def seconds(mrf):
        result = solve(mrf, 1)
        return None if result is None else result[2]

    return seconds


def time_copy(mrf):
    """Time a copy of the costs, the yardstick of memory."""
    target = np.zeros_like(mrf.unary)
    return milliseconds(lambda: np.copyto(target, mrf.unary), 9) / 1e3


METHODS = {  # the kind, how a model is timed in seconds, and the largest size
    "T-ICM sweep": ("treefield", time_sweep(1), 2048),
    "T-ICM sweep, two threads": ("treefield", time_sweep(2), 2048),
    "T-ILS (best) iteration": ("treefield", time_iteration(tf.t_ils, 12, threads=1, **BEST), 2048),
    "trw iteration, int16": ("treefield", time_iteration(tf.trw, 6, arithmetic="int16", tol=0), 2048),
    "loopy_bp iteration": ("treefield", time_iteration(tf.loopy_bp, 4, tol=0), 1024),
    "PyMaxflow expansion cycle": ("peer", time_cycle(peers.pymaxflow_expansion), 512),
    "gco-wrapper expansion cycle": ("peer", time_cycle(peers.gco_expansion), 512),
    "np.copyto of the costs": ("yardstick", time_copy, 2048),
}


def draw(medians):
    """Time against sites, both logarithmic."""
    if peers.imported("matplotlib", "matplotlib") is None:
        return
    figure, ((ax,),) = new_figure(1, 1, width=8.6, height=5.2)
    for name, by_size in medians.items():
        sites = [size**2 for size in by_size]
        ax.loglog(
            sites,
            list(by_size.values()),
            STYLES[METHODS[name][0]],
            markersize=4,
            label=f"{name}: {fit_slope(by_size):.2f}",
        )
    linear = np.array([FITTED, max(SIZES)]) ** 2
    ax.loglog(linear, 2e-9 * linear, color="0.6", linewidth=1, label="linear, for the eye: 1")
    ax.set_xticks([size**2 for size in SIZES], [f"{size}²" for size in SIZES], minor=False)
    ax.minorticks_off()
    ax.set(xlabel="sites", ylabel="seconds", title=f"Cost against sites, Potts, {LABELS} labels, float32")
    ax.grid(alpha=0.25)
    ax.legend(title=f"slope from {FITTED}²", fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    picture(figure, "growth.png")

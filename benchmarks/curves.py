"""Energy against time, with the peers, and how long treefield takes to reach their energies."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import peers
import problems
import treefield as tf
from dual import REFERENCE, warm
from measure import picture, say, table
from search import has_pictures, seconds_to
from treefield.io.files import package_version
from treefield_reproduce.methods import METHODS
from treefield_reproduce.plotting import draw_curves, legend_below, new_figure, zoom
from treefield_reproduce.problems import ising_field

REPEATS = 3  # of each search, with different seeds, and of each peer
EXPANSION, ANNEALING = ("PyMaxflow", "gco-wrapper"), ("dwave-samplers",)
OURS = ("minimize", "T-ILS (best)", "T-ILS (paper)", "TRW-S")
COMPARED = OURS[:2]  # whose times to a peer's energy are listed
NAMES = {
    "PyMaxflow": "PyMaxflow, expansion, by cycle",
    "gco-wrapper": "gco-wrapper, expansion, 1, 2, ... cycles",
    "dwave-samplers": "dwave-samplers, annealing, 10 to 4000 sweeps",
}
COLOURS = {"PyMaxflow": "#c0392b", "gco-wrapper": "#e67e22", "dwave-samplers": "#8e44ad"}
LEAST, MOST = 1e-4, 20.0  # per cent above the bound: what is drawn for less, and where the picture ends


@dataclasses.dataclass(frozen=True)
class Problem:
    """A model, the time for its searches, the peers that take it, and published energies."""

    title: str
    load: Callable[[], Any]
    seconds: float
    peers: tuple[str, ...] = EXPANSION
    x0: Any = "scan-line"  # of T-ILS
    published: tuple[float, float, float] | None = None  # TRW-S, its bound, expansion
    goal: int | None = None  # PyMaxflow's time over ours


PROBLEMS = {
    "ising": Problem("Ising 500x500, lambda = 1", ising_field, 4.0, ANNEALING, None),
    "tsukuba": Problem("Tsukuba", problems.tsukuba, 3.0, goal=15),
    "venus": Problem("Venus", problems.venus, 5.0, goal=8),
    "penguin": Problem("Penguin", problems.penguin, 8.0, goal=3),
    "middlebury-tsukuba": Problem(
        "Middlebury tsukuba", problems.middlebury_tsukuba, 3.0, published=REFERENCE["tsukuba"]
    ),
    "middlebury-venus": Problem("Middlebury venus", problems.middlebury_venus, 5.0, published=REFERENCE["venus"]),
    "middlebury-penguin": Problem(
        "Middlebury penguin", problems.middlebury_penguin, 6.0, published=REFERENCE["penguin"]
    ),
}


def curves():
    """Energy against time on the paper's and the Middlebury problems, and our time to each peer's energy."""
    rows, ended = [], []
    for name, problem in PROBLEMS.items():
        if name != "ising" and not has_pictures():
            break
        mrf = problem.load()
        points = ask_peers(mrf, problem)
        runs, ends = repeat_runs(mrf, problem, list(points))
        rows += [peer_row(problem, peer, ends[peer], runs) for peer in points]
        rows += published_rows(problem, runs)
        ended += [end_row(problem, method, runs[method]) for method in runs]
        draw(name, problem, runs, {peer: peer_points(points[peer], ends[peer]) for peer in points})
    times = [column for method in COMPARED for column in (f"{method}: s to it", "share")]
    title = f"The peers' energies, and how long treefield takes to them: medians of {REPEATS}, ours by two threads"
    table(title, ["", "energy", "s", *times, "goal"], rows)
    table(f"Where treefield's searches end, medians of {REPEATS}", ["", "energy", "s", "gap"], ended)


def ask_peers(mrf, problem):
    """By peer, the labelling, energy and seconds at each step of its search.

    A peer that is not installed or does not take the model is left out, and a line says so.
    """
    points = {}
    for peer in problem.peers:
        try:
            found = peers.CURVES[peer](mrf)
        except ValueError as error:
            say(f"{problem.title}: not for {peer}, since {error}")
            continue
        if found is not None:
            points[peer] = found
    return points


def repeat_runs(mrf, problem, able):
    """The searches of each method, and the result of each peer with its defaults.

    They take turns, so that other load on the machine affects them alike.
    """
    runs, ends = {method: [] for method in OURS}, {peer: [] for peer in able}
    warm(mrf)
    for seed in range(REPEATS):
        for method in OURS:
            if seed == 0 or method != "TRW-S":  # in which nothing is random
                runs[method].append(run_method(mrf, method, problem, seed, time_limit=problem.seconds))
        for peer in able:
            ends[peer].append(peers.PEERS[peer](mrf))
    return runs, ends


def run_method(mrf, method, problem, seed, **limits):
    """One run of one of ours."""
    chosen = METHODS[method]
    start = {"x0": problem.x0} if chosen.solve is tf.t_ils else {}
    return chosen.solve(mrf, rng=seed, **limits, **start, **chosen.options)


def peer_row(problem, peer, ends, runs):
    """A row: a peer's energy and time, and our time to that energy."""
    energy, seconds = (float(np.median([end[k] for end in ends])) for k in (1, 2))
    row = [f"{problem.title}: {peer} {package_version(peer)}", f"{energy:,.0f}", f"{seconds:.2f}"]
    for method in COMPARED:
        row += time_cells(runs[method], energy, seconds)
    return [*row, f"1/{problem.goal}" if problem.goal and peer == "PyMaxflow" else ""]


def published_rows(problem, runs):
    """Rows: energies of the original C++ library, whose time is not known here."""
    if problem.published is None:
        return []
    rows = []
    for name, energy in zip(("TRW-S", "expansion"), problem.published[::2], strict=True):
        times = [cell for method in COMPARED for cell in time_cells(runs[method], energy)]
        rows.append([f"{problem.title}: {name}, C++, published", f"{energy:,}", "", *times, ""])
    return rows


def time_cells(runs, energy, theirs=None):
    """Cells: the median time to an energy, and which share of a peer's time that is."""
    seconds = float(np.median([seconds_to(res, energy) for res in runs]))
    if not np.isfinite(seconds):
        return ["not reached", ""]
    return [f"{seconds:.3f}", "" if theirs is None or seconds == 0 else f"1/{theirs / seconds:.1f}"]


def end_row(problem, method, runs):
    """A row: the medians of energy, seconds and gap at the end of our runs."""
    energy, seconds, gap = (
        float(np.median(values))
        for values in zip(*((res.fun, res.trace["seconds"][-1], res.gap) for res in runs), strict=True)
    )
    return [f"{problem.title}: {method}", f"{energy:,.0f}", f"{seconds:.2f}", "" if np.isnan(gap) else f"{gap:.1e}"]


def peer_points(points, ends):
    """A peer's way as arrays of seconds and energies, its median end last."""
    last = [np.median([end[k] for end in ends]) for k in (2, 1)]
    return np.array([[seconds, energy] for _, energy, seconds in points] + [last]).T


def draw(name, problem, runs, points):
    """Two panels: energies, and how far they are above the bound, which tells small differences."""
    if peers.imported("matplotlib", "matplotlib") is None:
        return
    figure, ((left, right),) = new_figure(1, 2, width=12.5, height=5.2)
    bound = max(res.lower_bound for method in ("minimize", "TRW-S") for res in runs[method])
    lines = {"lower bound": (bound, ":", "black")}
    if problem.published is not None:
        lines["TRW-S, C++, published"] = problem.published[0], "-.", "#5b6c2f"
        lines["expansion, C++, published"] = problem.published[2], "-.", "#c0392b"
    draw_panel(left, problem.title, runs, points, lines, lambda energy: energy)
    ends = [res.trace["best"][-1] for results in runs.values() for res in results]
    zoom(left, [*ends, *(way[1].min() for way in points.values()), *(line[0] for line in lines.values())])
    left.set_ylabel("energy")
    above = {line: how for line, how in lines.items() if line != "lower bound"}
    scaled = f"{problem.title}: above the lower bound"
    draw_panel(
        right, scaled, runs, points, above, lambda energy: np.maximum(100 * (energy - bound) / abs(bound), LEAST)
    )
    right.set(yscale="log", ylabel=f"% above the bound, at least {LEAST:g}")
    right.set_ylim(top=min(MOST, right.get_ylim()[1]))
    right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    legend_below(figure, left)
    picture(figure, f"curves-{name}.png")


def draw_panel(ax, title, runs, points, lines, change):
    """Our curves, the peers' points and what is known, with energies changed for the axis."""
    traces = {}
    for method, results in runs.items():
        traces[method] = [res.trace.copy() for res in results]
        for trace in traces[method]:
            trace["best"] = change(trace["best"])
    draw_curves(ax, traces, "seconds", title)
    for peer, (seconds, energies) in points.items():
        style = {"color": COLOURS[peer], "linewidth": 1}
        ax.plot(seconds[:-1], change(energies[:-1]), "o--", markersize=4, label=NAMES[peer], **style)
        ax.plot(seconds[-1], change(energies[-1]), "D", markersize=8, label=f"{peer}, the whole call (median)", **style)
    for line, (energy, dashes, colour) in lines.items():
        ax.axhline(change(energy), linestyle=dashes, color=colour, linewidth=1, label=line)

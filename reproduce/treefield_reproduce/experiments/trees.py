"""Figures 1 to 3, which explain: two passes on a tree, conditional trees, basin hopping."""

from __future__ import annotations

import dataclasses

import numpy as np

import treefield as tf
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.experiments import basin_hopping
from treefield_reproduce.experiments.conditional_trees import draw_trees, tree_sets
from treefield_reproduce.experiments.two_pass_bp import UNARY, WEIGHT, draw_passes, in_grid
from treefield_reproduce.problems import ising_field
from treefield_reproduce.runner import Runner
from treefield_reproduce.summaries import format_percent

GRID = 9, 9  # of figure 2
HOPS, ITERATIONS = 8, 150  # on the path of figure 3, and in its run


def experiment(runner: Runner) -> Experiment:
    """Draw what the paper draws, from the package's own trees and from runs."""
    trees = Experiment("trees", runner)
    _two_passes(trees)
    _conditional_trees(trees)
    _basin_hopping(trees, runner)
    return trees.finish()


def _two_passes(trees: Experiment) -> None:
    figure, passes = draw_passes()
    exact = tf.tree_bp(in_grid(UNARY, np.full(len(UNARY), WEIGHT)))
    trees.add_section(
        "Exact search on a tree in two passes",
        [
            "A tree has no cycles, so its best labelling can be found without trying all of them. Each site tells its "
            "neighbour, for each label the neighbour might take, the least cost of everything on its own side: that "
            "is a message (Eq. 5). A site can send to its parent once all its children have sent to it; then, from the "
            "root back, each parent can send to its children.",
            f"Here are 7 sites with 3 labels: 3^7 = {3**7:,} labellings, but only 12 messages of 3 numbers. An edge "
            f"costs {WEIGHT:g} times the difference of its two labels. When all messages are sent, a site adds them to "
            "its own costs and takes the label with the least sum (Eq. 6). That sum is the same at every site: it is "
            f"the energy of the best labelling (Eq. 9), {exact.fun:g}, and tree_bp finds the same.",
        ],
        figures={
            "two-passes": (
                figure,
                "Figure 1: two-pass belief propagation. Beside a site: its cost E of the labels 0, 1 and 2. On an "
                "arrow: the number in the order of sending, then the message, one value for each label of the site it "
                f"points to. In (c), sums of costs and messages, the least in bold ({passes.sums.min():g} everywhere), "
                "and the label in the circle.",
            )
        },
    )


def _conditional_trees(trees: Experiment) -> None:
    sets = tree_sets(GRID)
    combs, alternating, single, bands = (sets[name] for name in ("combs", "alternating", "rows-columns", "bands"))
    middle = GRID[0] // 2
    chosen = [combs[0], combs[2], alternating[0], alternating[2], single[middle], single[GRID[0] + middle], *bands[:2]]
    sites = GRID[0] * GRID[1]
    trees.add_section(
        "Conditional trees on a grid",
        [
            "A grid has cycles, but trees are hidden in it: keep the labels of some sites as they are, and the others "
            "form a tree. The costs of the edges to the fixed sites are added to the costs of the tree's sites: they "
            "are absorbed (Eq. 8). Two passes then find the best labels of the whole tree at once, and the energy "
            "cannot rise. T-ICM does this for one tree after the other, until every site has had its turn, and again.",
            "Rows that do not touch are several trees. Dummy edges, which cost nothing, make them one, as in the "
            "paper; a program may as well solve them side by side. A set is a list of trees that cover all sites: the "
            "paper's are single rows and columns, and alternate ones. Bands are treefield's own: the grid is cut into "
            "bands, all of them are swept together from top to bottom, and so each row sees what the row above has "
            "just found.",
        ],
        table=[
            {
                "tree set": name,
                "trees in a sweep": f"{len(members)}",
                "largest tree": f"{max(len(tree.sites) for tree in members)} of {sites} sites",
            }
            for name, members in sets.items()
        ],
        name="tree-sets",
        figures={
            "conditional-trees": (
                draw_trees(GRID, chosen),
                "Figure 2: examples of conditional trees on a grid (connecting empty sites). Filled sites are fixed. "
                "Arrows: costs that are absorbed; dashes: edges that are not in use; dotted in (c, d): dummy edges. "
                "(g, h): one step of a sweep over bands, and the next.",
            )
        },
    )


@dataclasses.dataclass(frozen=True)
class _Landscape:
    """Statistics of the energies along a path."""

    mean: float
    unevenness: float
    on_jumps: float
    constancy: float


def _measure_landscape(path: basin_hopping.Path, energies: np.ndarray) -> _Landscape:
    on_jumps = basin_hopping.unevenness(path, energies, "jump")
    return _Landscape(
        float(energies.mean()), basin_hopping.unevenness(path, energies), on_jumps, basin_hopping.constancy(energies)
    )


def _basin_hopping(trees: Experiment, runner: Runner) -> None:
    size = runner.effort.small
    landscapes: dict[str, list[_Landscape]] = {name: [] for name in ("the labelling itself", *basin_hopping.SEARCHES)}
    figures = {}
    for seed in runner.seeds():
        mrf = ising_field(size, 1.0, seed)
        hops, res = basin_hopping.record_hops(trees, mrf, seed, min(ITERATIONS, runner.effort.iterations))
        path = basin_hopping.build_path(mrf, hops[:HOPS], seed)
        surrogates = {
            search: basin_hopping.surrogate_energies(runner, mrf, path, search) for search in basin_hopping.SEARCHES
        }
        for name, energies in {"the labelling itself": path.energies, **surrogates}.items():
            landscapes[name].append(_measure_landscape(path, energies))
        if seed == runner.seed:
            figures["basin-hopping"] = basin_hopping.draw_path(path, surrogates), _PATH_CAPTION
            figures["run"] = basin_hopping.draw_run(mrf, hops, res.trace["best"][2:]), _RUN_CAPTION
    trees.add_section(
        f"Basin hopping on an Ising field, {size} x {size}",
        [
            "T-ICM stops in a local minimum. T-ILS then jumps: it gives up to 10 % of the sites random labels, which "
            "costs much energy, and searches again from there. If the new minimum is accepted, it goes on from it; "
            "if not, it goes back.",
            f"The paper sketches this; here it is measured. Runs of T-ILS with the paper's settings on "
            f"{runner.effort.seeds} random fields (λ = 1) start from random labels. The path begins where the first "
            f"local search ended and follows {min(HOPS, runner.effort.iterations)} jumps. Between two labellings, the "
            "sites in which they differ are changed one by one in random order. From points all along the path ICM and "
            "T-ICM are started and go on until they are stuck: where they end is the landscape that a search sees "
            "which uses them. T-ILS itself makes one sweep of T-ICM after a jump, as in the paper, which does not "
            "always lead all the way down.",
            "The landscape of T-ICM should be lower and smoother. Lower: the mean energy. Smoother: by how much the "
            "energy differs from one point to the next, and how often it does not differ at all, because both points "
            "lie in one basin. As T-ILS chose the path with T-ICM, jumps are also counted alone: they are random.",
        ],
        table=[_row(name, figures_of) for name, figures_of in landscapes.items()],
        name="landscapes",
        figures=figures,
    )
    _compare(trees, *(landscapes[search] for search in basin_hopping.SEARCHES))


_PATH_CAPTION = (
    "Figure 3: basin hopping, from a run. (a) The energy on the way: up with each jump, down with each local search. "
    "Dotted: where ICM and T-ICM end when they start there. (b) The dotted curves again, enlarged: T-ICM's is lower "
    "and smoother."
)
_RUN_CAPTION = "The same run with all its iterations: energy after the jump, after the local search, and the best."


def _row(name: str, landscapes: list[_Landscape]) -> dict[str, str]:
    def mean(field: str) -> float:
        return float(np.mean([getattr(one, field) for one in landscapes]))

    return {
        "energy of": name if name not in basin_hopping.SEARCHES else f"where {name} ends",
        "mean": f"{mean('mean'):,.1f}",
        "from one point to the next": f"{mean('unevenness'):.2f}",
        "on jumps alone": f"{mean('on_jumps'):.2f}",
        "points like the one before": format_percent(mean("constancy")),
    }


def _compare(trees: Experiment, icm: list[_Landscape], t_icm: list[_Landscape]) -> None:
    fields = len(icm)
    lower = sum(ours.mean < theirs.mean for ours, theirs in zip(t_icm, icm, strict=True))
    smoother = sum(ours.unevenness < theirs.unevenness for ours, theirs in zip(t_icm, icm, strict=True))
    means = [np.mean([one.mean for one in landscapes]) for landscapes in (t_icm, icm)]
    steps = [np.mean([one.unevenness for one in landscapes]) for landscapes in (t_icm, icm)]
    trees.check_claim(
        "Figure 3: T-ICM ends lower than ICM (mean energy)",
        f"{means[0]:,.1f}, {means[1]:,.1f}; {lower} of {fields} fields",
        lower == fields,
        "on so small a field both may find the same minima",
    )
    trees.check_claim(
        "Figure 3: T-ICM makes a smoother landscape than ICM (mean step)",
        f"{steps[0]:.2f}, {steps[1]:.2f}; {smoother} of {fields} fields",
        smoother == fields,
        "on so small a field one other minimum makes the difference",
    )

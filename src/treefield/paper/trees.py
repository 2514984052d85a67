"""Figures 1 to 3, which explain: two passes on a tree, conditional trees, basin hopping."""

from __future__ import annotations

import dataclasses

import numpy as np

import treefield as tf
from treefield.paper import basins
from treefield.paper.conditional import draw_trees, tree_sets
from treefield.paper.found import percent
from treefield.paper.lab import Experiment, Lab
from treefield.paper.problems import ising_field
from treefield.paper.two_pass import UNARY, WEIGHT, draw_passes, in_grid

GRID = 9, 9  # of figure 2
HOPS, ITERATIONS = 8, 150  # on the path of figure 3, and in its run


def experiment(lab: Lab) -> Experiment:
    """Draw what the paper draws, from the package's own trees and from runs."""
    trees = Experiment("trees", lab)
    _two_passes(trees)
    _conditional_trees(trees)
    _basin_hopping(trees, lab)
    return trees.finish()


def _two_passes(trees: Experiment) -> None:
    figure, passes = draw_passes()
    exact = tf.tree_bp(in_grid(UNARY, np.full(len(UNARY), WEIGHT)))
    trees.section(
        "Exact search on a tree in two passes",
        [
            "A tree has no cycles, so its best labelling can be found without trying all of them. Each site tells its "
            "neighbour, for each label the neighbour might take, the least cost of everything on its own side: that "
            "is a message (Eq. 5). A site can tell its parent once all its children have told it; then, from the root "
            "back, each parent can tell its children.",
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
    trees.section(
        "Conditional trees on a grid",
        [
            "A grid has cycles, but trees are hidden in it: keep the labels of some sites as they are, and the others "
            "form a tree. What the fixed sites next to it cost is added to the costs of the tree's own sites: it is "
            "absorbed (Eq. 8). Two passes then find the best labels of the whole tree at once, and the energy cannot "
            "rise. T-ICM does this for one tree after the other, until every site has had its turn, and again.",
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
class _Measured:
    """What the energies along a path are like."""

    mean: float
    unevenness: float
    on_jumps: float
    constancy: float


def _measured(path: basins.Path, energies: np.ndarray) -> _Measured:
    on_jumps = basins.unevenness(path, energies, "jump")
    return _Measured(float(energies.mean()), basins.unevenness(path, energies), on_jumps, basins.constancy(energies))


def _basin_hopping(trees: Experiment, lab: Lab) -> None:
    size = lab.effort.small
    measured: dict[str, list[_Measured]] = {name: [] for name in ("the labelling itself", *basins.SEARCHES)}
    figures = {}
    for seed in lab.seeds():
        mrf = ising_field(size, 1.0, seed)
        hops, res = basins.hops_of(trees, mrf, seed, min(ITERATIONS, lab.effort.iterations))
        path = basins.path_of(mrf, hops[:HOPS], seed)
        surrogates = {search: basins.surrogate(lab, mrf, path, search) for search in basins.SEARCHES}
        for name, energies in {"the labelling itself": path.energies, **surrogates}.items():
            measured[name].append(_measured(path, energies))
        if seed == lab.seed:
            figures["basin-hopping"] = basins.draw_path(path, surrogates), _PATH_CAPTION
            figures["run"] = basins.draw_run(mrf, hops, res.trace["best"][2:]), _RUN_CAPTION
    trees.section(
        f"Basin hopping on an Ising field, {size} x {size}",
        [
            "T-ICM stops in a local minimum. T-ILS then jumps: it gives up to 10 % of the sites random labels, which "
            "costs much energy, and searches again from there. If the new minimum is accepted, it goes on from it; "
            "if not, it goes back.",
            f"The paper sketches this; here it is measured. Runs of T-ILS with the paper's settings on "
            f"{lab.effort.seeds} random fields (λ = 1) start from random labels. The path begins where the first "
            f"local search ended and follows {min(HOPS, lab.effort.iterations)} jumps. Between two labellings, the "
            "sites in which they differ are changed one by one in random order. From points all along the path ICM and "
            "T-ICM are started and go on until they are stuck: where they end is the landscape that a search sees "
            "which uses them. T-ILS itself makes one sweep of T-ICM after a jump, as in the paper, which does not "
            "always lead all the way down.",
            "The landscape of T-ICM should be lower and smoother. Lower: the mean energy. Smoother: by how much the "
            "energy differs from one point to the next, and how often it does not differ at all, because both points "
            "lie in one basin. As T-ILS chose the path with T-ICM, jumps are also counted alone: they are random.",
        ],
        table=[_row(name, figures_of) for name, figures_of in measured.items()],
        name="landscapes",
        figures=figures,
    )
    _compare(trees, *(measured[search] for search in basins.SEARCHES))


_PATH_CAPTION = (
    "Figure 3: basin hopping, from a run. (a) The energy on the way: up with each jump, down with each local search. "
    "Dotted: where ICM and T-ICM end when they start there. (b) The dotted curves again, enlarged: T-ICM's is lower "
    "and smoother."
)
_RUN_CAPTION = "The same run with all its iterations: energy after the jump, after the local search, and the best."


def _row(name: str, measured: list[_Measured]) -> dict[str, str]:
    def mean(field: str) -> float:
        return float(np.mean([getattr(one, field) for one in measured]))

    return {
        "energy of": name if name not in basins.SEARCHES else f"where {name} ends",
        "mean": f"{mean('mean'):,.1f}",
        "from one point to the next": f"{mean('unevenness'):.2f}",
        "on jumps alone": f"{mean('on_jumps'):.2f}",
        "points like the one before": percent(mean("constancy")),
    }


def _compare(trees: Experiment, icm: list[_Measured], t_icm: list[_Measured]) -> None:
    fields = len(icm)
    lower = sum(ours.mean < theirs.mean for ours, theirs in zip(t_icm, icm, strict=True))
    smoother = sum(ours.unevenness < theirs.unevenness for ours, theirs in zip(t_icm, icm, strict=True))
    means = [np.mean([one.mean for one in measured]) for measured in (t_icm, icm)]
    steps = [np.mean([one.unevenness for one in measured]) for measured in (t_icm, icm)]
    trees.claim(
        "Figure 3: T-ICM ends lower than ICM (mean energy)",
        f"{means[0]:,.1f}, {means[1]:,.1f}; {lower} of {fields} fields",
        lower == fields,
        "on so small a field both may find the same minima",
    )
    trees.claim(
        "Figure 3: T-ICM makes a smoother landscape than ICM (mean step)",
        f"{steps[0]:.2f}, {steps[1]:.2f}; {smoother} of {fields} fields",
        smoother == fields,
        "on so small a field one other minimum makes the difference",
    )

"""The graph models of the benchmark data, each with what is known of its least energy."""

import csv

from problems import data_folder
from treefield import io


def known():
    """Every instance of arity 2: its name, a function that reads it, and the least energy that is known; proved but
    for Gset's."""
    folder = data_folder()
    with (folder / "uai" / "optima.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["max_arity"] == "2":
                path = folder / "uai" / row["file"]
                yield path.name.removesuffix(".uai"), lambda path=path: io.read_uai(path), float(row["min_energy"])
    yield "celar6sub0", lambda: io.read_wcsp(folder / "wcsp" / "celar6sub0.wcsp"), 159.0
    yield "1aho", lambda: io.read_cfn(folder / "wcsp" / "1aho.cfn.gz"), -33.72992
    yield from spin_glasses()


def spin_glasses():
    """The Chimera Ising model, the tori and Gset: with two labels, which samplers of others take, too."""
    folder = data_folder()
    yield "chimera 128", lambda: io.read_coo(folder / "spinglass" / "128power_001.txt", "SPIN", 1), -210.933333
    cuts = dict(
        line.split() for line in (folder / "spinglass" / "max_cut.txt").read_text().splitlines() if line.strip()
    )
    for name, cut in cuts.items():
        yield name.removesuffix("_5555"), *max_cut(folder / "spinglass" / name, float(cut))
    with (folder / "gset" / "best_known.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            path = folder / "gset" / f"{row['instance']}.txt"
            yield row["instance"], *max_cut(path, float(row["best_known_AOC"]))


def max_cut(path, cut):
    """A function that reads a graph, and the energy of a cut: sum w - 2 cut."""
    total = float(io.read_rudy(path).weights.sum())
    return lambda: io.read_rudy(path), total - 2 * cut

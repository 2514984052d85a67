"""Print and write to bench-output/ what treefield costs and finds next to its peers, as ratios measured in this run.

``make bench`` runs all sections, ``run.py NAME ...`` some, ``run.py --list`` lists their names.
"""

import argparse
import signal
import sys
import time

import again
import applications
import camera_sizes
import curves
import dual
import graphs
import growth
import large
import large_stereo
import limits
import measure
import pictures
import record
import ribbons
import scale
import search
import speed

SECTIONS = {
    section.__name__: section
    for section in (
        speed.sweeps,
        speed.ising,
        speed.threads,
        speed.memory,
        growth.growth,
        ribbons.ribbons,
        ribbons.ribbon_sweeps,
        ribbons.ising_search,
        ribbons.small_glasses,
        ribbons.potts_glasses,
        ribbons.wide_trees,
        ribbons.many_labels_unharmed,
        search.merge,
        search.anneal,
        search.best,
        search.jumps,
        dual.strips,
        dual.many_labels,
        dual.middlebury,
        dual.frustrated,
        again.again,
        curves.curves,
        graphs.optima,
        graphs.samplers,
        graphs.as_graph,
        large.tiles,
        large.large,
        large.per_label,
        scale.cluster,
        scale.seeds,
        applications.depth,
        large_stereo.large_depth,
        applications.noise,
        pictures.pictures,
        pictures.unseen,
        camera_sizes.megapixels,
        camera_sizes.holes,
        limits.limits,
        applications.startup,
    )
}


class Interrupted(BaseException):
    """Ctrl-C. Not KeyboardInterrupt, at which a search would return what it has found and the section would go on."""


def main(arguments):
    """Run the sections that are named, or all; each is written down as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a section; all if none is named")
    parser.add_argument("--list", action="store_true", help="name the sections and end")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section is named {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    if options.list:
        for name, section in SECTIONS.items():
            print(f"{name:22}{section.__doc__.splitlines()[0]}")
        return
    signal.signal(signal.SIGINT, stop)
    names = options.names or list(SECTIONS)
    for done, name in enumerate(names):
        try:
            run(name)
        except Interrupted:
            print(f"\ninterrupted in {name}; done: {', '.join(names[:done]) or 'nothing'}")
            sys.exit(130)
    print(f"\nThe tables are in {measure.OUTPUT.name}/: {record.MARKDOWN}, {record.DATA}")


def run(name):
    """Run one section and write its output."""
    start = time.time()
    measure.take_output()
    SECTIONS[name]()
    record.write_section(measure.OUTPUT, name, start, measure.take_output())


def stop(number, frame):
    """What Ctrl-C does."""
    raise Interrupted


if __name__ == "__main__":
    main(sys.argv[1:])

"""Where the ribbons of a grid lie: the obvious slow version.

Nothing here imports treefield. A ribbon is a list of sites, tuples of coordinates.
"""

import itertools


def parts(n, size, offset, ring):
    """An axis cut into parts of that size, and the colour of each: no two parts of one colour touch.

    The first part ends before `offset`, or on a closed axis begins there.
    """
    if ring:
        places = [(offset + k) % n for k in range(n)]
        found = [places[k : k + size] for k in range(0, n, size)]
    else:
        borders = [0, *range(offset, n, size), n]
        found = [list(range(*pair)) for pair in itertools.pairwise(borders)]
    colours = [k % 2 for k in range(len(found))]
    if ring and len(found) % 2 == 1:
        colours[-1] = 2
    return list(zip(found, colours, strict=True))


def phases(shape, axis, sizes, offsets, periodic, start=0):
    """All ribbons along an axis: a list for each phase. Of closed lines the site at `start` is left out."""
    others = [a for a in range(len(shape)) if a != axis]
    cuts = [parts(shape[a], size, offset, periodic[a]) for a, size, offset in zip(others, sizes, offsets, strict=True)]
    colours = 1 + max(colour for cut in cuts for _, colour in cut)
    along = [k for k in range(shape[axis]) if not (periodic[axis] and k == start)]
    found = [[] for _ in range(colours)]
    for pieces in itertools.product(*cuts):
        lines = itertools.product(*(coordinates for coordinates, _ in pieces))
        sites = [(*line[:axis], k, *line[axis:]) for line in lines for k in along]
        found[sum(colour for _, colour in pieces) % colours].append(sites)
    return found

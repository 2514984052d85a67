"""Union-find: forests of parent pointers that join sites into connected components, for grids and graphs."""

from treefield.kernels.simd.jit import inline_helper


@inline_helper
def join(parents, root, i):
    """Join the tree of site `i` to that of `root` (-1: none yet).

    Returns the lower of their roots, which becomes the root of both, and how many trees fewer there are.
    """
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    if root < 0 or root == i:
        return i, 0
    parents[max(root, i)] = min(root, i)
    return min(root, i), 1


@inline_helper
def number_roots(parents):
    """Number the trees in the order of their roots, which are their lowest sites; returns how many there are.

    On entry `parents` holds the parent of each site, -1 for a site in no tree; on return, the number of its tree or -1.
    """
    count = 0
    for i in range(len(parents)):
        parent = parents[i]
        if parent >= 0:
            parents[i] = count if parent == i else parents[parent]
            count += parent == i
    return count

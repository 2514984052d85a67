"""How narrow an order of a graph's sites can be: the obvious slow version. Nothing here imports treefield."""

import functools


def pathwidth(edges, sites):
    """The least possible largest number of sites that have entered and still have neighbours to come.

    Over all orders in which the sites can enter; a site leaves as soon as all its neighbours have entered.
    """
    sites = list(sites)
    bit = {site: 1 << number for number, site in enumerate(sites)}
    around = dict.fromkeys(sites, 0)
    for i, j in edges:
        if i in bit and j in bit and i != j:
            around[i] |= bit[j]
            around[j] |= bit[i]

    def border(entered):
        return sum(1 for site in sites if bit[site] & entered and around[site] & ~entered)

    @functools.cache
    def narrowest(entered):
        if not entered:
            return 0
        return max(border(entered), min(narrowest(entered & ~bit[site]) for site in sites if bit[site] & entered))

    return narrowest((1 << len(sites)) - 1)

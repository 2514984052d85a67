"""The obvious slow versions for graphs, in plain Python. Nothing here imports treefield.

A naive graph is a `Model`: the costs of every site's labels, pairs of sites, and one table for each pair, weight
included, [label of the first][label of the second]. There may be parallel edges and edges from a site to itself. +inf
is a forbidden cost; a rank is (how many of these, the sum of the others). Among labels of equal cost the lowest wins.
"""

import itertools
import math
from typing import NamedTuple


class Model(NamedTuple):
    unaries: list
    edges: list
    tables: list
    offset: float = 0.0


# --- energy ---------------------------------------------------------------------------------------------------------


def terms(model, x):
    """All costs of a labelling, but for the offset."""
    found = [costs[label] for costs, label in zip(model.unaries, x, strict=True)]
    return found + [table[x[i]][x[j]] for (i, j), table in zip(model.edges, model.tables, strict=True)]


def energy(model, x):
    return math.fsum([model.offset, *terms(model, x)]) if math.inf not in terms(model, x) else math.inf


def rank(model, x):
    costs = terms(model, x)
    return costs.count(math.inf), math.fsum([model.offset, *(cost for cost in costs if cost < math.inf)])


def merged(model):
    """The same with at most one edge between two sites, as the first of them goes, and none from a site to itself."""
    unaries, joined = [list(costs) for costs in model.unaries], {}
    for (i, j), table in zip(model.edges, model.tables, strict=True):
        a, b = range(len(unaries[i])), range(len(unaries[j]))
        if i == j:
            unaries[i] = [unaries[i][s] + table[s][s] for s in a]
        elif (j, i) in joined:
            joined[j, i] = [[joined[j, i][t][s] + table[s][t] for s in a] for t in b]
        else:
            before = joined.get((i, j), [[0.0] * len(b) for _ in a])
            joined[i, j] = [[before[s][t] + table[s][t] for t in b] for s in a]
    return Model(unaries, list(joined), list(joined.values()), model.offset)


def labellings(model):
    return itertools.product(*(range(len(costs)) for costs in model.unaries))


def minimum(model):
    """The least rank, and the first labelling that has it."""
    return min((rank(model, x), x) for x in labellings(model))


def least_energy(model):
    (forbidden, finite), _ = minimum(model)
    return math.inf if forbidden else finite


def chain_minimum(unaries, tables):
    """The least energy of a chain, site after site; the table of each edge is [label before][label after]."""
    costs = list(unaries[0])
    for own, table in zip(unaries[1:], tables, strict=True):
        costs = [min(c + row[t] for c, row in zip(costs, table, strict=True)) + own[t] for t in range(len(own))]
    return min(costs)


def min_marginals(model):
    """For each label of each site the least energy of all labellings that have it there."""
    best = [[math.inf] * len(costs) for costs in model.unaries]
    for x in labellings(model):
        value = energy(model, x)
        for i, label in enumerate(x):
            best[i][label] = min(best[i][label], value)
    return best


# --- sites and what is around them ----------------------------------------------------------------------------------


def neighbours_of(model, i):
    """The neighbours of a site, each as often as there are edges to it."""
    return [b if a == i else a for a, b in model.edges if i in (a, b) and a != b]


def label_ranks(model, x, i):
    """The rank that the labelling has for each label of site i."""
    return [rank(model, [*x[:i], label, *x[i + 1 :]]) for label in range(len(model.unaries[i]))]


def best_on(model, x, sites):
    """The least rank of all labellings that are x but for some sites."""
    best = rank(model, x)
    y = list(x)
    for labels in itertools.product(*(range(len(model.unaries[i])) for i in sites)):
        for i, label in zip(sites, labels, strict=True):
            y[i] = label
        best = min(best, rank(model, y))
    return best


def icm(model, x, order):
    """One sweep of single sites."""
    x = list(x)
    for i in order:
        ranks = label_ranks(model, x, i)
        x[i] = ranks.index(min(ranks))
    return x


def constant_ranks(model, x, sites):
    """The rank that the labelling has where all of some sites have the same label, for each that all of them have."""
    ranks = []
    for label in range(min(len(model.unaries[i]) for i in sites)):
        ranks.append(rank(model, [label if i in sites else other for i, other in enumerate(x)]))
    return ranks


# --- pieces ---------------------------------------------------------------------------------------------------------


def pieces(model, sites):
    """The connected components of some sites, in the order of their first ones."""
    left, found = sorted(sites), []
    while left:
        piece, front = set(), [left[0]]
        while front:
            i = front.pop()
            if i not in piece:
                piece.add(i)
                front += [j for j in neighbours_of(model, i) if j in left]
        left = [i for i in left if i not in piece]
        found.append(sorted(piece))
    return found


def components(model, x, y):
    """The connected components of the sites where two labellings differ, and how the rank changes on each."""
    found = pieces(model, [i for i in range(len(x)) if x[i] != y[i]])
    changes = []
    for piece in found:
        z = [y[i] if i in piece else x[i] for i in range(len(x))]
        before, after = rank(model, x), rank(model, z)
        changes.append((after[0] - before[0], after[1] - before[1]))
    return found, changes


def is_forest(model, sites):
    """Whether some sites and all edges between them have no cycle; of a merged model."""
    sites = set(sites)
    within = [edge for edge in model.edges if sites.issuperset(edge)]
    return len(within) == len(sites) - len(pieces(model, sites))


def greedy_forest(model, order):
    """Each site in turn that closes no cycle with those taken."""
    taken = []
    for i in order:
        if is_forest(model, [*taken, i]):
            taken.append(i)
    return taken


# --- messages -------------------------------------------------------------------------------------------------------


def tables_from(model):
    """{(i, j): the table of the edge between them, [label of i][label of j]}, both ways; of a merged model."""
    found = {}
    for (i, j), table in zip(model.edges, model.tables, strict=True):
        found[i, j] = [list(row) for row in table]
        found[j, i] = [list(row) for row in zip(*table, strict=True)]
    return found


def sent(model, tables, messages, i, j):
    """The min-sum message from i to j, less its least entry."""
    h = [
        cost + sum(messages[k, i][s] for k in neighbours_of(model, i) if k != j)
        for s, cost in enumerate(model.unaries[i])
    ]
    out = [min(h[s] + row[t] for s, row in enumerate(tables[i, j])) for t in range(len(model.unaries[j]))]
    return [value - min(out) for value in out]


def no_messages(model):
    return {(i, j): [0.0] * len(model.unaries[j]) for i, j in tables_from(model)}


def parallel_bp(model, messages, damping=0.0):
    """All messages from the old ones."""
    tables = tables_from(model)
    fresh = {pair: sent(model, tables, messages, *pair) for pair in messages}
    return {pair: _mixed(messages[pair], fresh[pair], damping) for pair in messages}


def sequential_bp(model, messages, damping=0.0):
    """Those of one site after the other, forth and back, from those just made."""
    tables, messages = tables_from(model), dict(messages)
    for i in [*range(len(model.unaries)), *reversed(range(len(model.unaries)))]:
        for j in neighbours_of(model, i):
            messages[i, j] = _mixed(messages[i, j], sent(model, tables, messages, i, j), damping)
    return messages


def _mixed(old, new, damping):
    return [damping * a + (1 - damping) * b for a, b in zip(old, new, strict=True)]


def beliefs(model, messages):
    """Every site's costs and all messages to it."""
    return [
        [cost + sum(messages[j, i][s] for j in neighbours_of(model, i)) for s, cost in enumerate(costs)]
        for i, costs in enumerate(model.unaries)
    ]


def decoded_in_turn(model, messages):
    """One site after the other, given the labels of those before it and the messages from those after it."""
    tables, x = tables_from(model), []
    for i, costs in enumerate(model.unaries):
        total = list(costs)
        for j in neighbours_of(model, i):
            for s in range(len(costs)):
                total[s] += tables[i, j][s][x[j]] if j < i else messages[j, i][s]
        x.append(total.index(min(total)))
    return x

"""The obvious slow versions of what messages say; models and words as in `naive`."""

import numpy as np

import naive

# --- min-marginals ---------------------------------------------------------------------------------------------------


def min_marginals(unary, tables, x, axis):
    """For each label of each site the least energy of x over all labels of the site's line along `axis`, the site's
    fixed.

    Two arrays (*shape, L): the number of infinite costs of the line and its edges, which comes first, and the sum of
    all finite costs.
    """
    infinite, finite = (np.zeros(unary.shape) for _ in range(2))
    everywhere = list(np.ndindex(*x.shape))
    for line in naive.lines(x.shape, axis):
        counts = naive._enumerate(_is_infinite(unary), [_is_infinite(table) for table in tables], x, line)
        energies = naive._enumerate(_finite_part(unary), [_finite_part(table) for table in tables], x, line)
        counts -= np.subtract(*(naive.conditional_energy(unary, tables, x, sites)[0] for sites in (everywhere, line)))
        choices = naive._digits(np.arange(len(counts)), unary.shape[-1], len(line))
        for k, i in enumerate(line):
            for label in range(unary.shape[-1]):
                chosen = choices[:, k] == label
                infinite[i][label] = counts[chosen].min()
                finite[i][label] = energies[chosen & (counts == infinite[i][label])].min()
    return infinite, finite


def min_marginals_by_search(unary, tables, x, axis):
    """The finite ones again, where lines are too long to enumerate: each label in turn is the only one left to a
    site."""
    result = np.zeros(unary.shape)
    for line in naive.lines(x.shape, axis):
        for i in line:
            for label in range(unary.shape[-1]):
                only = unary.astype(np.float64)
                only[i] = np.inf
                only[i][label] = unary[i][label]
                y = x.copy()
                y[tuple(np.transpose(line))] = naive.solve_chain(only, tables, x, line)
                result[i][label] = naive.conditional_energy(unary, tables, y, line)[1]
    return result


def softmin(costs, temperature):
    """Probabilities proportional to exp(-cost / temperature), along the last axis."""
    shares = np.exp((costs.min(axis=-1, keepdims=True) - costs) / temperature)
    return shares / shares.sum(axis=-1, keepdims=True)


def _is_infinite(costs):
    return np.isinf(costs).astype(np.float64)


def _finite_part(costs):
    return np.where(np.isinf(costs), 0.0, costs)


# --- loopy belief propagation ---------------------------------------------------------------------------------------


def no_messages(unary):
    """From every site to each of its neighbours: nothing yet."""
    *shape, labels = unary.shape
    return {(i, j): np.zeros(labels) for i in np.ndindex(*shape) for j in naive.neighbours(tuple(shape), i)}


def new_message(unary, tables, messages, i, j):
    """Eq. 5, less the least of what is sent."""
    h = unary[i].astype(np.float64) + sum(m for (_, to), m in messages.items() if to == i) - messages[j, i]
    return (h[:, None] - h.min() + naive.edge_table(tables, i, j)).min(axis=0)


def parallel_messages(unary, tables, messages, damping):
    """All messages at once."""
    new = {edge: new_message(unary, tables, messages, *edge) for edge in messages}
    return {edge: damping * messages[edge] + (1 - damping) * new[edge] for edge in messages}


def sequential_messages(unary, tables, messages, damping):
    """Along each axis, forth and back, each from those just made."""
    messages = dict(messages)
    shape = unary.shape[:-1]
    for axis in range(len(shape)):
        for step in (1, -1):
            for i in sorted(np.ndindex(*shape), key=lambda i: step * i[axis]):
                j = tuple(n + step * (a == axis) for a, n in enumerate(i))
                if (i, j) in messages:
                    new = new_message(unary, tables, messages, i, j)
                    messages[i, j] = damping * messages[i, j] + (1 - damping) * new
    return messages


def decoded(unary, messages):
    """Eq. 6, for every site by itself."""
    x = np.empty(unary.shape[:-1], np.int32)
    for i in np.ndindex(*x.shape):
        x[i] = (unary[i].astype(np.float64) + sum(m for (_, to), m in messages.items() if to == i)).argmin()
    return x


def decoded_in_turn(unary, tables, messages):
    """One site after the other: labels of the sites before, messages from those after."""
    x = np.empty(unary.shape[:-1], np.int32)
    for i in np.ndindex(*x.shape):
        costs = unary[i].astype(np.float64)
        for j in naive.neighbours(x.shape, i):
            costs = costs + (naive.edge_table(tables, j, i)[x[j]] if j < i else messages[j, i])
        x[i] = costs.argmin()
    return x

"""The obvious slow version of TRW-S, sequential tree-reweighted message passing (Kolmogorov, PAMI 2006).

Models and words as in `naive`, whose sites are tuples: tuples compare in raster order, so `j < i` says that j comes
before i. The trees are the chains along which sites only rise in that order; site i is on 1 / gamma_i of them.
"""

import numpy as np

import naive


def tables_of(mrf):
    """The explicit tables of a `GridMRF`, from what it says of itself. Costs must be finite."""
    pairwise = mrf.pairwise
    weights = [1.0] * len(mrf.shape) if mrf.weights is None else mrf.weights
    tables = []
    for axis, weight in enumerate(weights):
        table = pairwise.tables[axis] if hasattr(pairwise, "tables") else pairwise.table(mrf.n_labels)
        weight = pairwise.weight * np.broadcast_to(np.asarray(weight, np.float64), naive.edge_shape(mrf.shape, axis))
        tables.append(weight[..., None, None] * np.asarray(table, np.float64))
    return tables


class NaiveTRW:
    """A lower bound on the energy of a `GridMRF`, and a labelling, from each iteration.

    `tables` are those of `naive`, where they are at hand: then nothing but the unary is taken from the model.
    `messages[i, j]`, i before j, is the one message of an edge: to j after a forward pass, to i after a backward one.
    """

    def __init__(self, mrf, tables=None):
        self.unary = mrf.unary.astype(np.float64)
        self.tables = tables_of(mrf) if tables is None else tables
        if not all(np.isfinite(costs).all() for costs in (self.unary, *self.tables)):
            raise ValueError("forbidden (+inf) costs have no place here; give finite ones")
        self.shape = mrf.shape
        self.sites = list(np.ndindex(*self.shape))
        self.messages = {(i, j): np.zeros(mrf.n_labels) for i in self.sites for j in self.after(i)}

    def before(self, i):
        return [j for j in naive.neighbours(self.shape, i) if j < i]

    def after(self, i):
        return [j for j in naive.neighbours(self.shape, i) if j > i]

    def gamma(self, i):
        """Every edge of the grid counts, also one of weight 0: it is on a chain like any other."""
        return 1 / max(len(self.before(i)), len(self.after(i)), 1)

    def iterate(self):
        """One pass forth and one back: the bound of the pass back, the labelling of the pass forth."""
        x = self.forward()
        return self.backward(), x

    def forward(self):
        """New messages to the sites after; each site is labelled before its messages from there are overwritten.

        What is subtracted from these messages is not counted: the pass back meets it twice, with opposite signs.
        """
        x = np.zeros(self.shape, np.int32)
        for i in self.sites:
            x[i] = self.label(i, x)
            total = self.all_costs(i)
            for j in self.after(i):
                self.messages[i, j], _ = self.send(self.gamma(i) * total - self.messages[i, j], i, j)
        return x

    def backward(self):
        """New messages to the sites before. All that is subtracted on the way adds up to the bound, since what is left
        in the end is at least 0."""
        bound = 0.0
        for i in reversed(self.sites):
            total = self.all_costs(i)
            least = total.min()
            bound += least
            total = total - least
            for j in self.before(i):
                self.messages[j, i], low = self.send(self.gamma(i) * total - self.messages[j, i], i, j)
                bound += low
        return bound

    def all_costs(self, i):
        """The unary of site i and the messages to it: during a pass, those of all its edges are."""
        total = self.unary[i].copy()
        for j in self.before(i):
            total += self.messages[j, i]
        for j in self.after(i):
            total += self.messages[i, j]
        return total

    def label(self, i, x):
        """The best label of site i given the labels x of the sites before; the lowest among equals."""
        costs = self.unary[i].copy()
        for j in self.after(i):
            costs += self.messages[i, j]
        for j in self.before(i):
            costs += naive.edge_table(self.tables, i, j)[:, x[j]]
        return costs.argmin()

    def send(self, h, i, j):
        """The message of costs h of site i to site j, and what was subtracted: the least of h, not of the message, so
        that a message is never beyond the least and the greatest cost of its edge."""
        low = h.min()
        return (h[:, None] + naive.edge_table(self.tables, i, j)).min(axis=0) - low, low

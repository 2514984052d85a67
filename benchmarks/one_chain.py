"""The plain way to sweep: one chain at a time, labels in the inner loop, as one would write it in C++ or Numba. What
lanes are compared with."""

import numba
import numpy as np


@numba.njit(nogil=True, fastmath=True, error_model="numpy")
def ising_pass(x, fields, along, across, costs, keep):
    """One pass over all rows of an Ising field; `along` and `across` are the couplings. Forward messages, back-
    pointers, labels."""
    rows, columns = x.shape
    for i in range(rows):
        m0 = m1 = np.float32(0)
        for j in range(columns):
            pull = fields[i, j, 1] - fields[i, j, 0]
            if i > 0:
                pull += 2 * across[i - 1, j] * (2 * x[i - 1, j] - 1)
            if i < rows - 1:
                pull += 2 * across[i, j] * (2 * x[i + 1, j] - 1)
            c0, c1 = m0, m1 + pull
            costs[j, 0], costs[j, 1] = c0, c1
            if j < columns - 1:
                w = along[i, j]
                keep[j, 0] = c0 + w <= c1 - w
                keep[j, 1] = c0 - w <= c1 + w
                m0, m1 = min(c0 + w, c1 - w), min(c0 - w, c1 + w)
                low = min(m0, m1)
                m0 -= low
                m1 -= low
        label = 0 if costs[columns - 1, 0] <= costs[columns - 1, 1] else 1
        x[i, columns - 1] = label
        for j in range(columns - 2, -1, -1):
            label = 0 if keep[j, label] else 1
            x[i, j] = label


class OneChainIsing:
    """Sweeps an Ising field the plain way."""

    def __init__(self, mrf):
        down, right = mrf.weights
        self.fields = mrf.unary
        self.turned = np.ascontiguousarray(mrf.unary.transpose(1, 0, 2))
        self.down, self.right = down, right
        self.down_turned, self.right_turned = np.ascontiguousarray(down.T), np.ascontiguousarray(right.T)
        longest = max(mrf.shape)
        self.work = np.empty((longest, 2), np.float32), np.empty((longest, 2), np.bool_)

    def sweep(self, x):
        """Rows, then columns, in place."""
        ising_pass(x, self.fields, self.right, self.down, *self.work)
        turned = np.ascontiguousarray(x.T)
        ising_pass(turned, self.turned, self.down_turned, self.right_turned, *self.work)
        x[...] = turned.T

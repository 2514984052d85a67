"""Alpha-expansion and annealing by other libraries, on treefield's models: what its users would else run.

Each function returns the labelling, its energy by treefield's own count and the seconds of the library's call alone
(imports and the change of dtype left out), started and stopped as the library does by default; None, with a word, where
the library is not installed. A model that the library cannot take is a ValueError: expansion needs a metric, and gco
ends the whole process where it meets what it does not like.
"""

import importlib
import time

import numpy as np

import problems
from measure import say
from treefield_reproduce.expansion import alpha_expansion, edge_weights, is_integral, metric_table, time_peer

LARGEST_IN_GCO = 10**7  # a greater cost makes it abort


def pymaxflow_expansion(mrf, cycles=None):
    """PyMaxflow, for a metric shared by all edges; at most `cycles` cycles."""
    if imported("maxflow", "PyMaxflow") is None:
        return None
    return alpha_expansion(mrf, cycles)


def gco_expansion(mrf, cycles=-1):
    """gco-wrapper, for a metric and any whole edge weights on a 2-D grid. Whole costs only: it would round others. With
    -1 it goes on while labels gain, leaving out those that do not; else `cycles` cycles through all labels."""
    gco = imported("gco", "gco-wrapper")
    if gco is None:
        return None
    if len(mrf.shape) != 2:
        raise ValueError(f"gco-wrapper takes 2-D grids, but the model's shape is {mrf.shape}")
    arrays = [mrf.unary, metric_table(mrf), *edge_weights(mrf)]
    if not all(is_integral(array) for array in arrays):
        raise ValueError("gco-wrapper would round the costs, which are no whole numbers; scale them")
    largest = max(np.abs(mrf.unary).max(), arrays[1].max() * max(weight.max(initial=0) for weight in arrays[2:]))
    if largest > LARGEST_IN_GCO:
        raise ValueError(f"gco-wrapper takes costs up to {LARGEST_IN_GCO}, but the largest is {largest:g}")
    arrays = [array.astype(np.int32) for array in arrays]
    return time_peer(lambda: gco.cut_grid_graph(*arrays, n_iter=cycles), mrf)


def dwave_anneal(mrf, sweeps=4000, seed=0):
    """dwave-samplers' simulated annealing, for an Ising grid."""
    samplers = imported("dwave.samplers", "dwave-samplers")
    if samplers is None:
        return None
    model = ising_model(mrf)
    start = time.perf_counter()
    sample = samplers.SimulatedAnnealingSampler().sample(model, num_sweeps=sweeps, num_reads=1, seed=seed)
    seconds = time.perf_counter() - start
    x = np.empty(mrf.size, np.int32)
    x[np.array(sample.variables)] = sample.record.sample[0] > 0
    x = x.reshape(mrf.shape)
    return x, mrf.energy(x), seconds


def ising_model(mrf):
    """An Ising grid as dimod has it."""
    import dimod

    if mrf.n_labels != 2 or mrf.weights is None or not np.array_equal(mrf.pairwise.table(2), [[1, -1], [-1, 1]]):
        raise ValueError(
            f"dwave-samplers takes Ising grids, but the model has {mrf.n_labels} labels and {mrf.pairwise}"
        )
    fields, edges, couplings = problems.ising_terms(mrf)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(fields, (*edges.T, couplings), 0.0, "SPIN")


PEERS = {"PyMaxflow": pymaxflow_expansion, "gco-wrapper": gco_expansion, "dwave-samplers": dwave_anneal}


def pymaxflow_cycles(mrf):
    """PyMaxflow's expansion after each cycle: the labellings, their energies and the seconds up to there. It ends as
    one call does, with a cycle that gains nothing."""
    if imported("maxflow", "PyMaxflow") is None:
        return None
    found = []
    while len(found) < 2 or found[-1][1] < found[-2][1]:
        x, _, spent = found[-1] if found else (None, None, 0.0)
        x, energy, seconds = alpha_expansion(mrf, 1, x)
        found.append((x, energy, spent + seconds))
    return found


def gco_cycles(mrf):
    """gco-wrapper's expansion with 1, 2, ... cycles, each from the start, until one more gains nothing."""
    if imported("gco", "gco-wrapper") is None:
        return None
    found = []
    while len(found) < 2 or found[-1][1] < found[-2][1]:
        found.append(gco_expansion(mrf, len(found) + 1))
    return found


def dwave_anneal_lengths(mrf, lengths=(10, 30, 100, 300, 1000, 4000)):
    """dwave-samplers' annealing with more and more sweeps, each from the start."""
    found = [dwave_anneal(mrf, sweeps) for sweeps in lengths]
    return None if found[0] is None else found


CURVES = {"PyMaxflow": pymaxflow_cycles, "gco-wrapper": gco_cycles, "dwave-samplers": dwave_anneal_lengths}


def imported(module, package):
    """The module, or None with a word if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        say(f"Skipped: {package} is not installed (pip install {package})")
        return None

"""The obvious slow versions of the search family: annealing, regions and components, T-ILS; models and words as in
`naive`."""

import itertools
import math

import numpy as np

import naive

# --- annealing -------------------------------------------------------------------------------------------------------


def checkerboard(shape):
    """The sites of even coordinate sum, then the odd ones, which touch only even ones."""
    return [[i for i in np.ndindex(*shape) if sum(i) % 2 == colour] for colour in (0, 1)]


def conditional(unary, tables, x, i, temperature):
    """Probability of each label of site i given its neighbours: proportional to exp(-cost / temperature).

    At temperature 0 the cheapest label is certain, the lowest among equals. Labels with more forbidden costs than need
    be have probability 0.
    """
    costs = _label_costs(unary, tables, x, i)
    least = min(costs)
    if temperature == 0:
        return np.eye(len(costs))[costs.index(least)]
    weights = [np.exp((least[1] - cost) / temperature) if count == least[0] else 0.0 for count, cost in costs]
    return np.array(weights) / sum(weights)


def allowed(unary, tables, x, i):
    """The labels of site i that have no forbidden cost."""
    return [label for label, (count, _) in enumerate(_label_costs(unary, tables, x, i)) if count == 0]


def _label_costs(unary, tables, x, i):
    """(number of forbidden costs, sum of the others) for each label of site i."""
    costs = []
    for label in range(unary.shape[-1]):
        y = x.copy()
        y[i] = label
        costs.append(naive.conditional_energy(unary, tables, y, [i]))
    return costs


def gibbs_sweep(unary, tables, x, temperature, rng):
    """Draw every site once, in the order of the checkerboard."""
    x = x.copy()
    for i in itertools.chain(*checkerboard(x.shape)):
        x[i] = rng.choice(unary.shape[-1], p=conditional(unary, tables, x, i, temperature))
    return x


def sweep_probabilities(unary, tables, x, temperature):
    """Probability of every labelling after one sweep from x, in the order of `itertools.product`."""
    even, odd = checkerboard(x.shape)
    given_x = [conditional(unary, tables, x, i, temperature) for i in even]
    given_even = {}
    for labels in itertools.product(range(unary.shape[-1]), repeat=len(even)):
        y = x.copy()
        for i, label in zip(even, labels, strict=True):
            y[i] = label
        given_even[labels] = [conditional(unary, tables, y, i, temperature) for i in odd]
    result = []
    for labels in itertools.product(range(unary.shape[-1]), repeat=x.size):
        y = np.reshape(labels, x.shape)
        mine = given_even[tuple(y[i] for i in even)]
        result.append(
            np.prod([p[y[i]] for i, p in zip(even, given_x, strict=True)])
            * np.prod([p[y[i]] for i, p in zip(odd, mine, strict=True)])
        )
    return np.array(result)


def boltzmann(unary, tables, temperature):
    """Probability of every labelling in equilibrium, in the order of `itertools.product`."""
    *shape, labels = unary.shape
    every = itertools.product(range(labels), repeat=int(np.prod(shape)))
    energies = np.array([naive.energy(unary, tables, np.reshape(x, shape)) for x in every])
    weights = np.exp((energies.min() - energies) / temperature)
    return weights / weights.sum()


# --- regions and components -----------------------------------------------------------------------------------------


def flood(shape, sites, alike):
    """The connected components of `sites`, each a set, lowest site first; i and its neighbour j are connected where
    `alike(i, j)`."""
    left = set(sites)
    components = []
    for site in sorted(left):
        if site in left:
            component, edge = set(), [site]
            left.remove(site)
            while edge:
                i = edge.pop()
                component.add(i)
                adjacent = {j for j in naive.neighbours(shape, i) if j in left and alike(i, j)}
                left -= adjacent
                edge += adjacent
            components.append(component)
    return components


def components(x, y):
    """The connected components of the sites where x and y differ."""
    return flood(x.shape, (i for i in np.ndindex(*x.shape) if x[i] != y[i]), lambda i, j: True)


def segments(x):
    """The segments of x: connected sites of one label."""
    return flood(x.shape, np.ndindex(*x.shape), lambda i, j: x[i] == x[j])


def numbered(shape, components):
    """The number of every site's component, -1 where there is none."""
    numbers = np.full(shape, -1)
    for number, component in enumerate(components):
        for i in component:
            numbers[i] = number
    return numbers


def border(x, segment):
    """The labels across the edges of a segment's border, one per edge."""
    return [x[j] for i in segment for j in naive.neighbours(x.shape, i) if j not in segment]


def constant_costs(unary, tables, x, box):
    """The cost of each constant label of a box (a tuple of slices), as in `conditional_energy`."""
    sites = [i for i in np.ndindex(*x.shape) if all(s.start <= c < s.stop for s, c in zip(box, i, strict=True))]
    costs = []
    for label in range(unary.shape[-1]):
        y = x.copy()
        y[box] = label
        costs.append(naive.conditional_energy(unary, tables, y, sites))
    return costs


# --- iterated local search ------------------------------------------------------------------------------------------


def adapted(beta, taken, tried, accepted):
    """The paper's rule for beta after jump number `tried`, of which `taken` were accepted, the last one or not."""
    rate = 0.9 * taken / tried + 0.1 * accepted
    if rate < 0.45:
        return beta * 0.8
    return beta / 0.8 if rate > 0.55 else beta


def t_ils(x, jump, sweep, energy, rng, iterations):
    """Algorithm 2: the energies of the start, of its local minimum and of where each iteration ends, and the best
    labelling. `jump(x, rng)` and `sweep(x, k)`, k being the number of iterations so far, return new labellings."""
    energies = [energy(x)]
    x = sweep(x, 0)
    energies.append(energy(x))
    best, beta, taken = x, 1.0, 0
    for tried in range(1, iterations + 1):
        y = sweep(jump(x, rng), tried - 1)
        rise = energy(y) - energy(x)
        accepted = rng.random() < math.exp(min(0.0, -beta * rise))  # a draw for every jump, also for one downhill
        taken += accepted
        beta = adapted(beta, taken, tried, accepted)
        if accepted:
            x = y
        energies.append(energy(x))
        if energy(x) < energy(best):
            best = x
    return energies, best

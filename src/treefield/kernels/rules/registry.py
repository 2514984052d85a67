"""The table of all pairwise kinds, from which grids and graphs take their rules and graphs their codes.

A new kind is a module of this folder and its line here. `docs/development/add-a-pairwise-kind.md` says what is in it.
"""

from treefield.kernels.rules import binary, edge_tables, linear, potts, quadratic, table
from treefield.kernels.simd.jit import inline_helper

KINDS = (
    potts,
    linear,
    quadratic,
    table,
    binary,
    edge_tables,
)

# a module without a graph rule serves graphs through their tables
GRAPH_RULES = tuple(kind.GRAPH_RULE for kind in KINDS if hasattr(kind, "GRAPH_RULE"))
_CODES = {rule.name: code for code, rule in enumerate(GRAPH_RULES)}


def graph_code(name):
    """The number by which kernels of graphs know a kind: its place among the graph rules."""
    if name not in _CODES:
        raise KeyError(f"no graph rule is named {name!r}: there are {', '.join(_CODES)}")
    return _CODES[name]


def graph_rule(name):
    """The graph rule of that name."""
    return GRAPH_RULES[graph_code(name)]


def by_graph_kind(part):
    """A function of a graph and more that calls this part of the rule whose code is `graph.kind`.

    For kernels. For any other code it calls that of the last rule.
    """
    *others, last = (inline_helper(getattr(rule, part)) for rule in GRAPH_RULES)
    chosen = last
    for code, function in reversed(list(enumerate(others))):
        chosen = _choice(code, function, chosen)
    return chosen


def _choice(code, function, otherwise):
    @inline_helper
    def choose(graph, *arguments):
        if graph.kind == code:
            return function(graph, *arguments)
        return otherwise(graph, *arguments)

    return choose

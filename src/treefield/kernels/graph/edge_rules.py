"""The costs of a graph's edges, and their messages: the parts of `GraphRule`, chosen by `graph.kind`.

The kind is compared once per call, not once per label: the kernels of graphs are compiled once for all kinds.
"""

from treefield.kernels.rules.registry import by_graph_kind, graph_code
from treefield.kernels.rules.rule import link_cost_of

POTTS = graph_code("potts")  # for fast paths; without one, a kind takes the way of all

edge_cost = by_graph_kind("edge_cost")
link_cost = link_cost_of(edge_cost)
absorb = by_graph_kind("absorb")
send = by_graph_kind("send")
argmin_given = by_graph_kind("argmin_given")

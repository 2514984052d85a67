"""The protocols themselves: solvers and moves use what is declared, and all of it."""

import inspect

import pytest

from contracts.conformity import attributes_used, backend_attributes_used, members
from treefield import protocols

PROTOCOLS = [
    protocol
    for _, protocol in inspect.getmembers(protocols, inspect.isclass)
    if getattr(protocol, "_is_protocol", False) and protocol.__module__ == protocols.__name__
]


def test_solvers_and_moves_use_only_declared_members_of_a_backend():
    assert backend_attributes_used("solvers", "moves") <= set(members(protocols.Backend))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_every_member_of_a_protocol_is_used(protocol):
    assert set(members(protocol)) <= attributes_used("solvers", "moves", "tiling", "validation.py") | {"__call__"}


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_every_protocol_and_every_method_is_documented(protocol):
    assert protocol.__doc__
    for name, member in members(protocol).items():
        assert member is None or inspect.getdoc(member), f"{protocol.__name__}.{name} has no docstring"

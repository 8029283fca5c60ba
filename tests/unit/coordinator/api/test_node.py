"""Every API file has the shape that `node.py` describes: (node, call, request), answering with its response."""

from __future__ import annotations

import inspect

import pytest

from rota.coordinator.api.routes import SERVES, routes


@pytest.mark.parametrize("key", SERVES, ids=SERVES.__getitem__)
def test_an_api_is_a_function_of_node_call_and_request(key: int) -> None:
    route = routes()[key]
    parameters = inspect.signature(route.serve).parameters
    required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    assert required == list(parameters)[:3] == ["node", "call", "request"], "others are for the guard of the API"
    assert parameters["request"].annotation == route.request.__name__
    assert route.response.__name__ in str(inspect.signature(route.serve).return_annotation)
    module = inspect.getmodule(route.serve)
    assert module is not None
    assert module.__doc__ is not None
    assert module.__doc__.startswith(f"{route.name}, key {key}, version")

"""What is in the table works: its file is there, with a function of its name, and its messages are declared."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rota.coordinator.api.routes import SERVES, routes
from rota.protocol.compiler import codec
from rota.protocol.registry import APIS


@pytest.mark.parametrize("key", sorted(SERVES))
def test_a_route_leads_somewhere(key: int) -> None:
    route = routes()[key]
    assert (route.key, route.name, route.versions) == (key, APIS[key].name, APIS[key].versions)
    assert route.serve.__name__ == SERVES[key]
    assert (route.unsupported_version is not None) == (route.name == "ApiVersions")
    for version in (route.versions[0], route.versions[-1]):
        assert codec(route.request, version).decode is not None
        assert codec(route.response, version).encode is not None


def test_an_unknown_api_key_has_no_route() -> None:
    assert len(routes()) == len(SERVES)
    assert routes().get(10_000) is None


def test_apis_are_loaded_with_their_first_request() -> None:
    code = "import rota.coordinator.broker, sys; print([m for m in sys.modules if 'rota.protocol.messages.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "describe_configs" not in done.stdout
    assert "rota.protocol.messages.fetch" not in done.stdout

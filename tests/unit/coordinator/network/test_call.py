"""A request says by which address its client came; an entry of the API table stays what it is."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from rota.coordinator.network.call import Call, CloseConnection, Route


def test_a_call_has_the_version_and_the_addresses_of_the_client() -> None:
    call = Call(3, "client", "/127.0.0.1", "broker", 9092)
    assert (call.version, call.client_host, call.reached_host, call.reached_port) == (3, "/127.0.0.1", "broker", 9092)
    assert call.connection_id == 0


def test_a_route_cannot_be_changed() -> None:
    route = Route(12, "Heartbeat", range(5), 4, object, object, lambda node, call, request: None)
    assert route.unsupported_version is None
    with pytest.raises(FrozenInstanceError):
        route.key = 13  # type: ignore[misc]


def test_hang_up_is_not_an_os_error() -> None:
    assert not issubclass(CloseConnection, OSError)

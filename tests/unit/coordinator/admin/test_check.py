"""A health check is right about brokers, about others, and about nobody."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from rota.coordinator.admin.check import NotHealthy, check
from rota.coordinator.api.routes import SERVES
from rota.testing import running_broker


def test_a_broker_is_healthy() -> None:
    with running_broker() as running:
        address = running.bootstrap_servers
        assert check(address) == len(SERVES)


@pytest.fixture
def chatterbox() -> Iterator[str]:
    """A server that says what no broker says."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=send)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def test_another_server_is_not(chatterbox: str) -> None:
    with pytest.raises(NotHealthy, match="no Kafka broker"):
        check(chatterbox)


def test_a_port_without_a_broker_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotHealthy, match="no broker answers"):
        check(f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["", "nonsense", "host:", ":9092", "host:port"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(NotHealthy, match="HOST:PORT"):
        check(address)

"""Names of sockets, as logs and groups show them, and what a socket has not sent."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from rota.coordinator.network.owner import address, source_of, unacknowledged_bytes


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (("127.0.0.1", 9092), ("127.0.0.1", 9092)),
        (("::ffff:10.0.0.1", 9092, 0, 0), ("10.0.0.1", 9092)),
        (("::1", 9092, 0, 0), ("::1", 9092)),
        ("", ("", 0)),
        (None, ("", 0)),
    ],
)
def test_an_address_is_shown_as_it_is_dialled(name: Any, shown: tuple[str, int]) -> None:
    assert address(name) == shown


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", ""),
    ],
)
def test_the_addresses_of_one_ipv6_network_are_one_source(host: str, source: str) -> None:
    assert source_of(host) == source


def test_unacknowledged_bytes_counts_what_the_peer_has_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        connected, _ = server.accept()
        with connected:
            assert unacknowledged_bytes(connected) == 0
            connected.setblocking(False)
            written = 0
            try:
                while True:
                    written += connected.send(bytes(65_536))
            except BlockingIOError:
                pass
            before = unacknowledged_bytes(connected)
            assert 0 < before < written
            for _ in range(written // 65_536):
                peer.recv(65_536, socket.MSG_WAITALL)
            assert unacknowledged_bytes(connected) < before


def test_a_closed_socket_keeps_nothing() -> None:
    closed = socket.socket()
    closed.close()
    assert unacknowledged_bytes(closed) == 0

"""Ports that servers of the tests get before they listen (tools/ports.py)."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tools import ports


@pytest.fixture(autouse=True)
def own_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A counter of the test alone, at ports that no other test gets."""
    counter = tmp_path / "counter"
    counter.write_text(str(ports.free_ports(70)[0]))
    monkeypatch.setattr(ports, "_counter", lambda: counter)
    return counter


def test_no_port_is_one_that_the_system_gives_to_outgoing_connections() -> None:
    assert ports.FIRST <= ports.free_port() < int(ports.EPHEMERAL.read_text().split()[0])


def test_a_port_is_not_handed_out_again_soon() -> None:
    handed_out = [ports.free_port() for _ in range(50)]
    assert len(set(handed_out)) == 50


def test_a_port_with_a_listener_is_passed_over() -> None:
    port = ports.free_port()
    with socket.create_server(("127.0.0.1", port + 1)):
        assert ports.free_port() > port + 1


def test_several_ports_are_in_a_row_without_a_datagram_socket_among_them() -> None:
    port = ports.free_port()
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", port + 2))
        assert ports.free_ports(3) == [port + 3, port + 4, port + 5]


@pytest.mark.parametrize("text", ["", "x", "1", "70000"])
def test_a_damaged_counter_starts_again(own_counter: Path, text: str) -> None:
    own_counter.write_text(text)
    assert ports.free_port() >= ports.FIRST


def test_the_ports_begin_again_at_the_end_of_the_range(own_counter: Path) -> None:
    own_counter.write_text(str(ports._end() - 1))
    assert ports.free_ports(2)[0] >= ports.FIRST
    assert int(own_counter.read_text()) < ports._end() - 1

"""N6: the number and the time of connections that have not authenticated."""

from __future__ import annotations

from rota.coordinator.network.unauthenticated import UnauthenticatedConnections


class Peer:
    def __init__(self, host: str = "host") -> None:
        self.peer = host, 1
        self.reasons: list[str] = []

    def give_up(self, why: str) -> None:
        self.reasons.append(why)


def test_the_oldest_is_closed_beyond_the_limit() -> None:
    peers, connections = [Peer() for _ in range(4)], UnauthenticatedConnections(lambda: 0, lambda: (10, 2))
    for peer in peers[:2]:
        connections.add(peer)
    connections.discard(peers[0])
    for peer in peers[2:]:
        connections.add(peer)
    assert [len(peer.reasons) for peer in peers] == [0, 1, 0, 0]
    assert len(connections) == 2


def test_a_host_that_opens_many_does_not_close_those_of_others() -> None:
    connections = UnauthenticatedConnections(lambda: 0, lambda: (10, 3))
    other, many = Peer("other"), [Peer() for _ in range(5)]
    for peer in (other, *many):
        connections.add(peer)
    assert not other.reasons
    assert [len(peer.reasons) for peer in many] == [1, 1, 1, 0, 0]
    for peer in (other, *many):
        connections.discard(peer)
    assert not connections._hosts


def test_the_addresses_of_one_ipv6_network_are_one_host() -> None:
    """One subscriber has them all."""
    connections = UnauthenticatedConnections(lambda: 0, lambda: (10, 3))
    others = [Peer("2001:db8:1::1"), Peer("10.0.0.1")]
    many = [Peer(f"2001:db8:2::{number}") for number in range(4)]
    for peer in (*others, *many):
        connections.add(peer)
    assert [len(peer.reasons) for peer in others] == [0, 0]
    assert [len(peer.reasons) for peer in many] == [1, 1, 1, 0]
    for peer in (*others, *many):
        connections.discard(peer)
    assert not connections._hosts


def test_the_time_of_each_is_limited() -> None:
    now_ms, connections = 0, UnauthenticatedConnections(lambda: now_ms, lambda: (10, 9))
    early, late, done = Peer(), Peer(), Peer()
    connections.add(early)
    connections.add(done)
    now_ms = 5
    connections.add(late)
    connections.discard(done)
    now_ms = 10
    connections.look()
    assert (early.reasons, late.reasons) == (["it has not authenticated within 10 ms"], [])
    connections.close()
    assert (len(late.reasons), len(done.reasons), len(connections)) == (1, 0, 0)

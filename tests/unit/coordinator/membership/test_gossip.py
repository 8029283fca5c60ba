"""FD10: bounded gossip."""

from __future__ import annotations

from rota.coordinator.membership.datagrams import CLAIMS_MAX, Claim, Status
from rota.coordinator.membership.gossip import Gossip, repeats


def claim(broker_id: int, incarnation: int = 0, epoch: int = 11) -> Claim:
    return Claim(broker_id=broker_id, epoch=epoch, incarnation=incarnation, status=Status.ALIVE)


def test_a_claim_is_sent_a_bounded_number_of_times() -> None:
    gossip = Gossip()
    gossip.put(claim(1), 3)
    sent = [gossip.take() for _ in range(100)]
    assert sent.count([claim(1)]) == repeats(3) == 6
    assert sent.count([]) == 100 - repeats(3)
    assert len(gossip) == 0


def test_repeats_grow_with_the_logarithm_of_the_brokers() -> None:
    assert [repeats(brokers) for brokers in (0, 1, 3, 50, 1000)] == [3, 3, 6, 18, 30]


def test_a_datagram_carries_the_claims_that_were_sent_least() -> None:
    gossip = Gossip()
    for broker_id in range(CLAIMS_MAX + 5):
        gossip.put(claim(broker_id), 3)
    first, second = gossip.take(), gossip.take()
    assert len(first) == CLAIMS_MAX
    assert [each.broker_id for each in second[:5]] == list(range(CLAIMS_MAX, CLAIMS_MAX + 5))
    assert gossip.take(0) == []


def test_a_newer_claim_replaces_the_older_one() -> None:
    gossip = Gossip()
    for incarnation in range(50):
        gossip.put(claim(1, incarnation), 3)
    assert len(gossip) == 1
    assert [gossip.take() for _ in range(7)] == [*[[claim(1, 49)]] * 6, []]


def test_claims_about_ended_registrations_are_removed() -> None:
    gossip = Gossip()
    gossip.put(claim(1), 3)
    gossip.put(claim(2), 3)
    gossip.put(claim(3), 3)
    gossip.keep({1: 11, 2: 12})
    assert gossip.take() == [claim(1)]

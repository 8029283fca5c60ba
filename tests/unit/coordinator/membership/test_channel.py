"""FD13: who may send to whom."""

from __future__ import annotations

from tests.unit.coordinator.membership.test_datagrams import SECRET

from rota.coordinator.membership.channel import Channel
from rota.coordinator.membership.contract import Address
from rota.coordinator.membership.datagram_limits import BURST
from rota.coordinator.membership.datagrams import DATAGRAM_BYTES_MAX, Claim, Datagram, DatagramCodec, Kind, Status
from rota.coordinator.membership.members import Member

ONE, TWO = ("127.0.0.1", 1), ("127.0.0.1", 2)


def channel(node_id: int, epoch: int | None) -> Channel:
    made = Channel(node_id, SECRET)
    made.epoch = epoch
    return made


class Pair:
    """Broker 1 sends to broker 2, as each knows the other."""

    def __init__(self) -> None:
        self.sender, self.receiver = channel(1, 11), channel(2, 12)
        self.members = {1: Member(1, 11, ONE)}
        self.target = Member(2, 12, TWO)

    def sealed(self, kind: Kind = Kind.PING) -> bytes:
        send = self.sender.seal(self.target, kind, 5, (3, 13))
        assert send.address == TWO
        return send.datagram

    def admit(self, raw: bytes, source: Address = ONE) -> Datagram | None:
        return self.receiver.admit(raw, source, self.members, 0)


def test_a_datagram_arrives_once() -> None:
    pair = Pair()
    raw = pair.sealed()
    admitted = pair.admit(raw)
    assert admitted is not None
    assert (admitted.sender, admitted.sequence, admitted.subject, admitted.subject_epoch) == (1, 5, 3, 13)
    assert pair.admit(raw) is None
    assert pair.admit(pair.sealed()) is not None
    assert dict(pair.receiver.discarded) == {"replayed": 1}


def test_datagrams_of_other_registrations_or_without_authentication_are_discarded() -> None:
    pair = Pair()
    pair.target.epoch = 99
    assert pair.admit(pair.sealed()) is None
    pair.target.epoch = 12
    pair.sender.epoch = 99
    assert pair.admit(pair.sealed()) is None
    pair.sender.epoch = 11
    raw = pair.sealed()
    assert pair.admit(b"noise") is None
    pair.receiver.epoch = None
    assert pair.admit(raw) is None
    pair.receiver.epoch, known = 12, pair.members
    pair.members = {}
    assert pair.admit(raw) is None
    pair.members = known
    assert pair.admit(raw) is not None, "none of this used up its counter"
    assert dict(pair.receiver.discarded) == {
        "other receiver": 1,
        "unknown sender": 2,
        "not authentic": 1,
        "not registered": 1,
    }


def test_a_flood_in_the_name_of_a_broker_does_not_silence_it() -> None:
    """FD9. Neither noise nor what the broker itself has sent before."""
    pair = Pair()
    old = pair.sealed()
    assert pair.admit(old) is not None
    for _ in range(BURST):
        pair.admit(b"noise")
        pair.admit(old)
    assert pair.admit(pair.sealed()) is not None
    assert dict(pair.receiver.discarded) == {"not authentic": BURST, "replayed": BURST}


def test_of_one_source_a_burst_is_handled() -> None:
    pair = Pair()
    for _ in range(BURST):
        assert pair.admit(pair.sealed()) is not None
    assert pair.admit(pair.sealed()) is None
    assert pair.admit(pair.sealed(), ("10.0.0.1", 9)) is not None
    assert dict(pair.receiver.discarded) == {"rate limit": 1}


def test_a_datagram_to_a_suspect_has_its_suspicion_first() -> None:
    pair = Pair()
    pair.target.status = Status.SUSPECT
    for broker_id in range(100, 200):
        pair.sender.gossip.put(Claim(broker_id=broker_id, epoch=1, incarnation=0, status=Status.DEAD), 200)
    raw = pair.sealed()
    opened = DatagramCodec(SECRET).open(raw)
    assert opened is not None
    assert opened.claims[0] == pair.target.claim()
    assert len(raw) <= DATAGRAM_BYTES_MAX


def test_the_claim_of_a_node_about_itself() -> None:
    made = channel(1, 11)
    made.incarnation = 4
    assert made.own_claim() == Claim(broker_id=1, epoch=11, incarnation=4, status=Status.ALIVE)

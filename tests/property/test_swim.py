"""FD6-FD9 on conversations that nobody wrote: hostile bytes, replays, senders who know the secret."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.soak import examples
from tests.unit.coordinator.membership.test_datagrams import SECRET

from rota.coordinator.membership.contract import Address, Effects, Send, SwimSettings
from rota.coordinator.membership.datagram_limits import SOURCES_MAX
from rota.coordinator.membership.datagrams import DATAGRAM_BYTES_MAX, Claim, Datagram, DatagramCodec, Kind, Status
from rota.coordinator.membership.probes import RELAYS_MAX
from rota.coordinator.membership.swim import Swim

CODEC = DatagramCodec(SECRET)
IDS = st.sampled_from([1, 2, 3, 4, 9])
EPOCHS = st.sampled_from([10, 11, 12, 13, 14, 22])
INCARNATIONS = st.sampled_from([0, 0, 1, 2, (1 << 31) - 2, (1 << 31) - 1])
CLAIMS = st.builds(Claim, broker_id=IDS, epoch=EPOCHS, incarnation=INCARNATIONS, status=st.sampled_from(Status))
SOURCES = st.tuples(st.sampled_from(["10.0.0.1", "10.0.0.2"]), st.integers(1, 3))


def registrations(*ids: int) -> dict[int, tuple[int, Address]]:
    return {broker_id: (10 + broker_id, ("127.0.0.1", broker_id)) for broker_id in ids}


class Hostile(RuleBasedStateMachine):
    """Whatever comes, the machine raises nothing, keeps its bounds and handles nothing twice."""

    @initialize()
    def begin(self) -> None:
        self.swim = Swim(1, SwimSettings(), SECRET, Random(1))
        self.now_ms = 0
        self.captured: list[bytes] = []
        self.sent = 0
        self.swim.members_changed(registrations(1, 2, 3, 4), 0)

    def perform(self, effects: Effects) -> None:
        sends = [effect for effect in effects if isinstance(effect, Send)]
        self.sent += len(sends)
        for send in sends:
            assert len(send.datagram) <= DATAGRAM_BYTES_MAX
            opened = CODEC.open(send.datagram)
            assert opened is not None
            assert (opened.sender, opened.sender_epoch) == (1, self.swim.channel.epoch)

    def seen(self) -> list[tuple[int, int, Status]]:
        return [(broker, member.incarnation, member.status) for broker, member in self.swim.members.items()]

    @rule(raw=st.binary(max_size=1_300), source=SOURCES)
    def noise(self, raw: bytes, source: Address) -> None:
        self.perform(self.swim.received(raw, source, self.now_ms))

    @rule(
        kind=st.sampled_from(Kind),
        sender=IDS,
        sender_epoch=EPOCHS,
        receiver=st.sampled_from([1, 1, 1, 2]),
        counter=st.sampled_from([0, 1, 2, 3, 1 << 40, (1 << 63) - 1]) | st.integers(0, 500),
        subject=IDS,
        subject_epoch=EPOCHS,
        incarnation=INCARNATIONS,
        sequence=st.integers(-1, 20),
        claims=st.lists(CLAIMS, max_size=32),
        source=SOURCES,
    )
    def authentic(self, source: Address, claims: list[Claim], receiver: int, **fields: int) -> None:
        """From one who knows the secret."""
        datagram = Datagram(
            claims=tuple(claims),
            receiver=receiver,
            receiver_epoch=10 + receiver,
            **fields,  # type: ignore[arg-type]
        )
        raw = CODEC.seal(datagram)
        before = self.swim.channel.discarded.total()
        self.perform(self.swim.received(raw, source, self.now_ms))
        if self.swim.channel.discarded.total() == before:
            self.captured.append(raw)

    @rule(data=st.data(), source=SOURCES)
    def replay(self, data: st.DataObject, source: Address) -> None:
        """FD8: what was captured does nothing a second time."""
        if self.captured:
            raw = data.draw(st.sampled_from(self.captured))
            before = self.seen()
            assert self.swim.received(raw, source, self.now_ms) == []
            assert self.seen() == before

    @rule(ms=st.sampled_from([0, 1, 10, 100, 1_000, 1 << 40]))
    def tick(self, ms: int) -> None:
        self.now_ms += ms
        self.perform(self.swim.tick(self.now_ms))

    @rule(broker=IDS)
    def accuse(self, broker: int) -> None:
        self.perform(self.swim.accuse(broker, self.now_ms))

    @rule(ids=st.sets(st.sampled_from([2, 3, 4])))
    def registered(self, ids: set[int]) -> None:
        """Lives go, and come back when the image of the registrations was not whole for a moment."""
        self.perform(self.swim.members_changed(registrations(1, *ids), self.now_ms))

    @invariant()
    def bounded(self) -> None:
        swim = self.swim
        assert len(swim._probes.own) <= len(swim.members)
        assert len(swim._probes.relays) <= RELAYS_MAX
        assert len(swim.channel.gossip) <= len(swim.members) + 1
        assert len(swim.channel._limits) <= SOURCES_MAX + 1


Hostile.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=40)
TestHostile = Hostile.TestCase

"""The failure detector of one broker: SWIM with Lifeguard's local health. Pure: events in, effects out.

Every interval the broker pings one other. One that does not answer is pinged through others, then suspected; one that
does not refute within the suspicion timeout is declared dead. Claims ride on the datagrams. Who belongs to the cluster
comes from outside, from the registrations of the brokers; a registration's epoch names one life of a broker.

Laws (FD1, FD2 in members.py; FD6-FD13 in datagrams.py, datagram_limits.py, gossip.py, probes.py and channel.py)
    FD3  Every broker declares a stopped broker dead in a bounded time, if one is left that has received from it.
    FD4  A broker that answers is not declared dead by lost datagrams, as long as its refutation gets through. A
         node declares no broker dead whose datagrams arrive, and none while its own refutations do not arrive. It
         suspects only a registration that it has received from: a network without UDP costs no leader.
    FD5  Time in which this node was suspended counts against no other node.
    FD14 A new registration of this node believes nothing that the last one did, which was perhaps cut off from brokers
         that are alive. It suspects a broker when it has received from it in its own time.
    FD16 A broker that another one declared dead has a ping timeout to refute that here, from when it is suspected: who
         declared it dead was perhaps cut off, and alone with that.

The file is longer than 400 lines because one class owns the members, which every datagram and deadline changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.coordinator.membership.channel import Channel
from rota.coordinator.membership.contract import (
    Address,
    Alive,
    Change,
    Dead,
    Effects,
    RandomSource,
    Suspected,
    SwimSettings,
)
from rota.coordinator.membership.datagrams import Claim, Datagram, Kind, Status
from rota.coordinator.membership.members import Member
from rota.coordinator.membership.probes import Health, Probe, Probes, Relay, Rotation, sample

FANOUT: Final = 3  # brokers that get a change at once, not with the next ping
DEAD_PING_INTERVALS: Final = 5  # intervals between pings of a dead broker, to receive its refutation
HEARSAY_FACTOR: Final = 2  # a suspicion that another broker spread lasts so much longer: that broker decides
RESENDS: Final = 3  # of a ping in a ping timeout, and to a suspect
SILENT_ROUNDS: Final = 2  # rounds of pings; in each of them every live broker pings this node once
LOST_PINGS: Final = 3  # to a broker declared dead; one of so many arrives with near certainty
NEVER_MS: Final = -(1 << 40)
STANDSTILL_MS: Final = 50  # a tick that is later than this means that this process stood still
LISTEN_MS: Final = 30  # after a standstill: for the datagrams that wait in the socket
_CHANGES: Final[Mapping[Status, type[Change]]] = {
    Status.ALIVE: Alive,
    Status.SUSPECT: Suspected,
    Status.DEAD: Dead,
}


class Swim:
    """The failure detector of broker `node_id`. Call `tick` at `next_deadline_ms`; times are elapsed ms.

    `members` are the other brokers of the last `members_changed`.
    """

    def __init__(self, node_id: int, settings: SwimSettings, secret: bytes, random: RandomSource) -> None:
        self.node_id, self.settings = node_id, settings
        self.members: dict[int, Member] = {}
        self.channel, self.health = Channel(node_id, secret), Health()
        self._random, self._rotation, self._probes = random, Rotation(random), Probes()
        self._now_ms = self._next_ping_ms = self._rounds = 0
        self._refuted_ms = self._stale_claim_ms = NEVER_MS
        self._resend_interval_ms = max(settings.ping_timeout_ms // RESENDS, 1)
        self._is_reading = False
        self._effects: Effects = []

    # ---- events

    def members_changed(self, registrations: Mapping[int, tuple[int, Address]], now_ms: int) -> Effects:
        """Take the registered brokers, this one among them: broker id -> (epoch, address)."""
        was_active, self._now_ms = self.is_active, now_ms
        epochs = {broker_id: epoch for broker_id, (epoch, _) in registrations.items()}
        if self.channel.epoch != epochs.get(self.node_id):
            self._begin_life(epochs.get(self.node_id))
        known = self.members
        self.members = {
            broker_id: self._member(broker_id, epoch, address)
            for broker_id, (epoch, address) in registrations.items()
            if broker_id != self.node_id
        }
        self._rotation.reset(list(self.members))
        self._probes.keep(epochs)
        self.channel.gossip.keep(epochs)
        if self.is_active and not was_active:
            self._next_ping_ms = now_ms + self._random.randrange(self.settings.interval_ms)
        if self.is_active:
            self._greet([member for member in self.members.values() if known.get(member.broker_id) is not member])
        return self._take_effects()

    def received(self, raw: bytes, source: Address, now_ms: int) -> Effects:
        """Handle bytes from the network, whatever they are."""
        self._now_ms = max(self._now_ms, now_ms)
        datagram = self.channel.admit(raw, source, self.members, self._now_ms)
        if datagram is not None:
            sender = self.members[datagram.sender]
            if sender.last_received_ms is None:
                self._gossip_again()
            sender.last_received_ms = self._now_ms
            self._apply_claims(datagram, sender)
            self._handle(datagram, sender)
        return self._take_effects()

    def tick(self, now_ms: int) -> Effects:
        """Look at the time: pings fail, suspicions end, the next broker is pinged."""
        self._now_ms = max(self._now_ms, now_ms)
        if not self.is_active or self._stood_still():
            return []
        for relay in self._probes.take_expired_relays(self._now_ms):
            self._answer(relay, Kind.NACK)
        self._look_at_probes()
        self._look_at_suspects()
        if self._now_ms >= self._next_ping_ms:
            self._next_ping_ms = self._now_ms + self.settings.interval_ms
            self._ping_next()
        return self._take_effects()

    def accuse(self, broker_id: int, now_ms: int) -> Effects:
        """Take evidence from elsewhere, such as a broken connection: ping the broker at once, in both ways.

        If it is silent, the suspicion lasts one ping timeout only. If it answers, it is reported as alive.
        """
        self._now_ms = max(self._now_ms, now_ms)
        member = self.members.get(broker_id)
        if not self.is_active or member is None or member.status is Status.DEAD:
            return []
        if not self._is_reading:
            self._stood_still()  # then what waits is postponed, and not the new ping with it
        if member.status is Status.SUSPECT:
            self._shorten(member, self.settings.ping_timeout_ms)
        probe = self._probes.of(broker_id) or self._ping(member)
        probe.is_accused = True
        if not probe.is_indirect:
            self._send_indirect_pings(probe)
        self._look_at_suspects()
        return self._take_effects()

    def is_doubtful(self, broker_id: int, epoch: int) -> bool:
        """Return whether that registration is suspected or declared dead."""
        member = self._member_of_epoch(broker_id, epoch)
        return member is not None and member.status is not Status.ALIVE

    def ping_dead(self, now_ms: int) -> Effects:
        """Ping each broker that was declared dead, with that claim for it to refute, without waiting for its turn."""
        self._now_ms = max(self._now_ms, now_ms)
        if self.is_active:
            self._greet([member for member in self.members.values() if member.status is Status.DEAD])
        return self._take_effects()

    @property
    def is_active(self) -> bool:
        """Whether this node is registered and not alone."""
        return self.channel.epoch is not None and bool(self.members)

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `tick`; None when no time is waited for."""
        if not self.is_active:
            return None
        deadlines = [self._next_ping_ms, *self._probes.deadlines()]
        for member in self.members.values():
            if member.status is Status.SUSPECT:
                deadlines.append(self._refutation_ms(member))
                if member.resend_ms is not None:
                    deadlines.append(member.resend_ms)
        return min(deadlines)

    # ---- the brokers

    def _begin_life(self, epoch: int | None) -> None:
        """FD14. Handle a new registration of this node, or none: probes, claims and beliefs of the old one are void."""
        self.channel.epoch, self.channel.incarnation = epoch, 0
        self._probes.keep({})
        self.channel.gossip.keep({})
        accused = [member for member in self.members.values() if member.status is not Status.ALIVE]
        self._effects += [Alive(member.broker_id, member.epoch) for member in accused]
        self.members = {}

    def _member(self, broker_id: int, epoch: int, address: Address) -> Member:
        member = self.members.get(broker_id)
        if member is None or member.epoch != epoch:
            return Member(broker_id, epoch, address)
        member.address = address
        return member

    def _greet(self, members: list[Member]) -> None:
        """Ping new registrations at once: only a broker from which something was received is ever suspected."""
        for member in members:
            self._send(member, Kind.PING)

    def _member_of_epoch(self, broker_id: int, epoch: int) -> Member | None:
        member = self.members.get(broker_id)
        return member if member is not None and member.epoch == epoch else None

    def _suspects(self) -> list[Member]:
        return [member for member in self.members.values() if member.status is Status.SUSPECT]

    def _alive_brokers(self, without: set[int | None]) -> list[int]:
        """The brokers that are alive as far as this node knows."""
        return [
            broker_id
            for broker_id, member in self.members.items()
            if member.status is Status.ALIVE and broker_id not in without
        ]

    # ---- datagrams

    def _apply_claims(self, datagram: Datagram, sender: Member) -> None:
        """Take the claims of a datagram; its head claims that the sender is alive in its incarnation."""
        alive = sender.claim(Status.ALIVE, datagram.incarnation)
        for claim in (alive, *datagram.claims):
            member = self._member_of_epoch(claim.broker_id, claim.epoch)
            if member is not None:
                self._apply_received(member, claim, sender.broker_id)
            elif (claim.broker_id, claim.epoch) == (self.node_id, self.channel.epoch):
                self._refute(claim, sender)

    def _refute(self, claim: Claim, sender: Member) -> None:
        """Object to a claim that this life of this node is suspect or dead, by a higher incarnation."""
        if claim.status == Status.ALIVE:
            return
        if claim.incarnation < self.channel.incarnation:
            if self._now_ms > self._refuted_ms + self.settings.interval_ms:
                self._stale_claim_ms = self._now_ms
            return
        self.channel.incarnation, self._refuted_ms = claim.incarnation + 1, self._now_ms
        self.health.degrade()
        self._send(sender, Kind.GOSSIP)
        self._spread(self.channel.own_claim(), sender.broker_id)

    def _handle(self, datagram: Datagram, sender: Member) -> None:
        match Kind(datagram.kind):
            case Kind.PING:
                self._send(sender, Kind.ACK, datagram.sequence, (self.node_id, datagram.receiver_epoch))
            case Kind.ACK:
                self._acknowledged(datagram)
            case Kind.PING_REQUEST:
                self._relay(datagram, sender)
            case Kind.NACK:
                probe = self._probes.own.get(datagram.sequence)
                if probe is not None and probe.broker_id == datagram.subject:
                    probe.nacks.add(sender.broker_id)
            case Kind.GOSSIP:
                pass

    def _acknowledged(self, datagram: Datagram) -> None:
        match self._probes.acknowledged(datagram.sequence, datagram.subject, datagram.subject_epoch):
            case Relay() as relay:
                self._answer(relay, Kind.ACK)
            case Probe(is_accused=True, broker_id=broker_id, epoch=epoch):
                self._effects.append(Alive(broker_id, epoch))
            case Probe(is_indirect=False):
                self.health.recover()

    def _relay(self, datagram: Datagram, sender: Member) -> None:
        """Ping a broker for another one. The NACK has to come before the other's ping timeout is over."""
        deadline_ms = self._now_ms + self.settings.ping_timeout_ms * 4 // 5
        relay = Relay(sender.broker_id, datagram.sequence, datagram.subject, datagram.subject_epoch, deadline_ms)
        subject = self._member_of_epoch(relay.broker_id, relay.epoch)
        if subject is None:
            self._answer(relay, Kind.NACK)
        elif (sequence := self._probes.relay(relay)) is not None:
            self._send(subject, Kind.PING, sequence)

    def _answer(self, relay: Relay, kind: Kind) -> None:
        self._send(self.members[relay.requester], kind, relay.requester_sequence, (relay.broker_id, relay.epoch))

    def _send(self, to: Member, kind: Kind, sequence: int = 0, subject: tuple[int, int] = (0, 0)) -> None:
        self._effects.append(self.channel.seal(to, kind, sequence, subject))

    # ---- claims

    def _apply_received(self, member: Member, claim: Claim, source: int) -> None:
        """Take the claim of another broker, a death as a suspicion that is nearly over (FD16)."""
        is_current = member.status is not Status.DEAD and claim.incarnation >= member.incarnation
        if claim.status != Status.DEAD or not is_current:
            self._apply(member, claim, source)
            return
        self._apply(member, member.claim(Status.SUSPECT, claim.incarnation), source)
        self._shorten(member, self.settings.ping_timeout_ms)
        if self._refutation_ms(member) <= self._now_ms:
            self._apply(member, claim, source)

    def _apply(self, member: Member, claim: Claim, source: int | None = None) -> None:
        """Merge a claim; report a change, and send it at once to a few brokers and with later datagrams."""
        before = member.status
        if not member.merge(claim):
            return
        if member.status is Status.SUSPECT:
            self._begin_suspicion(member, is_own=source is None)
        if member.status is not before:
            self._effects.append(_CHANGES[member.status](member.broker_id, member.epoch))
        self._spread(member.claim(), source)

    def _spread(self, claim: Claim, source: int | None) -> None:
        self.channel.gossip.put(claim, len(self.members) + 1)
        for broker_id in sample(self._random, self._alive_brokers({claim.broker_id, source}), FANOUT):
            self._send(self.members[broker_id], Kind.GOSSIP)

    def _gossip_again(self) -> None:
        """Send all that is known once more: a broker that was not here before does not know it."""
        for member in self.members.values():
            if (member.incarnation, member.status) > (0, Status.ALIVE):
                self.channel.gossip.put(member.claim(), len(self.members) + 1)

    def _begin_suspicion(self, member: Member, *, is_own: bool) -> None:
        """Wait for the suspect's refutation, longer if another broker suspects it. About FANOUT brokers notify it."""
        member.suspected_ms, member.resend_ms = self._now_ms, None
        member.suspicion_ms = self.settings.suspicion_timeout_ms * (1 if is_own else HEARSAY_FACTOR)
        if is_own or self._random.randrange(len(self.members)) < FANOUT:
            self._notify_suspect(member)

    def _notify_suspect(self, member: Member) -> None:
        """Ping a suspect, with the suspicion for it to refute; again later, because datagrams get lost."""
        self._send(member, Kind.PING)
        member.resend_ms = self._now_ms + self._resend_interval_ms

    def _shorten(self, member: Member, suspicion_ms: int) -> None:
        member.suspicion_ms = min(member.suspicion_ms, suspicion_ms)

    # ---- pings

    def _ping_next(self) -> None:
        """Ping the next broker that is not dead and not pinged already; now and then a dead one."""
        self._rounds += 1
        if self._rounds % DEAD_PING_INTERVALS == 0:
            dead = [broker_id for broker_id, member in self.members.items() if member.status is Status.DEAD]
            for broker_id in sample(self._random, dead, 1):
                self._send(self.members[broker_id], Kind.PING)
        for _ in range(2 * len(self.members)):  # the rest of this round and the whole next one
            member = self.members[self._rotation.take()]
            if member.status is not Status.DEAD and self._probes.of(member.broker_id) is None:
                self._ping(member)
                return

    def _ping(self, member: Member) -> Probe:
        probe = self._probes.begin(member.broker_id, member.epoch, self._now_ms, self._in_ping_timeout())
        self._send_ping(probe)
        return probe

    def _send_ping(self, probe: Probe) -> None:
        self._send(self.members[probe.broker_id], Kind.PING, probe.sequence)
        probe.resend_ms = self._now_ms + self._resend_interval_ms

    def _send_indirect_pings(self, probe: Probe) -> None:
        """Give the target another ping timeout, in which others ping it too."""
        helpers = sample(self._random, self._alive_brokers({probe.broker_id}), self.settings.indirect_pings)
        probe.is_indirect, probe.helpers, probe.deadline_ms = True, len(helpers), self._in_ping_timeout()
        for helper in helpers:
            self._send(self.members[helper], Kind.PING_REQUEST, probe.sequence, (probe.broker_id, probe.epoch))

    def _failed(self, probe: Probe) -> None:
        """Handle a probe that reached the target neither directly nor indirectly."""
        del self._probes.own[probe.sequence]
        member = self.members[probe.broker_id]
        if member.status is Status.ALIVE:
            if not probe.has_witness():  # the fault may be here
                self.health.degrade()
            if member.last_received_ms is not None and member.last_received_ms >= self._silent_since_ms(probe):
                # it is alive, but may not receive from this node; or that was its last datagram: evidence counts on
                self._ping(member).is_accused = probe.is_accused
            elif member.last_received_ms is not None:
                self._apply(member, member.claim(Status.SUSPECT))
        if member.status is Status.SUSPECT:
            is_accused, settings = probe.is_accused, self.settings
            self._shorten(member, settings.ping_timeout_ms if is_accused else settings.suspicion_timeout_ms)

    def _silent_since_ms(self, probe: Probe) -> int:
        """Return the time since which nothing may have arrived from a target for it to be suspected.

        That is the time of the ping, or two rounds of pings ago if none of the helpers responded: in that case perhaps
        no broker receives from this node.
        """
        if not probe.helpers or probe.nacks:
            return probe.began_ms
        return self._now_ms - SILENT_ROUNDS * len(self.members) * self.settings.interval_ms

    # ---- time

    def _in_ping_timeout(self) -> int:
        return self._now_ms + self.settings.ping_timeout_ms * self.health.factor

    def _stood_still(self) -> bool:
        """Return whether this process was late: deadlines are extended then, and received datagrams are read first."""
        late_ms = self._now_ms - (self.next_deadline_ms or 0)
        if late_ms <= STANDSTILL_MS or self._is_reading:
            self._is_reading = False
            return False
        self._is_reading = True
        if late_ms > self.settings.ping_timeout_ms:
            self.health.degrade()
        self._next_ping_ms += late_ms + LISTEN_MS
        self._probes.postpone(late_ms + LISTEN_MS)
        for member in self._suspects():
            member.postpone(late_ms + LISTEN_MS)
        return True

    def _look_at_probes(self) -> None:
        has_indirect_pings = self.settings.indirect_pings > 0
        for probe in self._probes.expired(self._now_ms):
            if has_indirect_pings and not probe.is_indirect and self._alive_brokers({probe.broker_id}):
                self._send_indirect_pings(probe)
            else:
                self._failed(probe)
        for probe in self._probes.own.values():
            if probe.resend_ms <= self._now_ms:
                self._send_ping(probe)

    def _look_at_suspects(self) -> None:
        for member in self._suspects():
            if self._refutation_ms(member) <= self._now_ms:
                self._apply(member, member.claim(Status.DEAD))
            elif member.resend_ms is not None and member.resend_ms <= self._now_ms:
                self._notify_suspect(member)

    def _refutation_ms(self, member: Member) -> int:
        """Return the deadline for a suspect's refutation: later while this node's own refutations do not arrive."""
        refutation_possible_ms = self._stale_claim_ms + LOST_PINGS * DEAD_PING_INTERVALS * self.settings.interval_ms
        return max(member.refutation_ms(self.health.factor), refutation_possible_ms)

    def _take_effects(self) -> Effects:
        effects, self._effects = self._effects, []
        return effects

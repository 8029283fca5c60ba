"""The failure detector as a conversation: one machine, and the datagrams of brokers 2 and 3 written by hand."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.unit.coordinator.membership.test_datagrams import SECRET

from rota.coordinator.membership.contract import Alive, Change, Dead, Effects, Send, Suspected, SwimSettings
from rota.coordinator.membership.datagrams import INCARNATION_MAX, Claim, Datagram, DatagramCodec, Kind, Status
from rota.coordinator.membership.swim import (
    DEAD_PING_INTERVALS,
    FANOUT,
    LISTEN_MS,
    SILENT_ROUNDS,
    STANDSTILL_MS,
    Swim,
)

CODEC = DatagramCodec(SECRET)
BROKERS = {1: (11, ("127.0.0.1", 1)), 2: (12, ("127.0.0.1", 2)), 3: (13, ("127.0.0.1", 3))}
EPOCHS = {broker_id: epoch for broker_id, (epoch, _) in BROKERS.items()}


class Script:
    """Broker 1 is the machine. Time moves by `until`; what it sent and reported is in `sent` and `changes`."""

    def __init__(self, *others: int, answers: bool = True, **settings: int) -> None:
        self.swim = Swim(1, SwimSettings(**settings), SECRET, Random(1))
        self.now_ms, self.counter = 0, 0
        self.sent: list[Datagram] = []
        self.changes: list[Change] = []
        self.done(self.swim.members_changed({broker: BROKERS[broker] for broker in (1, *others)}, 0))
        for broker in others if answers else ():
            self.receives(broker, Kind.GOSSIP)
        self.take()

    def done(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                datagram = CODEC.open(effect.datagram)
                assert datagram is not None
                assert effect.address == BROKERS[datagram.receiver][1]
                self.sent.append(datagram)
            else:
                self.changes.append(effect)

    def receives(self, broker: int, kind: Kind, *claims: Claim, **fields: Any) -> None:
        """A datagram of another broker arrives."""
        self.counter += 1
        usual: dict[str, Any] = {"sender": broker, "sender_epoch": EPOCHS[broker], "incarnation": 0, "receiver": 1}
        usual |= {"receiver_epoch": 11, "counter": self.counter, "sequence": 0, "subject": 0, "subject_epoch": 0}
        raw = CODEC.seal(Datagram(kind=kind, claims=claims, **usual | fields))
        self.done(self.swim.received(raw, BROKERS[broker][1], self.now_ms))

    def until(self, now_ms: int, *answering: int) -> None:
        """Tick in time; these brokers answer pings of the machine and send NACKs for silent ones."""
        while (at_ms := self.swim.next_deadline_ms or now_ms) < now_ms:
            self.now_ms = at_ms
            before = len(self.sent)
            self.done(self.swim.tick(at_ms))
            for datagram in self.sent[before:]:
                self.answer(datagram, answering)
        self.now_ms = now_ms

    def answer(self, datagram: Datagram, answering: tuple[int, ...]) -> None:
        broker, sequence = datagram.receiver, datagram.sequence
        subject = {"sequence": sequence, "subject": datagram.subject, "subject_epoch": datagram.subject_epoch}
        if broker not in answering:
            return
        if datagram.kind == Kind.PING:
            self.receives(broker, Kind.ACK, sequence=sequence, subject=broker, subject_epoch=EPOCHS[broker])
        elif datagram.kind == Kind.PING_REQUEST:
            self.receives(broker, Kind.ACK if datagram.subject in answering else Kind.NACK, **subject)

    def take(self) -> list[tuple[Kind, int]]:
        """(kind, receiver) of what was sent since."""
        taken, self.sent = self.sent, []
        return [(Kind(each.kind), each.receiver) for each in taken]

    def claim(self, broker: int, status: Status, incarnation: int = 0) -> Claim:
        return Claim(broker_id=broker, epoch=EPOCHS[broker], incarnation=incarnation, status=status)


class TestPings:
    def test_every_broker_is_pinged_in_turn(self) -> None:
        script = Script(2, 3)
        script.until(10_000, 2, 3)
        pings = script.take()
        assert [kind for kind, _ in pings] == [Kind.PING] * len(pings)
        assert 49 <= len(pings) <= 51
        assert abs(pings.count((Kind.PING, 2)) - pings.count((Kind.PING, 3))) <= 1
        assert script.changes == []

    def test_a_ping_is_acknowledged_to_the_registered_address(self) -> None:
        script = Script(2, 3)
        script.receives(2, Kind.PING, sequence=7)
        assert script.take() == [(Kind.ACK, 2)]

    def test_a_ping_that_gets_lost_is_sent_again_with_its_sequence_number(self) -> None:
        script = Script(2)
        script.until(190)
        first = script.swim._probes.own.copy()
        script.until(script.now_ms + 90)
        pings = [each for each in script.sent if each.sequence in first]
        assert len(pings) >= 2
        assert len({each.counter for each in pings}) == len(pings)

    def test_a_silent_member_is_pinged_through_others(self) -> None:
        script = Script(2, 3)
        script.until(700, 3)
        requests = [each for each in script.sent if each.kind == Kind.PING_REQUEST]
        assert {(each.receiver, each.subject, each.subject_epoch) for each in requests} == {(3, 2, 12)}

    def test_without_indirect_pings_no_ping_request_is_sent(self) -> None:
        script = Script(2, 3, indirect_pings=0)
        script.until(5_000, 3)
        assert Kind.PING_REQUEST not in [kind for kind, _ in script.take()]
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_member_is_suspected_later_if_the_helpers_are_silent_too(self) -> None:
        """Law FD4. Perhaps nothing reaches this node: then the silence of a member proves less."""
        rounds_ms = SILENT_ROUNDS * 2 * SwimSettings().interval_ms
        with_nacks, without = Script(2, 3), Script(2, 3)
        with_nacks.until(rounds_ms - 1, 3)
        without.until(rounds_ms - 1)
        assert with_nacks.changes[:1] == [Suspected(2, 12)]
        assert without.changes == []
        without.until(2 * rounds_ms)
        assert set(without.changes[:2]) == {Suspected(2, 12), Suspected(3, 13)}

    def test_an_indirect_ack_is_enough(self) -> None:
        script = Script(2, 3)
        script.until(190, 3)
        for _ in range(20):
            script.until(script.now_ms + 50, 3)
            for request in [each for each in script.sent if each.kind == Kind.PING_REQUEST]:
                subject = {"subject": 2, "subject_epoch": 12}
                script.receives(3, Kind.ACK, sequence=request.sequence, **subject)
            script.take()
        assert script.changes == []

    def test_a_ping_on_behalf_of_another_ends_in_an_ack_or_in_a_nack(self) -> None:
        script = Script(2, 3)
        subject = {"subject": 3, "subject_epoch": 13}
        script.receives(2, Kind.PING_REQUEST, sequence=70, **subject)
        ping = script.sent[-1]
        assert (ping.kind, ping.receiver) == (Kind.PING, 3)
        script.receives(3, Kind.ACK, sequence=ping.sequence, **subject)
        assert (script.sent[-1].kind, script.sent[-1].receiver, script.sent[-1].sequence) == (Kind.ACK, 2, 70)
        script.receives(2, Kind.PING_REQUEST, sequence=71, **subject)
        script.until(script.now_ms + 90)
        nacks = [each for each in script.sent if each.kind == Kind.NACK]
        assert [(each.receiver, each.sequence, each.subject) for each in nacks] == [(2, 71, 3)]

    def test_a_ping_request_for_a_life_that_is_not_registered_gets_a_nack_at_once(self) -> None:
        script = Script(2, 3)
        script.receives(2, Kind.PING_REQUEST, sequence=70, subject=3, subject_epoch=99)
        assert script.take() == [(Kind.NACK, 2)]


class TestSuspicion:
    def test_silence_is_suspicion_and_then_death(self) -> None:
        script = Script(2, 3)
        script.until(410, 3)
        assert script.changes == [Suspected(2, 12)]
        suspected = next(each for each in script.sent if each.receiver == 2 and each.claims)
        assert suspected.claims[0] == script.claim(2, Status.SUSPECT)
        script.until(1_000, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_suspect_that_refutes_the_suspicion_is_alive(self) -> None:
        script = Script(2, 3)
        script.until(410, 3)
        script.receives(2, Kind.GOSSIP, incarnation=1)
        assert script.changes == [Suspected(2, 12), Alive(2, 12)]
        script.until(10_000, 2, 3)
        assert len(script.changes) == 2

    def test_gossip_of_the_same_incarnation_does_not_refute_a_suspicion(self) -> None:
        script = Script(2, 3)
        script.until(410, 3)
        script.receives(2, Kind.GOSSIP)
        script.until(1_000, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_member_that_answers_is_not_dead(self) -> None:
        """FD4: it may not hear this node."""
        script = Script(2, 3)
        for _ in range(100):
            script.until(script.now_ms + 50, 3)
            script.receives(2, Kind.PING)
        assert script.changes == []
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.SUSPECT))
        for _ in range(100):
            script.until(script.now_ms + 50, 3)
            script.receives(2, Kind.PING)
        assert script.changes == [Suspected(2, 12)]
        script.until(script.now_ms + 2_000, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_hearsay_is_suspicion_for_twice_as_long(self) -> None:
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.SUSPECT))
        assert script.changes == [Suspected(2, 12)]
        assert script.swim.members[2].suspicion_ms == 2 * script.swim.settings.suspicion_timeout_ms
        assert (Kind.PING, 2) in script.take(), "it hears of it, and may refute"
        script.until(5_000, 3)
        assert script.swim.members[2].suspicion_ms == script.swim.settings.suspicion_timeout_ms, "it is silent here too"
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_death_that_another_broker_declared_is_believed_if_the_broker_does_not_refute_it(self) -> None:
        """FD16."""
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD))
        assert script.changes == [Suspected(2, 12)]
        (ping,) = [each for each in script.sent if each.receiver == 2]
        assert ping.claims[0] == script.claim(2, Status.SUSPECT)
        script.until(101, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_broker_refutes_that_it_was_declared_dead(self) -> None:
        """FD16. Who declared it dead was cut off from it; the claim goes round for a while."""
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD))
        script.until(90, 3)
        script.receives(2, Kind.GOSSIP, incarnation=1)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD))
        script.until(2_000, 2, 3)
        assert script.changes == [Suspected(2, 12), Alive(2, 12)]

    def test_a_death_counts_at_once_after_a_suspicion_that_the_broker_did_not_refute(self) -> None:
        """FD16."""
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.SUSPECT))
        script.until(99, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD))
        assert script.changes == [Suspected(2, 12)]
        script.until(101, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]
        late = Script(2, 3)
        late.receives(3, Kind.GOSSIP, late.claim(2, Status.SUSPECT))
        late.until(200, 3)
        late.receives(3, Kind.GOSSIP, late.claim(2, Status.DEAD))
        assert late.changes == [Suspected(2, 12), Dead(2, 12)]
        assert late.swim.health.level == 0, "it was not late itself"

    def test_a_death_of_an_earlier_incarnation_shortens_no_suspicion(self) -> None:
        """FD16."""
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.SUSPECT, 1))
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD))
        assert script.swim.members[2].suspicion_ms == 2 * script.swim.settings.suspicion_timeout_ms

    def test_claims_about_other_registrations_are_ignored(self) -> None:
        script = Script(2, 3)
        for epoch in (0, 99):
            script.receives(3, Kind.GOSSIP, Claim(broker_id=2, epoch=epoch, incarnation=5, status=Status.DEAD))
            script.receives(3, Kind.GOSSIP, Claim(broker_id=9, epoch=epoch, incarnation=5, status=Status.DEAD))
            script.receives(3, Kind.GOSSIP, Claim(broker_id=1, epoch=epoch, incarnation=5, status=Status.DEAD))
        assert script.changes == []
        assert script.swim.channel.incarnation == 0

    def test_a_member_that_never_answered_is_never_suspected(self) -> None:
        """FD4."""
        script = Script(2, 3, answers=False)
        script.until(60_000, 3)
        assert script.changes == []

    def test_a_dead_broker_is_pinged_less_often_and_can_return(self) -> None:
        script = Script(2, 3)
        script.until(2_000, 3)
        script.take()
        script.until(12_000, 3)
        pings = script.take()
        assert pings.count((Kind.PING, 2)) == 50 // DEAD_PING_INTERVALS
        assert 48 <= pings.count((Kind.PING, 3)) <= 52
        script.receives(2, Kind.PING, incarnation=1)
        assert script.changes == [Suspected(2, 12), Dead(2, 12), Alive(2, 12)]

    def test_news_is_sent_on_at_once_to_a_few(self) -> None:
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(3, Status.ALIVE, 1))
        assert script.take() == [(Kind.GOSSIP, 2)]
        script.receives(3, Kind.GOSSIP, script.claim(3, Status.ALIVE, 1))
        assert script.take() == [], "it is no news any more"
        assert FANOUT >= 2


class TestRefutation:
    @pytest.mark.parametrize("status", [Status.SUSPECT, Status.DEAD])
    def test_a_claim_against_this_node_is_refuted_by_a_higher_incarnation(self, status: Status) -> None:
        script = Script(2, 3)
        script.receives(2, Kind.PING, script.claim(1, status, 4), sequence=7)
        assert script.swim.channel.incarnation == 5
        assert {(each.kind, each.receiver, each.incarnation) for each in script.sent} == {
            (Kind.ACK, 2, 5),
            (Kind.GOSSIP, 2, 5),
            (Kind.GOSSIP, 3, 5),
        }
        assert script.changes == []

    def test_an_old_claim_needs_no_answer(self) -> None:
        script = Script(2, 3)
        script.receives(2, Kind.GOSSIP, script.claim(1, Status.SUSPECT))
        script.take()
        script.receives(3, Kind.GOSSIP, script.claim(1, Status.SUSPECT))
        script.receives(3, Kind.GOSSIP, script.claim(1, Status.ALIVE, 7))
        assert (script.take(), script.swim.channel.incarnation) == ([], 1)

    def test_a_node_whose_refutations_are_lost_declares_no_member_dead(self) -> None:
        """FD4: it hears others, but nobody hears it."""
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(1, Status.SUSPECT))
        for _ in range(100):
            script.until(script.now_ms + 300, 3)
            script.receives(3, Kind.PING, script.claim(1, Status.SUSPECT))
        assert script.changes == [Suspected(2, 12)]
        script.until(script.now_ms + 10_000, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_the_highest_incarnation_that_can_be_claimed_is_refuted_too(self) -> None:
        script = Script(2, 3)
        script.receives(2, Kind.GOSSIP, script.claim(1, Status.SUSPECT, INCARNATION_MAX - 1))
        assert script.swim.channel.incarnation == INCARNATION_MAX


class TestEvidence:
    def test_a_broken_connection_makes_it_fast(self) -> None:
        script = Script(2, 3)
        script.until(1_000, 2, 3)
        script.take()
        script.done(script.swim.accuse(2, script.now_ms))
        for datagram in list(script.sent):
            script.answer(datagram, (3,))
        assert set(script.take()) == {(Kind.PING, 2), (Kind.PING_REQUEST, 3)}
        script.until(1_101, 3)
        assert script.changes == [Suspected(2, 12)]
        script.until(1_202, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_datagram_on_its_way_does_not_make_it_slow(self) -> None:
        """The broker died after it had sent that: the ping that follows is one of evidence, too."""
        script = Script(2, 3, suspicion_timeout_ms=60_000)
        script.until(1_000, 2, 3)
        script.done(script.swim.accuse(2, script.now_ms))
        script.until(1_010, 3)
        script.receives(2, Kind.GOSSIP)
        script.until(2_000, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_broker_that_answers_is_not_harmed(self) -> None:
        script = Script(2, 3)
        for _ in range(50):
            script.done(script.swim.accuse(2, script.now_ms))
            for datagram in list(script.sent):
                script.answer(datagram, (2, 3))
            script.until(script.now_ms + 10, 2, 3)
        assert set(script.changes) == {Alive(2, 12)}
        assert len(script.swim._probes.own) <= 2

    def test_repeated_accusations_cause_one_round_of_pings(self) -> None:
        script = Script(2, 3)
        for _ in range(50):
            script.done(script.swim.accuse(2, script.now_ms))
        assert script.take() == [(Kind.PING, 2), (Kind.PING_REQUEST, 3)]

    def test_a_suspicion_under_way_is_shortened(self) -> None:
        script = Script(2, 3)
        script.until(410, 3)
        assert script.changes == [Suspected(2, 12)]
        script.done(script.swim.accuse(2, script.now_ms))
        script.until(script.now_ms + 101, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_suspicion_that_is_shortened_to_an_end_in_the_past_is_over_at_once(self) -> None:
        """This node was not late itself: nothing is postponed, and its health stays."""
        script = Script(2, 3)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.SUSPECT))
        script.until(250, 3)
        script.done(script.swim.accuse(2, script.now_ms))
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]
        script.until(300, 3)
        assert script.swim.health.level == 0

    def test_accusations_of_unknown_or_dead_members_send_nothing(self) -> None:
        script = Script(2, 3)
        script.done(script.swim.accuse(1, 0))
        script.done(script.swim.accuse(9, 0))
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD))
        script.until(101, 3)
        assert script.changes[-1] == Dead(2, 12)
        script.take()
        script.done(script.swim.accuse(2, script.now_ms))
        assert script.take() == []


class TestHealth:
    def test_a_node_without_responses_is_less_healthy_and_declares_members_dead_later(self) -> None:
        script = Script(2, 3)
        script.until(600)
        assert script.swim.health.level > 0
        script.until(850)
        assert Dead not in map(type, script.changes), "with a witness both would be dead by now"
        script.until(10_000)
        assert sorted(change.broker_id for change in script.changes if isinstance(change, Dead)) == [2, 3]

    def test_with_another_responding_member_the_local_health_stays_good(self) -> None:
        script = Script(2, 3)
        script.until(1_000, 3)
        assert script.changes[-1] == Dead(2, 12)
        assert script.swim.health.level == 0

    def test_doubt_stretches_timeouts(self) -> None:
        """FD12."""
        script = Script(2, 3)
        for _ in range(3):
            script.swim.health.degrade()
        script.done(script.swim.accuse(2, 0))
        assert [probe.deadline_ms for probe in script.swim._probes.own.values()] == [400]
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.SUSPECT))
        left_ms = script.swim.members[2].suspicion_ms
        assert script.swim.members[2].resend_ms is not None
        script.swim.members[2].resend_ms = None
        script.swim._probes.keep({})
        script.swim._next_ping_ms = 1 << 40
        assert script.swim.next_deadline_ms == 4 * left_ms

    def test_answers_give_trust_back(self) -> None:
        script = Script(2, 3)
        script.until(1_000)
        assert script.swim.health.level > 0
        for broker in (2, 3):
            script.receives(broker, Kind.GOSSIP, incarnation=1)
        script.until(5_000, 2, 3)
        assert script.swim.health.level == 0


class TestStandstill:
    """FD5."""

    def test_after_a_standstill_no_member_is_suspected(self) -> None:
        script = Script(2, 3)
        script.until(1_000, 2, 3)
        script.until(1_000 + script.swim.settings.interval_ms + 20)  # at least one ping waits
        waits = list(script.swim._probes.own.values())
        assert waits
        script.take()
        script.now_ms += 60_000
        script.done(script.swim.tick(script.now_ms))
        assert (script.take(), script.changes) == ([], [])
        assert (script.swim.next_deadline_ms or 0) > script.now_ms, "it listens first"
        for probe in waits:
            subject = {"subject": probe.broker_id, "subject_epoch": probe.epoch}
            script.receives(probe.broker_id, Kind.ACK, sequence=probe.sequence, **subject)
        script.until(script.now_ms + 5_000, 2, 3)
        assert script.changes == []

    def test_a_ping_that_began_after_the_standstill_is_not_postponed_with_the_others(self) -> None:
        script = Script(2, 3)
        script.until(1_000, 2, 3)
        script.now_ms += 60_000
        script.done(script.swim.accuse(2, script.now_ms))  # its connection breaks before the time is looked at
        script.done(script.swim.tick(script.now_ms))
        script.until(script.now_ms + 5_000, 3)
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]

    def test_a_suspicion_has_as_much_time_left_as_before(self) -> None:
        script = Script(2, 3)
        script.until(410, 3)
        assert script.changes == [Suspected(2, 12)]
        left_ms = script.swim.members[2].refutation_ms(1) - script.now_ms
        script.now_ms += 60_000
        script.done(script.swim.tick(script.now_ms))
        woken_ms = script.now_ms
        assert left_ms <= script.swim.members[2].refutation_ms(1) - woken_ms <= left_ms + 100 + LISTEN_MS
        script.receives(2, Kind.GOSSIP, incarnation=1)
        script.until(script.now_ms + 5_000, 2, 3)
        assert script.changes == [Suspected(2, 12), Alive(2, 12)]

    def test_a_node_that_is_always_late_still_finds_the_dead(self) -> None:
        script = Script(2, 3)
        for _ in range(2_000):
            before = len(script.sent)
            script.now_ms = max(script.now_ms, script.swim.next_deadline_ms or 0) + STANDSTILL_MS + 30
            script.done(script.swim.tick(script.now_ms))
            for datagram in script.sent[before:]:
                script.answer(datagram, (3,))
        assert script.changes == [Suspected(2, 12), Dead(2, 12)]


class TestRegistrations:
    def test_a_broker_alone_sends_nothing_and_has_no_deadline(self) -> None:
        script = Script()
        assert script.swim.next_deadline_ms is None
        script.done(script.swim.tick(1_000))
        script.done(script.swim.accuse(2, 1_000))
        assert script.take() == []

    def test_without_its_own_registration_a_broker_sends_and_accepts_nothing(self) -> None:
        """FD13."""
        script = Script(2, 3)
        script.until(410, 3)
        script.done(script.swim.members_changed({broker: BROKERS[broker] for broker in (2, 3)}, script.now_ms))
        script.take()
        assert script.swim.next_deadline_ms is None
        script.receives(2, Kind.PING)
        script.done(script.swim.tick(9_000))
        script.done(script.swim.accuse(3, 9_000))
        assert (script.take(), script.changes) == ([], [Suspected(2, 12), Alive(2, 12)])

    def test_a_new_registration_of_this_node_believes_nothing_of_the_last_one(self) -> None:
        """FD14. It was cut off: others fenced it, and what it took for dead is alive."""
        script = Script(2, 3)
        while not {Dead(2, 12), Dead(3, 13)} <= set(script.changes):
            script.until(script.now_ms + 10)
        assert script.now_ms < 10_000
        script.changes.clear()
        script.done(script.swim.members_changed({broker: BROKERS[broker] for broker in (2, 3)}, script.now_ms))
        script.done(script.swim.members_changed(BROKERS | {1: (21, ("127.0.0.1", 1))}, script.now_ms))
        assert sorted(change.broker_id for change in script.changes if isinstance(change, Alive)) == [2, 3]
        assert (script.swim.channel.epoch, script.swim.channel.incarnation) == (21, 0)
        script.sent.clear()
        script.until(30_000)
        assert len(script.changes) == 2, "it has not heard of them since"
        assert not [claim for datagram in script.sent for claim in datagram.claims if claim.broker_id != 1]

    def test_a_node_that_was_cut_off_asks_the_dead_at_once(self) -> None:
        """FN3 of the controller."""
        script = Script(2, 3)
        script.until(2_000, 3)
        script.take()
        script.done(script.swim.ping_dead(script.now_ms))
        (ping,) = script.sent
        assert (ping.kind, ping.receiver, ping.claims) == (Kind.PING, 2, (script.claim(2, Status.DEAD),))
        script.receives(2, Kind.ACK, incarnation=1)
        assert script.changes[-1] == Alive(2, 12)
        script.take()
        script.done(script.swim.ping_dead(script.now_ms))
        assert script.take() == []

    def test_a_life_that_is_new_is_pinged_at_once(self) -> None:
        script = Script(2, 3)
        script.done(script.swim.members_changed(BROKERS | {2: (22, ("127.0.0.1", 2))}, 0))
        assert [(each.receiver, each.receiver_epoch) for each in script.sent] == [(2, 22)]
        script.take()
        script.done(script.swim.members_changed(BROKERS | {1: (21, ("127.0.0.1", 1)), 2: (22, ("127.0.0.1", 2))}, 0))
        assert sorted(script.take()) == [(Kind.PING, 2), (Kind.PING, 3)], "this node is new to both"
        script.done(script.swim.members_changed(BROKERS | {1: (21, ("127.0.0.1", 1)), 2: (22, ("127.0.0.1", 2))}, 0))
        assert script.take() == []

    def test_a_new_life_is_alive(self) -> None:
        script = Script(2, 3)
        script.until(2_000, 3)
        script.done(script.swim.members_changed(BROKERS | {2: (22, ("127.0.0.1", 2))}, script.now_ms))
        member = script.swim.members[2]
        assert (member.epoch, member.status, member.last_received_ms) == (22, Status.ALIVE, None)
        script.receives(3, Kind.GOSSIP, script.claim(2, Status.DEAD, 9))
        assert member.status is Status.ALIVE, "that was the life before"

    def test_an_address_change_keeps_the_status_of_a_registration(self) -> None:
        script = Script(2, 3)
        script.until(2_000, 3)
        script.done(script.swim.members_changed(BROKERS | {2: (12, ("127.0.0.1", 22))}, script.now_ms))
        assert (script.swim.members[2].status, script.swim.members[2].address) == (Status.DEAD, ("127.0.0.1", 22))

    def test_a_broker_that_left_is_forgotten(self) -> None:
        script = Script(2, 3)
        script.until(410, 3)
        script.done(script.swim.members_changed({broker: BROKERS[broker] for broker in (1, 3)}, script.now_ms))
        script.take()
        script.until(5_000, 3)
        assert {receiver for _, receiver in script.take()} == {3}
        assert script.changes == [Suspected(2, 12)]

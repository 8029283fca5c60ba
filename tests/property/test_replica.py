"""Three brokers with one partition, a controller, crashes and elections: what was acknowledged stays (L1, L3, L4, L5).

Logs are lists of (leader epoch, value). The controller elects from the ISR alone, and takes ISR changes only from the
leader of the current epoch; a leader may go on for a while without knowing that it was replaced. A broker that crashes
keeps its log, or loses the end of it that nobody had flushed; the last one of the ISR keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.soak import examples

from rota.coordinator.replica.state import Effects, ExpandIsr, ReplicaState, Role, ShrinkIsr
from rota.coordinator.replica.waits import Complete
from rota.protocol.errors import ErrorCode

BROKERS = (1, 2, 3)
WAIT_MS = 20_000
some_broker = st.sampled_from(BROKERS)
Entry = tuple[int, int]  # leader epoch, value


@dataclass
class Broker:
    state: ReplicaState[int]
    log: list[Entry] = field(default_factory=list)
    flushed: int = 0
    high_watermark: int = 0  # the highest that was seen since the log was opened
    is_up: bool = True

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(the largest epoch up to that one, where it ends)."""
        upto = [known for known, _ in self.log if known <= epoch]
        return (upto[-1], len(upto)) if upto else (-1, 0)


class Cluster(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms, self.values, self.epoch = 1_000_000, 0, 0
        self.flushes, self.minimum = False, 1
        self.brokers: dict[int, Broker] = {}
        self.leader, self.isr = 1, frozenset(BROKERS)
        self.waiting: dict[int, tuple[Broker, int, int, Entry]] = {}  # by token: who, offset, deadline, the last record
        self.acknowledged: dict[int, Entry] = {}  # by offset of the record
        self.requests: list[tuple[int, int, frozenset[int]]] = []  # ISR changes: broker, epoch, ISR
        self.answers: list[tuple[int, int, bool]] = []  # what the controller said to them: broker, epoch, taken

    @initialize(flushes=st.booleans(), minimum=st.integers(1, 4), isr=st.sets(some_broker))
    def begin(self, flushes: bool, minimum: int, isr: set[int]) -> None:
        self.flushes, self.minimum, self.isr = flushes, minimum, frozenset({self.leader, *isr})
        self.brokers = {
            name: Broker(ReplicaState(name, flushes=flushes, min_insync_replicas=minimum)) for name in BROKERS
        }
        self.announce()

    # ---- effects

    def perform(self, name: int, effects: Effects[int]) -> None:
        broker = self.brokers[name]
        for effect in effects:
            match effect:
                case ShrinkIsr(isr) | ExpandIsr(isr):
                    self.requests.append((name, broker.state.leader_epoch, isr))
                case Complete(token, error):
                    self.complete(broker, token, error)

    def complete(self, broker: Broker, token: int, error: ErrorCode) -> None:
        waits_on, offset, deadline_ms, last = self.waiting.pop(token)  # L5: once
        assert waits_on is broker
        if error is ErrorCode.NONE:
            assert broker.state.role is Role.LEADER
            assert offset <= broker.state.high_watermark
            assert len(broker.state.isr) >= min(self.minimum, len(BROKERS))
            self.acknowledged[offset - 1] = last
        elif error is ErrorCode.REQUEST_TIMED_OUT:
            assert self.now_ms >= deadline_ms

    # ---- producers and followers

    @rule(name=some_broker)
    def produce(self, name: int) -> None:
        """Whoever believes that it leads takes records."""
        broker = self.brokers[name]
        if not broker.is_up or broker.state.role is not Role.LEADER or not broker.state.has_min_isr:
            return
        self.values += 1
        broker.log.append((broker.state.leader_epoch, self.values))
        self.perform(name, broker.state.appended(len(broker.log)))
        error, offset = broker.state.committed_error(len(broker.log)), len(broker.log)
        deadline_ms = self.now_ms + WAIT_MS
        self.waiting[self.values] = broker, offset, deadline_ms, broker.log[-1]
        if error is None:
            broker.state.await_committed(offset, deadline_ms, self.values)
        else:
            self.complete(broker, self.values, error)

    @rule(name=some_broker, count=st.integers(0, 3))
    def fetch(self, name: int, count: int) -> None:
        """A follower that knows its leader fetches, or truncates what its leader does not have."""
        follower, leader = self.brokers[name], self.brokers[self.leader]
        if not (follower.is_up and leader.is_up) or follower.state.role is not Role.FOLLOWER:
            return
        if not follower.state.leader_epoch == leader.state.leader_epoch == self.epoch:
            return  # fenced
        last_epoch = follower.log[-1][0] if follower.log else -1
        epoch, end = leader.epoch_end(last_epoch)
        if follower.log and (epoch < last_epoch or end < len(follower.log)):
            kept = min(end, follower.epoch_end(epoch)[1])
            del follower.log[kept:]
            follower.state.truncated(0, kept)
            follower.flushed = min(follower.flushed, kept)
            return
        self.perform(self.leader, leader.state.follower_fetched(name, len(follower.log), self.now_ms))
        at = len(follower.log)
        follower.log += leader.log[at : at + count]
        follower.state.appended(len(follower.log))
        self.perform(name, follower.state.leader_committed(leader.state.high_watermark))

    @rule(name=some_broker)
    def flush(self, name: int) -> None:
        broker = self.brokers[name]
        if broker.is_up:
            broker.flushed = len(broker.log)
            self.perform(name, broker.state.flushed(broker.flushed))

    @rule(ms=st.sampled_from([1, 5_000, 31_000]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        for name, broker in self.brokers.items():
            if broker.is_up:
                self.perform(name, broker.state.tick(self.now_ms))

    # ---- the controller

    @rule(taken=st.booleans())
    @precondition(lambda self: self.requests)
    def answer_request(self, taken: bool) -> None:
        """The controller decides; the leader hears of it later."""
        name, epoch, isr = self.requests.pop(0)
        taken = taken and (name, epoch) == (self.leader, self.epoch) and all(self.brokers[item].is_up for item in isr)
        if taken:
            self.isr = isr
        self.answers.append((name, epoch, taken))

    @rule()
    @precondition(lambda self: self.answers)
    def receive_answer(self) -> None:
        name, epoch, taken = self.answers.pop(0)
        state = self.brokers[name].state
        if not self.brokers[name].is_up or state.leader_epoch != epoch or state.role is not Role.LEADER:
            return
        if taken and epoch == self.epoch:
            self.perform(name, state.isr_changed(self.isr, self.now_ms))
        elif not taken:
            self.perform(name, state.isr_refused())

    @rule(name=some_broker)
    def elect(self, name: int) -> None:
        if name not in self.isr or not self.brokers[name].is_up:
            return
        self.epoch, self.leader = self.epoch + 1, name
        self.isr = frozenset(item for item in self.isr if self.brokers[item].is_up)
        self.announce_to(name)

    @rule(name=some_broker)
    def announce_to(self, name: int) -> None:
        """A broker hears who leads; until then it goes on as before."""
        broker = self.brokers[name]
        if not broker.is_up:
            return
        if name == self.leader:
            self.perform(name, broker.state.become_leader(self.epoch, BROKERS, self.isr, self.now_ms))
        else:
            self.perform(name, broker.state.become_follower(self.epoch))

    def announce(self) -> None:
        for name in BROKERS:
            self.announce_to(name)

    @rule(name=some_broker, machine=st.booleans(), kept=st.integers(0, 3))
    def crash(self, name: int, machine: bool, kept: int) -> None:
        """The controller takes it out of the ISR unless it is the last one, which then keeps its log."""
        broker = self.brokers[name]
        if not all(item.is_up for item in self.brokers.values()):
            return  # one at a time: otherwise there is hardly ever a cluster
        broker.is_up = False
        self.perform(name, broker.state.fail())
        self.isr = self.isr - {name} or self.isr
        if machine and name not in self.isr:
            del broker.log[broker.flushed + kept :]

    @rule(name=some_broker)
    def restart(self, name: int) -> None:
        broker = self.brokers[name]
        if broker.is_up:
            return
        broker.is_up, broker.flushed = True, len(broker.log)
        broker.state.reopen(0, len(broker.log), broker.flushed)
        broker.high_watermark = broker.state.high_watermark
        if name == self.leader:  # a process that restarts leads in a new epoch
            if name in self.isr:
                self.elect(name)
        else:
            self.announce_to(name)

    # ---- the laws

    @invariant()
    def acknowledged_records_are_with_every_leader(self) -> None:
        """L1: with the current leader, if it knows that it is, and with all of the ISR."""
        for name in self.isr if self.brokers else ():
            log = self.brokers[name].log
            for offset, entry in self.acknowledged.items():
                assert offset < len(log), (name, offset)
                assert log[offset] == entry

    @invariant()
    def the_high_watermark_only_grows(self) -> None:
        """L1, L3. With clean elections even a truncation leaves it where it is."""
        for broker in self.brokers.values():
            state = broker.state
            assert state.high_watermark >= broker.high_watermark
            broker.high_watermark = state.high_watermark
            assert state.high_watermark <= state.log_end_offset == len(broker.log) or not broker.is_up

    @invariant()
    def committed_records_are_the_same_everywhere(self) -> None:
        logs = [broker.log[: broker.state.high_watermark] for broker in self.brokers.values() if broker.is_up]
        for item in logs:
            for other in logs:
                common = min(len(item), len(other))
                assert item[:common] == other[:common]

    @invariant()
    def no_request_waits_past_a_deadline(self) -> None:
        for broker, _, deadline_ms, _ in self.waiting.values():
            assert broker.is_up
            assert deadline_ms > self.now_ms or broker.state.next_deadline_ms is not None


Cluster.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=60, deadline=None)
TestCluster = Cluster.TestCase

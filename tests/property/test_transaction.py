"""A transactional id against every order of requests, markers, timeouts and crashes. TXC1-TXC6.

The world keeps what a client was told; after each step the machine is compared with the log that it wrote.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.soak import examples
from tests.unit.coordinator.transaction.script import Script

from rota.coordinator.transaction.events import Producer, TopicPartition
from rota.coordinator.transaction.machine import Transaction
from rota.coordinator.transaction.state import EPOCHS_END, ProducerReply
from rota.coordinator.transaction.transitions import ENDING, TRANSITIONS, TransactionState
from rota.protocol.errors import ErrorCode

PARTITIONS: list[TopicPartition] = [("t", 0), ("t", 1), ("u", 0)]
VERSIONS = st.sampled_from([0, 2])


class Transactions(RuleBasedStateMachine):
    """Producers are those that the id has given, the newest last: any of them may send anything at any time."""

    @initialize(epoch=st.sampled_from([0, EPOCHS_END - 2, EPOCHS_END - 1]))
    def begin(self, epoch: int) -> None:
        self.script = Script()
        self.producers: list[Producer] = []
        self.decided: dict[tuple[int, int], bool] = {}  # what a marker of this producer and epoch says
        reply = self.script.init()
        if epoch:
            from dataclasses import replace

            record = replace(self.script.value, producer_epoch=epoch)
            self.script.machine.hard = record
            self.script.log[-1].value = record
        self.producers.append(Producer(reply.producer_id, self.script.producer.epoch))
        self.records_seen = 0

    def pick(self, age: int) -> Producer:
        return self.producers[-1 - age % len(self.producers)]

    @rule(is_mine=st.booleans(), age=st.integers(0, 2))
    def init(self, is_mine: bool, age: int) -> None:
        was_ongoing = self.script.state is TransactionState.ONGOING
        reply = self.script.init(self.pick(age) if is_mine else None)
        if reply.error is ErrorCode.NONE:
            assert not was_ongoing
            given = Producer(reply.producer_id, reply.epoch)
            assert given == self.script.producer
            assert reply.epoch <= EPOCHS_END
            if not is_mine:
                assert given not in self.producers, "a new producer has an epoch of its own"
            self.producers.append(given)

    @rule(age=st.integers(0, 2), partitions=st.lists(st.sampled_from(PARTITIONS), max_size=2), version=VERSIONS)
    def add(self, age: int, partitions: list[TopicPartition], version: int) -> None:
        producer = self.pick(age)
        if self.script.add(*partitions, producer=producer, version=version) is ErrorCode.NONE:
            assert producer == self.script.producer
            assert set(partitions) <= set(self.script.value.partitions)

    @rule(age=st.integers(0, 2), is_commit=st.booleans(), version=VERSIONS)
    def end(self, age: int, is_commit: bool, version: int) -> None:
        producer, before = self.pick(age), self.script.state
        reply = self.script.end(is_commit, producer, version)
        if reply.error is not ErrorCode.NONE:
            assert self.script.state is before
            return
        if version == 2:
            self.producers.append(Producer(reply.producer_id, reply.epoch))
        if before is TransactionState.ONGOING:
            wanted = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
            assert self.script.state is wanted

    @precondition(lambda self: self.script.sent)
    @rule(data=st.data(), age=st.integers(0, 3))
    def markers_are_written(self, data: st.DataObject, age: int) -> None:
        """Of the newest message, or of an old one: responses come late, and twice."""
        message = self.script.sent[-1 - age % len(self.script.sent)]
        written = data.draw(st.sets(st.sampled_from(PARTITIONS)))
        self.script.written(*written & set(message.partitions), producer=message.producer)

    @rule(ms=st.sampled_from([1, 30_000, 60_000]))
    def time_passes(self, ms: int) -> None:
        before = self.script.state
        self.script.after(ms)
        if before is not TransactionState.ONGOING:
            assert self.script.state is before

    @rule()
    def it_crashes(self) -> None:
        before = self.script.value
        self.script.crash()
        assert self.script.value == before
        if before.state in ENDING:
            assert self.script.sent[-1].partitions == before.partitions, "a decision is sent again"

    @rule(data=st.data(), steps=st.integers(1, 4))
    def it_crashes_before_its_records_are_committed(self, data: st.DataObject, steps: int) -> None:
        """The last records are lost. What waited for them was not answered and not sent."""
        script, before = self.script, len(self.script.log)
        given: list[tuple[int, Producer]] = []  # with the number of records that the reply waits for
        for _ in range(steps):
            reply = self.anything(data, before)
            if isinstance(reply, ProducerReply) and reply.error is ErrorCode.NONE and reply.producer_id >= 0:
                given.append((script.replied_after, Producer(reply.producer_id, reply.epoch)))
        committed = data.draw(st.integers(before, len(script.log)))
        durable = script.log[committed - 1].value
        script.lose(committed)
        assert script.value == durable
        self.producers += [producer for after, producer in given if after <= committed]
        self.records_seen = min(self.records_seen, committed - 1)

    def anything(self, data: st.DataObject, committed: int) -> object:
        """Take any step and return its reply. Markers are written only of messages that were sent."""
        script, producer = self.script, self.pick(data.draw(st.integers(0, 2)))
        sent = [each for each, after in zip(script.sent, script.sent_after, strict=True) if after <= committed]
        match data.draw(st.sampled_from(["init", "init again", "add", "commit", "abort", "written", "time"])):
            case "init":
                return script.init()
            case "init again":
                return script.init(producer)
            case "add":
                return script.add(PARTITIONS[0], producer=producer, version=data.draw(VERSIONS))
            case "commit" | "abort" as how:
                return script.end(how == "commit", producer, data.draw(VERSIONS))
            case "written" if sent:
                return script.written(*sent[-1].partitions, producer=sent[-1].producer)
        return script.after(60_000)

    @invariant()
    def the_log_is_the_state(self) -> None:
        """TXC1: the log, and its last record alone, as compaction leaves it, give the durable state."""
        for records in (self.script.log, self.script.log[-1:]):
            machine = Transaction("t")
            for record in records:
                machine.replay(record)
            assert machine.hard == self.script.value

    @invariant()
    def each_record_follows_from_the_one_before(self) -> None:
        """TXC2 and the table of transitions."""
        for old, new in zip(
            self.script.log[self.records_seen :], self.script.log[self.records_seen + 1 :], strict=False
        ):
            assert old.value is not None
            assert new.value is not None
            assert new.value.state in TRANSITIONS[old.value.state]
            is_same_id = old.value.producer_id == new.value.producer_id
            assert new.value.producer_epoch >= old.value.producer_epoch if is_same_id else new.value.producer_epoch == 0
        self.records_seen = max(0, len(self.script.log) - 1)

    @invariant()
    def each_message_is_a_committed_decision(self) -> None:
        """TXC3: also after a crash that lost the last records."""
        decided = {(record.value.producer, record.value.state) for record in self.script.log if record.value}
        for message in self.script.sent:
            state = TransactionState.PREPARE_COMMIT if message.is_commit else TransactionState.PREPARE_ABORT
            assert (message.producer, state) in decided

    @invariant()
    def one_decision_for_each_epoch(self) -> None:
        """No markers of one producer and epoch differ: a transaction is committed or aborted, everywhere."""
        for message in self.script.sent:
            if message.client_version == 2:
                assert self.decided.setdefault(message.producer, message.is_commit) == message.is_commit

    def teardown(self) -> None:
        """TXC5: whatever happened, the id can go on after its markers are written."""
        if not hasattr(self, "script"):
            return
        script = self.script
        script.crash()
        for _ in range(3):
            if script.machine.is_ending:
                script.written(*PARTITIONS)
            if script.init().error is ErrorCode.NONE:
                return
        raise AssertionError(f"the id is stuck in {script.state}")


Transactions.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)
TestTransactions = Transactions.TestCase

"""Whatever brokers and wires do: nothing is lost, nothing twice, in order, to the byte (E1-E4 in docs/LAWS.md)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.property.producer_world import DELIVERY_MS, NODES, World
from tests.soak import examples

from rota.client.producer.partitioner import partition_of
from rota.client.producer.sticky import Sticky
from rota.protocol.errors import ErrorCode
from rota.protocol.records.produced import murmur2

PARTITIONS = 3
RETRIABLE = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
REFUSALS = (*RETRIABLE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

partition = st.integers(0, PARTITIONS - 1)
node = st.sampled_from(NODES)


class Producing(RuleBasedStateMachine):
    """What a producer and its cluster may do to each other."""

    @initialize(idempotent=st.booleans(), in_flight_max=st.sampled_from([1, 2, 5]), epoch=st.sampled_from([0, 32_766]))
    def begin(self, idempotent: bool, in_flight_max: int, epoch: int) -> None:
        self.partitions = PARTITIONS
        self.begun(idempotent, in_flight_max, epoch)

    def begun(self, idempotent: bool, in_flight_max: int, epoch: int) -> None:
        self.world = World(self.partitions, idempotent, in_flight_max)
        if idempotent:
            self.world.identify(epoch)  # 32,766: its epochs are soon used up

    @rule(number=partition, paddings=st.lists(st.integers(0, 90), min_size=1, max_size=6))
    def send(self, number: int, paddings: list[int]) -> None:
        for padding in paddings:
            self.world.send(number % self.partitions, padding)
        self.world.pump()

    @rule(ms=st.sampled_from([1, 5, 20, 300, DELIVERY_MS // 2 + 1, DELIVERY_MS]))
    def wait(self, ms: int) -> None:
        self.world.now_ms += ms
        self.world.pump()

    @rule(epoch=st.sampled_from([0, 32_767]))
    def identify(self, epoch: int) -> None:
        sequences = self.world.accumulator.sequences
        if sequences is not None and sequences.producer is None:
            self.world.identify(epoch)

    @rule(of=node)
    def answer(self, of: int) -> None:
        self.world.answer(of)
        self.world.pump()

    @rule(of=node, code=st.sampled_from(REFUSALS), number=partition)
    def refuse(self, of: int, code: ErrorCode, number: int) -> None:
        if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.world.answer(of, int(code), number % self.partitions)

    @rule(of=node, done=st.integers(0, 5))
    def lose(self, of: int, done: int) -> None:
        self.world.lose(of, done)
        self.world.pump()

    @rule(found=st.booleans())
    def find_late(self, found: bool) -> None:
        self.world.find_late(found)

    @rule(number=partition, to=st.sampled_from([1, 2, None]))
    def elect(self, number: int, to: int | None) -> None:
        self.world.lead(number % self.partitions, to)

    @rule(number=partition, largest=st.sampled_from([100, 130, 1 << 20]))
    def limit(self, number: int, largest: int) -> None:
        self.world.logs[number % self.partitions].largest = largest

    @rule()
    def flushing(self) -> None:
        self.world.accumulator.flushing = not self.world.accumulator.flushing

    @invariant()
    def memory_is_exact(self) -> None:
        if hasattr(self, "world"):
            self.world.check_memory()
            self.world.check_logs()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.settle()
            self.world.check_memory()
            self.world.check_logs()
            assert self.world.accumulator.used_bytes == 0


class Sequencing(Producing):
    """One partition, always idempotent: where sequences meet most."""

    @initialize(epoch=st.sampled_from([0, 32_766]))
    def begin(self, epoch: int) -> None:  # type: ignore[override]
        self.partitions = 1
        self.begun(True, 5, epoch)


TestProducing, TestSequencing = Producing.TestCase, Sequencing.TestCase
TestProducing.settings = settings(max_examples=examples(50), stateful_step_count=40, deadline=None)
TestSequencing.settings = settings(max_examples=examples(75), stateful_step_count=50, deadline=None)


def one_partition(*paddings: int) -> World:
    """A record that is written, and each of these in a batch of its own on the wire."""
    world = World(1, idempotent=True)
    world.identify()
    world.accumulator.flushing = True
    world.send(0, 0)
    world.pump()
    world.answer(1)
    for padding in paddings:
        world.send(0, padding)
        world.pump()
    return world


def ended(world: World) -> list[int]:
    world.settle()
    world.check_logs()
    return [number for _, number in world.logs[0].records]


def test_when_the_first_of_two_ambiguous_batches_expires_the_second_is_written_once() -> None:
    world = one_partition(80)
    world.now_ms += DELIVERY_MS - 30
    world.send(0, 80)
    world.pump()
    world.lose(1, done=2)  # both are written, nobody knows
    world.leaders[0] = world.queues[0].leader = None  # type: ignore[assignment]
    world.now_ms += 30
    world.pump()
    assert len(world.accumulator.incomplete) == 1
    assert ended(world) == [0, 1, 2]


def test_when_the_first_of_two_expires_unwritten_the_second_is_written_under_a_new_epoch() -> None:
    world = one_partition(80)
    world.now_ms += DELIVERY_MS - 30
    world.send(0, 80)
    world.pump()
    world.lose(1, done=0)
    world.late.clear()
    world.queues[0].leader = None
    world.now_ms += 30
    world.pump()
    assert ended(world) == [0, 2]
    assert world.logs[0].producer == (7, 1)


def test_a_batch_that_may_be_written_and_is_then_too_large_is_not_written_twice() -> None:
    world = World(1, idempotent=True)
    world.identify()
    world.send(0, 20)
    world.send(0, 20)
    world.now_ms += 5
    world.pump()
    world.lose(1, done=1)
    world.logs[0].largest = 100
    world.now_ms += 20
    world.pump()
    world.answer(1)
    assert ended(world) == [0, 1]


def test_out_of_order_behind_one_in_doubt_renumbers_nothing() -> None:
    world = one_partition(80)
    world.lead(0, 2)
    world.send(0, 80)
    world.pump()
    world.answer(2)  # the first one is not there yet
    world.lose(1, done=0)
    world.lead(0, 1)
    world.find_late(found=True)
    assert ended(world) == [0, 1, 2]
    assert world.logs[0].producer[1] == 0


def test_a_refused_batch_takes_none_of_those_behind_it_along() -> None:
    world = one_partition(80, 80, 80)
    world.answer(1, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0)
    assert ended(world) == [0, 2, 3]
    assert world.logs[0].producer == (7, 1)


@given(st.binary(max_size=80))
@settings(deadline=None)
def test_murmur2_is_that_of_another_client(data: bytes) -> None:
    from kafka.partitioner.default import murmur2 as oracle

    assert murmur2(data) == oracle(data) & 0xFFFF_FFFF
    assert partition_of(data, 12) == (oracle(data) & 0x7FFF_FFFF) % 12


@given(st.lists(st.integers(1, 300), max_size=50), st.sets(st.integers(0, 5)), st.randoms(use_true_random=False))
def test_a_sticky_partition_is_led_and_filled(sizes: list[int], led: set[int], chance: object) -> None:
    sticky = Sticky(100, chance.randrange)  # type: ignore[attr-defined]
    sticky.update(range(6), sorted(led))
    taken = 0
    for size in sizes:
        before, taken = sticky.partition, taken + size
        after = sticky.filled(size)
        assert after in (led or set(range(6)))
        if taken < 100:
            assert after == before
        else:
            taken = 0


def test_after_unknown_producer_id_batches_are_sent_one_at_a_time() -> None:
    world = World(1, idempotent=True)
    world.identify()
    world.accumulator.flushing = True
    for _ in range(3):
        world.send(0, 80)
        world.pump()
    assert len(world.wires[1]) == 1
    world.answer(1, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 0)  # a new topic whose leader is not ready
    world.pump()
    assert len(world.wires[1]) == 0
    assert ended(world) == [0, 1, 2]

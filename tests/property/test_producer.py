"""Whatever brokers and wires do: nothing is lost, nothing twice, in order, to the byte (E1-E4 in docs/LAWS.md)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.property.producer_world import DELIVERY_MS, NODES, World

from rota.client.produce.partitioner import murmur2, partition_of
from rota.client.produce.sticky import Sticky
from rota.protocol.errors import ErrorCode

PARTITIONS = 3
RETRIABLE = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
REFUSALS = (*RETRIABLE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

partition = st.integers(0, PARTITIONS - 1)
node = st.sampled_from(NODES)


class Producing(RuleBasedStateMachine):
    """What a producer and its cluster may do to each other."""

    @initialize(idempotent=st.booleans(), in_flight_max=st.sampled_from([1, 2, 5]), known=st.booleans())
    def begin(self, idempotent: bool, in_flight_max: int, known: bool) -> None:
        self.world = World(PARTITIONS, idempotent, in_flight_max)
        if idempotent and known:
            self.world.accumulator.identify(7, 32_766)  # its epochs are soon used up

    @rule(number=partition, paddings=st.lists(st.integers(0, 90), min_size=1, max_size=6))
    def send(self, number: int, paddings: list[int]) -> None:
        for padding in paddings:
            self.world.send(number, padding)
        self.world.pump()

    @rule(ms=st.sampled_from([1, 5, 20, 100, DELIVERY_MS]))
    def wait(self, ms: int) -> None:
        self.world.now_ms += ms
        self.world.pump()

    @rule(epoch=st.sampled_from([0, 32_767]))
    def identify(self, epoch: int) -> None:
        sequences = self.world.accumulator.sequences
        if sequences is not None and sequences.producer is None:
            self.identities = getattr(self, "identities", 7) + 1
            self.world.accumulator.identify(self.identities, epoch)

    @rule(of=node)
    def answer(self, of: int) -> None:
        self.world.answer(of)
        self.world.pump()

    @rule(of=node, code=st.sampled_from(REFUSALS), number=partition)
    def refuse(self, of: int, code: ErrorCode, number: int) -> None:
        if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.world.answer(of, int(code), number)

    @rule(of=node, done=st.integers(0, 5))
    def lose(self, of: int, done: int) -> None:
        self.world.lose(of, done)
        self.world.pump()

    @rule(found=st.booleans())
    def find_late(self, found: bool) -> None:
        self.world.find_late(found)

    @rule(number=partition, to=st.sampled_from([1, 2, None]))
    def elect(self, number: int, to: int | None) -> None:
        self.world.lead(number, to)

    @rule(number=partition, largest=st.sampled_from([100, 130, 1 << 20]))
    def limit(self, number: int, largest: int) -> None:
        self.world.logs[number].largest = largest

    @rule()
    def hurry(self) -> None:
        self.world.accumulator.hurry = not self.world.accumulator.hurry

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


TestProducing = Producing.TestCase
TestProducing.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


@given(st.binary(max_size=80))
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

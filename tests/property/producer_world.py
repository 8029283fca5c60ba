"""A world for the producer's pure half: two brokers that keep sequences as Kafka does, wires that lose answers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rota.client.errors import Unreachable
from rota.client.producer.accumulator import Accumulator, Limits
from rota.client.producer.batch import Batch, Failed, Written, record_bytes
from rota.client.producer.produce_response import Effects, ProduceResults
from rota.client.producer.sequences import NUMBERED_MAX, Sequences
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse
from rota.protocol.records.batch import SEQUENCE_MAX, check_batch, read_header
from rota.protocol.records.record import read_records

BATCH_BYTES, LINGER_MS, DELIVERY_MS, REQUEST_BYTES = 160, 5, 1_000, 400
ENOUGH_MS = 500  # to deliver whatever a test sends, when nothing goes wrong
NODES = (1, 2)
TOPIC = "t"

Sent = tuple[int, int]  # partition, number in the order of sending


@dataclass
class Log:
    """One partition. `last` are the batches that the broker remembers: (first sequence, last sequence, offset)."""

    records: list[Sent] = field(default_factory=list)
    producer: tuple[int, int] = (-1, -1)
    next: int = 0
    last: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=NUMBERED_MAX))
    largest: int = 1 << 20

    def append(self, raw: bytes) -> tuple[int, int]:
        """(code, offset), as Kafka's ProducerAppendInfo would have it."""
        header = read_header(raw)
        check_batch(raw, 0, header)
        records = [tuple(map(int, (record.value or b"").split(b":")[:2])) for record in read_records(raw)]
        if len(raw) > self.largest:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.producer_id >= 0:
            code, offset = self._check(header.producer_id, header.producer_epoch, header.base_sequence, header.count)
            if code or offset >= 0:
                return code, offset
        self.records += [(item[0], item[1]) for item in records]
        return 0, len(self.records) - len(records)

    def _check(self, number: int, epoch: int, first: int, count: int) -> tuple[int, int]:
        last = (first + count - 1) & SEQUENCE_MAX
        if number == self.producer[0] and epoch < self.producer[1]:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if (number, epoch) != self.producer:
            if number == self.producer[0] and first != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.producer, self.next = (number, epoch), first  # of a producer that is new, Kafka takes any sequence
            self.last.clear()
        for known_first, known_last, offset in self.last:
            if (known_first, known_last) == (first, last):
                return 0, offset
        if first != self.next:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        self.last.append((first, last, len(self.records)))
        self.next = (last + 1) & SEQUENCE_MAX
        return 0, -1


@dataclass
class Flight:
    """One request: the bytes as they left, and the batches that they are."""

    batches: list[Batch]
    raws: list[bytes]


class World:
    def __init__(self, partitions: int, idempotent: bool, in_flight_max: int = 5) -> None:
        self.now_ms = 0.0
        limits = Limits(BATCH_BYTES, LINGER_MS, REQUEST_BYTES, DELIVERY_MS)
        self.accumulator = Accumulator(limits, Sequences() if idempotent else None)
        self.results = ProduceResults(self.accumulator, 1 << 31, lambda _: 20.0)
        self.queues = [self.accumulator.queue(TopicPartition(TOPIC, number)) for number in range(partitions)]
        self.logs = [Log() for _ in range(partitions)]
        self.epochs = [0] * partitions
        self.leaders = [NODES[0]] * partitions
        self.wires: dict[int, deque[Flight]] = {node: deque() for node in NODES}
        self.late: deque[tuple[int, int, bytes]] = deque()  # requests that a broker will find in a dead connection
        self.in_flight_max = in_flight_max
        self.ids = 6
        self.sent: list[list[tuple[Sent, Batch, int]]] = [[] for _ in range(partitions)]
        self.charged: dict[Sent, int] = {}
        for number in range(partitions):
            self.lead(number, NODES[0])

    # ---- what may happen

    def identify(self, epoch: int = 0) -> None:
        """The cluster gives an identity that nobody had before."""
        self.ids += 1
        self.accumulator.identify(self.ids, epoch)

    def send(self, number: int, padding: int) -> None:
        item = (number, len(self.sent[number]))
        value = b"%d:%d:" % item + b"x" * padding
        queue = self.queues[number]
        size = record_bytes(None, value, ())
        batch = self.accumulator.append(queue, int(self.now_ms), None, value, (), size)
        if batch is None:
            batch = self.accumulator.begin(queue, int(self.now_ms), None, value, (), size, self.now_ms)
        self.sent[number].append((item, batch, batch.count - 1))
        self.charged[item] = size

    def lead(self, number: int, node: int | None) -> None:
        """The cluster elects; the producer hears of it at once."""
        self.epochs[number] += 1
        self.leaders[number] = node if node is not None else -1
        self.queues[number].lead(node, self.epochs[number])

    def pump(self) -> None:
        self.results.expire(self.now_ms)
        for node in self.accumulator.ready(self.now_ms).nodes:
            while len(self.wires[node]) < self.in_flight_max:
                batches = self.accumulator.drain(node, self.now_ms)
                if not batches:
                    break
                assert len({batch.queue.partition for batch in batches}) == len(batches)
                assert sum(len(batch.raw) for batch in batches) <= REQUEST_BYTES or len(batches) == 1
                self.wires[node].append(Flight(batches, [batch.raw for batch in batches]))

    def answer(self, node: int, refuse: int = 0, refused: int = -1) -> Effects | None:
        """The broker does the oldest request; `refuse`: what it says of partition `refused` instead."""
        if not self.wires[node]:
            return None
        flight = self.wires[node].popleft()
        pairs = []
        for batch, raw in zip(flight.batches, flight.raws, strict=True):
            number = batch.queue.partition.partition
            pairs.append((batch, self._done(node, number, raw, refuse if number == refused else 0)))
        return self.results.answered(pairs, str(node), NODES, self.now_ms)

    def _done(self, node: int, number: int, raw: bytes, refuse: int) -> PartitionProduceResponse:
        if self.leaders[number] != node:
            now = LeaderIdAndEpoch(leader_id=self.leaders[number], leader_epoch=self.epochs[number])
            code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return PartitionProduceResponse(index=number, error_code=code, current_leader=now)
        if refuse and refuse != ErrorCode.REQUEST_TIMED_OUT:
            return PartitionProduceResponse(index=number, error_code=refuse)
        code, offset = self.logs[number].append(raw)
        code = refuse or code
        return PartitionProduceResponse(index=number, error_code=code, base_offset=-1 if code else offset)

    def lose(self, node: int, done: int) -> None:
        """The connection breaks after the broker did the first `done` requests; none of the answers came."""
        wire = list(self.wires[node])
        self.wires[node].clear()
        for flight in wire[:done]:
            for batch, raw in zip(flight.batches, flight.raws, strict=True):
                self._done(node, batch.queue.partition.partition, raw, 0)
        if self.accumulator.sequences is not None:  # without them, what comes late comes twice and out of order
            for flight in wire[done:]:
                for batch, raw in zip(flight.batches, flight.raws, strict=True):
                    self.late.append((node, batch.queue.partition.partition, raw))
        for flight in wire:
            self.results.unanswered(flight.batches, Unreachable("it broke"), self.now_ms)

    def find_late(self, found: bool) -> None:
        """The oldest of these is done after all, or never."""
        if self.late:
            item = self.late.popleft()
            if found:
                self._done(*item, 0)

    def settle(self) -> None:
        """Nothing goes wrong any more: everything ends."""
        in_time = [
            item for item in self.accumulator.incomplete if item.created_ms + DELIVERY_MS > self.now_ms + ENOUGH_MS
        ]
        for number in range(len(self.queues)):
            self.logs[number].largest = 1 << 20
            if self.leaders[number] not in NODES:
                self.lead(number, NODES[0])
            self.queues[number].lead(self.leaders[number], self.epochs[number])
        for _ in range(2_000):
            if self.accumulator.sequences is not None and self.accumulator.sequences.producer is None:
                self.identify()
            if not self.accumulator.incomplete and not any(self.wires.values()):
                break
            self.now_ms += 1
            self.pump()
            for node in NODES:
                while self.wires[node]:
                    self.answer(node)
        assert not self.accumulator.incomplete
        for batch in in_time:
            for index in range(batch.count):
                part = batch.place(index)[0]
                assert isinstance(part.outcome, Written) or part.split_when_ambiguous, part.outcome

    # ---- what must hold

    def outcomes(self, number: int) -> list[tuple[Sent, Written | Failed | None, int]]:
        found = []
        for item, batch, index in self.sent[number]:
            place, at = batch.place(index)
            found.append((item, place.outcome, at))
        return found

    def check_memory(self) -> None:
        waiting = {
            item for number in range(len(self.logs)) for item, outcome, _ in self.outcomes(number) if not outcome
        }
        assert self.accumulator.used_bytes == sum(self.charged[item] for item in waiting)
        assert sum(batch.count for batch in self.accumulator.incomplete) == len(waiting)

    def check_logs(self) -> None:
        """What was delivered is at its offset; what was denied is nowhere; order as sent; with idempotence, once."""
        for number, log in enumerate(self.logs):
            for item, outcome, at in self.outcomes(number):
                if isinstance(outcome, Written) and outcome.base_offset >= 0:
                    assert log.records[outcome.base_offset + at] == item
                if isinstance(outcome, Written):
                    assert item in log.records
                if isinstance(outcome, Failed) and not outcome.maybe_written:
                    assert item not in log.records
            first = list(dict.fromkeys(log.records))
            assert first == sorted(first)
            if self.accumulator.sequences is not None:
                assert log.records == first

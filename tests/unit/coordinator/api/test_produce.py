"""Each answer is what Apache Kafka 4.3.1 gave to the same request."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import (
    NOW_MS,
    World,
    answered,
    batch,
    produce_request,
    produces,
)
from tests.unit.coordinator.log.test_batch_validation import with_count
from tests.unit.coordinator.replica.test_durability import Gate, turns

from rota.coordinator.api.node import CloseConnection
from rota.coordinator.api.produce import produce
from rota.coordinator.api.repeats import REPEATS_MAX
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import PartitionProduceResponse
from rota.protocol.records.batch import Codec, read_header, stamp_append_time
from rota.protocol.records.control import Marker
from rota.protocol.records.record import read_records

GOOD = batch(b"a", b"b")
CORRUPT = GOOD[:-1] + bytes([GOOD[-1] ^ 1])


@pytest.fixture
def world() -> World:
    world = World()
    world.topic(partitions=2)
    return world


def only(response: Any) -> PartitionProduceResponse:
    ((topic,),) = (response.responses,)
    (partition,) = topic.partition_responses
    assert isinstance(partition, PartitionProduceResponse)
    return partition


def send(world: World, records: bytes | None = GOOD, *, version: int = 9, client_id: str = "test", **how: Any) -> Any:
    return only(world.serve(produce, produce_request(records, **how), version, client_id))


def outcome(answer: PartitionProduceResponse) -> tuple[ErrorCode, int, int]:
    return ErrorCode(answer.error_code), answer.base_offset, answer.log_start_offset


@pytest.mark.parametrize("is_in_one_topic", [True, False])
def test_w5_a_partition_that_is_repeated_is_written_a_bounded_number_of_times(is_in_one_topic: bool) -> None:
    world = World()
    world.topic()
    request = produces([("t", 0, GOOD)] * (REPEATS_MAX + 3))
    if not is_in_one_topic:
        (topic,) = request.topic_data
        request.topic_data = tuple(replace(topic, partition_data=(each,)) for each in topic.partition_data)
    response = world.serve(produce, request, 9)
    codes = [each.error_code for topic in response.responses for each in topic.partition_responses]
    assert codes == [ErrorCode.NONE] * (REPEATS_MAX + 1) + [ErrorCode.INVALID_REQUEST] * 2
    assert world.partition().log.log_end_offset == (REPEATS_MAX + 1) * len(read_records(GOOD))


@pytest.mark.parametrize("acks", [1, -1])
def test_batches_get_offsets_one_after_the_other(world: World, acks: int) -> None:
    assert outcome(send(world, acks=acks)) == (ErrorCode.NONE, 0, 0)
    assert outcome(send(world, acks=acks)) == (ErrorCode.NONE, 2, 0)
    assert world.partition().high_watermark == 4


def test_a_topic_may_be_named_by_its_id(world: World) -> None:
    topic = world.node.topics.get("t")
    assert topic is not None
    response = world.serve(produce, produce_request(GOOD, topic=topic.topic_id), 13)
    assert (response.responses[0].topic_id, only(response).base_offset) == (topic.topic_id, 0)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"topic": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": bytes(16), "version": 13}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"acks": 5}, ErrorCode.INVALID_REQUIRED_ACKS),
        ({"acks": 5, "topic": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"records": GOOD + GOOD}, ErrorCode.INVALID_RECORD),
        ({"records": b""}, ErrorCode.INVALID_RECORD),
        ({"records": None}, ErrorCode.INVALID_RECORD),
        ({"records": CORRUPT}, ErrorCode.CORRUPT_MESSAGE),
        ({"records": batch(b"a" * 1_100_000)}, ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_invalid_batches_are_refused_and_not_appended(world: World, how: dict[str, Any], code: ErrorCode) -> None:
    assert outcome(send(world, **how)) == (code, -1, -1)
    assert world.partition().high_watermark == 0


def test_partitions_of_one_request_fail_alone(world: World) -> None:
    request = produces([("t", 0, GOOD), ("t", 1, CORRUPT), ("nope", 0, GOOD)])
    response = world.serve(produce, request, 9)
    assert [partition.error_code for topic in response.responses for partition in topic.partition_responses] == [
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_internal_topics_are_written_by_the_broker_and_the_admin_client_alone(world: World) -> None:
    world.topic("__consumer_offsets")
    assert outcome(send(world, topic="__consumer_offsets"))[0] is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert outcome(send(world, topic="__consumer_offsets", client_id="__admin_client"))[0] is ErrorCode.NONE


def test_no_topics_no_answers(world: World) -> None:
    assert world.serve(produce, produces([]), 9).responses == ()


class TestWithoutAcks:
    def test_nothing_is_answered(self, world: World) -> None:
        assert world.serve(produce, produce_request(GOOD, acks=0), 9) is None
        assert world.partition().high_watermark == 2

    @pytest.mark.parametrize("how", [{"topic": "nope"}, {"records": CORRUPT}])
    def test_an_error_ends_the_connection(self, world: World, how: dict[str, Any]) -> None:
        with pytest.raises(CloseConnection):
            world.serve(produce, produce_request(how.pop("records", GOOD), acks=0, **how), 9)


class TestIdempotentProducers:
    def write(self, world: World, sequence: int, *, producer_id: int = 5, epoch: int = 0, **how: Any) -> Any:
        records = batch(
            b"a", b"b", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, timestamp=NOW_MS - 7
        )
        return send(world, records, **how)

    def test_a_repeated_batch_is_written_once_and_answered_alike(self, world: World) -> None:
        for sequence in range(0, 14, 2):
            assert outcome(self.write(world, sequence)) == (ErrorCode.NONE, sequence, 0)
        again = self.write(world, 12)
        assert outcome(again) == (ErrorCode.NONE, 12, 0)
        assert again.log_append_time_ms == NOW_MS - 7  # the time of the records, as Kafka has it
        assert outcome(self.write(world, 4)) == (ErrorCode.NONE, 4, 0)
        assert world.partition().high_watermark == 14

    def test_beyond_five_batches_a_repeat_is_out_of_order(self, world: World) -> None:
        for sequence in range(0, 14, 2):
            self.write(world, sequence)
        assert outcome(self.write(world, 2)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 0)

    def test_a_gap_is_out_of_order(self, world: World) -> None:
        self.write(world, 0)
        assert outcome(self.write(world, 10)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 0)

    def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(self, world: World) -> None:
        self.write(world, 0)
        assert outcome(self.write(world, 2, epoch=1))[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert outcome(self.write(world, 0, epoch=1))[0] is ErrorCode.NONE
        assert outcome(self.write(world, 2, epoch=0)) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1, 0)

    def test_an_unknown_producer_may_begin_anywhere(self, world: World) -> None:
        assert outcome(self.write(world, 7, producer_id=99))[0] is ErrorCode.NONE
        assert outcome(self.write(world, 9, producer_id=99))[0] is ErrorCode.NONE

    def test_a_producer_without_sequence_is_refused(self, world: World) -> None:
        assert outcome(self.write(world, -1)) == (ErrorCode.INVALID_RECORD, -1, 0)


class Coordinator:
    """Takes the questions about transactions; a test answers them."""

    def __init__(self, world: World) -> None:
        self.questions: list[tuple[tuple[Any, ...], DelayedReply[Any]]] = []
        world.node.verify_transaction = self.verify

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Any, *, adds: bool
    ) -> DelayedReply[Any]:
        reply: DelayedReply[Any] = DelayedReply()
        question = transactional_id, producer_id, producer_epoch, list(partitions), adds
        self.questions.append((question, reply))
        return reply


class TestTransactions:
    RECORDS = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)

    def test_their_records_are_refused_without_a_transactional_id_and_without_a_coordinator(self, world: World) -> None:
        refused = send(world, self.RECORDS)
        assert outcome(refused) == (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1)
        refused = send(world, self.RECORDS, transactional_id="tx")
        assert outcome(refused) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1, -1), "retriable"
        assert world.partition().high_watermark == 0

    @pytest.mark.parametrize("version", [11, 12])
    def test_the_first_batch_waits_for_the_coordinator(self, world: World, version: int) -> None:
        coordinator = Coordinator(world)
        request = produce_request(self.RECORDS, transactional_id="tx")
        reply = world.serve(produce, request, version)
        assert isinstance(reply, DelayedReply)
        assert (reply.answered, reply.mutes, world.partition().high_watermark) == (False, True, 0)
        ((question, answer),) = coordinator.questions
        assert question == ("tx", 5, 0, [("t", 0)], version == 12)
        answer.answer({})
        assert outcome(only(answered(reply))) == (ErrorCode.NONE, 0, 0)
        assert (world.partition().high_watermark, world.partition().last_stable_offset) == (1, 0)
        more = batch(b"b", producer_id=5, producer_epoch=0, base_sequence=1, is_transactional=True)
        assert outcome(send(world, more, transactional_id="tx")) == (ErrorCode.NONE, 1, 0)
        assert len(coordinator.questions) == 1, "the transaction is open"

    def test_a_marker_meanwhile_makes_the_verification_void(self, world: World) -> None:
        coordinator = Coordinator(world)
        reply = world.serve(produce, produce_request(self.RECORDS, transactional_id="tx"), 11)
        world.partition().append_marker(Marker(False, 0), producer_id=5, producer_epoch=0, now_ms=NOW_MS)
        coordinator.questions[0][1].answer({})
        assert outcome(only(answered(reply)))[0] is ErrorCode.INVALID_TXN_STATE

    def test_batches_of_several_producers_in_one_request_are_refused(self, world: World) -> None:
        other = batch(b"a", producer_id=6, producer_epoch=0, base_sequence=0, is_transactional=True)
        request = produces([("t", 0, self.RECORDS), ("t", 1, other)], transactional_id="tx")
        (topic,) = world.serve(produce, request, 11).responses
        codes = {response.error_code for response in topic.partition_responses}
        assert codes == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    def test_without_acks_nothing_waits_and_the_batch_is_refused(self, world: World) -> None:
        Coordinator(world)
        with pytest.raises(CloseConnection):
            world.serve(produce, produce_request(self.RECORDS, acks=0, transactional_id="tx"), 11)

    @pytest.mark.parametrize("version", [9, 12])
    def test_xl13_a_batch_without_a_producer_id_is_a_plain_one(self, world: World, version: int) -> None:
        coordinator = Coordinator(world)
        records = batch(b"a", is_transactional=True)
        refused = send(world, records, version=version)
        assert outcome(refused)[0] is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        written = send(world, records, version=version, transactional_id="tx")
        assert outcome(written) == (ErrorCode.NONE, 0, 0)
        assert (world.partition().high_watermark, world.partition().last_stable_offset) == (1, 1)
        assert coordinator.questions == []

    def test_a_transactional_id_alone_is_accepted(self, world: World) -> None:
        assert outcome(send(world, transactional_id="tx"))[0] is ErrorCode.NONE


class TestTimestamps:
    HOUR_MS = 3_600_000

    def test_b5_the_bit_of_append_time_is_left_out(self, world: World) -> None:
        records = bytearray(batch(b"a", timestamp=NOW_MS - 7))
        stamp_append_time(records, 0, append_time_ms=NOW_MS - 3)
        assert outcome(send(world, bytes(records))) == (ErrorCode.NONE, 0, 0)
        kept = read_header(world.partition().read(0, 1000))
        assert (kept.is_log_append_time, kept.base_timestamp, kept.max_timestamp) == (False, NOW_MS - 7, NOW_MS - 3)

    def test_b4_bytes_of_no_batch_are_explained(self, world: World) -> None:
        answer = send(world, b"x" * 100)
        assert outcome(answer) == (ErrorCode.CORRUPT_MESSAGE, -1, -1)
        assert answer.error_message == "Invalid magic found in record: 120"
        assert send(world, b"").error_message is None

    def test_the_future_is_refused_record_by_record(self, world: World) -> None:
        records = batch(b"a", b"b", timestamp=NOW_MS + self.HOUR_MS, step_ms=1)
        answer = send(world, records)
        assert outcome(answer) == (ErrorCode.INVALID_TIMESTAMP, -1, 0)
        assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
        ((index, why),) = [(error.batch_index, error.batch_index_error_message) for error in answer.record_errors]
        assert index == 1
        assert why.startswith(f"Timestamp {NOW_MS + self.HOUR_MS + 1} of message with offset 1 is out of range.")

    def test_too_old_timestamps_are_refused_if_the_topic_limits_them(self) -> None:
        world = World()
        world.topic(message_timestamp_before_max_ms="1000")
        assert outcome(send(world, batch(b"a", timestamp=NOW_MS - 1000)))[0] is ErrorCode.NONE
        assert outcome(send(world, batch(b"a", timestamp=NOW_MS - 1001)))[0] is ErrorCode.INVALID_TIMESTAMP

    def test_a_record_without_time_is_of_no_age(self, world: World) -> None:
        assert outcome(send(world, batch(b"a", timestamp=-1)))[0] is ErrorCode.NONE

    def test_the_append_time_is_returned(self) -> None:
        world = World()
        world.topic(message_timestamp_type="LogAppendTime")
        answer = send(world, batch(b"a", timestamp=NOW_MS + 2 * self.HOUR_MS))
        assert (answer.error_code, answer.log_append_time_ms) == (0, NOW_MS)


def test_a_record_records_without_key_is_not_for_a_compacted_topic() -> None:
    world = World()
    world.topic(cleanup_policy="compact")
    answer = send(world, batch(b"a", key=None))
    assert outcome(answer) == (ErrorCode.INVALID_RECORD, -1, 0)
    assert [error.batch_index for error in answer.record_errors] == [0]


@pytest.mark.parametrize("count", [-1, 0])
def test_g4_a_compacted_topic_refuses_a_batch_with_a_wrong_count(count: int) -> None:
    world = World()
    world.topic(cleanup_policy="compact")
    assert outcome(send(world, with_count(GOOD, count))) == (ErrorCode.INVALID_RECORD, -1, 0)


def test_batches_are_recompressed_with_the_codec_of_the_topic() -> None:
    world = World()
    world.topic(compression_type="zstd")
    assert outcome(send(world, batch(b"a" * 1000))) == (ErrorCode.NONE, 0, 0)
    kept = world.partition().read(0, 1 << 20)
    assert (read_header(kept).codec, read_records(kept)[0].value) == (Codec.ZSTD, b"a" * 1000)


def test_a_partition_that_is_offline(world: World) -> None:
    world.partition().fail("the disk is gone")
    assert outcome(send(world)) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)


class TestFlushedMessages:
    @pytest.fixture
    def gate(self) -> Gate:
        return Gate()

    @pytest.fixture
    def world(self, gate: Gate) -> World:
        world = World({"log.flush.interval.messages": "1"}, flush_executor=gate)
        world.topic(partitions=2)
        return world

    async def test_the_reply_waits_for_the_medium(self, world: World, gate: Gate) -> None:
        reply = world.serve(produce, produces([("t", 0, GOOD), ("t", 1, GOOD)]), 9)
        assert isinstance(reply, DelayedReply)
        assert not reply.mutes
        for _ in range(2):
            assert not reply.answered
            await turns()
            gate.open()
            await turns()
        assert [response.responses[0].partition_responses[0].error_code for response in (answered(reply),)] == [0]

    async def test_a_failed_flush_is_no_success(self, world: World, gate: Gate) -> None:
        reply = world.serve(produce, produce_request(GOOD), 9)
        await turns()
        gate.open(StorageFailed("the disk is gone"))
        await turns()
        assert outcome(only(answered(reply))) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, 0)

    async def test_acks_0_waits_for_no_replica(self, world: World, gate: Gate) -> None:
        assert world.serve(produce, produce_request(GOOD, acks=0), 9) is None
        await asyncio.sleep(0)
        assert len(gate.waiting) == 1  # but consumers do: they read what is on the medium
        assert world.partition().high_watermark == 0

    async def test_the_timeout_of_the_request_ends_the_wait(self, world: World) -> None:
        """L5. `timeout_ms` of the request is 1000."""
        reply = world.serve(produce, produce_request(GOOD), 9)
        world.after(999)
        assert not reply.answered
        world.after(1)
        assert outcome(only(answered(reply))) == (ErrorCode.REQUEST_TIMED_OUT, -1, 0)

    async def test_acks_of_the_leader_alone_wait_for_the_medium_too(self, world: World, gate: Gate) -> None:
        reply = world.serve(produce, produce_request(GOOD, acks=1), 9)
        await turns()
        assert not reply.answered
        gate.open()
        await turns()
        assert outcome(only(answered(reply))) == (ErrorCode.NONE, 0, 0)

    async def test_an_append_that_failed_does_not_wait(self, world: World) -> None:
        assert only(world.serve(produce, produce_request(CORRUPT), 9)).error_code == ErrorCode.CORRUPT_MESSAGE

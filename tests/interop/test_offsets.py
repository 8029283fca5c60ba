"""R6, R9: committed offsets, positions, and the reset policies."""

from __future__ import annotations

import struct

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka.errors import NoOffsetForPartitionError, OffsetMetadataTooLargeError
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.differential.wire import Wire
from tests.interop.kit import PATIENCE_S, create_topic, produce_to, until
from tests.interop.layouts import until_sizes

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)
TEN = [b"%d" % number for number in range(10)]


@EVERY_CLIENT
def test_a_manual_commit_is_where_the_next_member_begins(bootstrap: str, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    first = join(client, group=group, topics=[topic])
    until(lambda: first.values == TEN, "ten records")
    assert first.committed(topic, 0) is None
    first.commit(topic, 0, 4)
    assert first.committed(topic, 0) == 4
    first.close()
    second = join(client, group=group, topics=[topic])
    until(lambda: second.values == TEN[4:], "the records from the committed offset on")


@EVERY_CLIENT
def test_automatic_commit(bootstrap: str, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    member = join(client, group=group, topics=[topic], auto_commit=True)
    until(lambda: member.values == TEN, "ten records")
    until(lambda: member.committed(topic, 0) == 10, "the committed offset")


@EVERY_CLIENT
def test_seek_reads_again_and_skips(bootstrap: str, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    member = join(client, group=group, topics=[topic])
    until(lambda: member.values == TEN, "ten records")
    member.seek(topic, 0, 7)
    until(lambda: member.values == TEN + TEN[7:], "the last three again")
    member.seek(topic, 0, 0)
    until(lambda: member.values == TEN + TEN[7:] + TEN, "all of them again")


@EVERY_CLIENT
def test_reset_to_earliest_and_latest(bootstrap: str, join: Join, client: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    early = join(client, group=f"early-{topic}", topics=[topic], reset="earliest")
    late = join(client, group=f"late-{topic}", topics=[topic], reset="latest")
    until(lambda: early.values == TEN, "all from the start")
    until(lambda: late.position(topic, 0) == 10, "a position at the end")
    produce_to(bootstrap, topic, 0, [b"new"])
    until(lambda: late.values == [b"new"], "only what came after it joined")
    until(lambda: early.values == [*TEN, b"new"], "the new one here, too")


def test_reset_none_is_an_error(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="none", metrics_enabled=False
    )
    try:
        with pytest.raises(NoOffsetForPartitionError):
            until(lambda: consumer.poll(1_000), "the error")
    finally:
        consumer.close(autocommit=False)


def test_reset_error_in_librdkafka(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "error"}
    )
    try:
        consumer.subscribe([topic])
        message = until(lambda: consumer.poll(0.1), "the error")
        assert message.error().code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    finally:
        consumer.close()


def test_an_offset_beyond_the_end_is_reset(bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    member = join("aiokafka", group=group, topics=[topic])
    until(lambda: member.values == TEN, "ten records")
    member.seek(topic, 0, 1_000)
    until(lambda: member.values == TEN + TEN, "all from the earliest")


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])  # confluent-kafka adds a NUL of its own
def test_a_commit_with_metadata_round_trips(bootstrap: str, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 1)
    member = join(client, group=group, topics=[topic])
    until_sizes([member], 1)
    member.commit(topic, 0, 3, "half way, grüße")
    reader = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, metrics_enabled=False)
    try:
        found = reader.committed(kafka.TopicPartition(topic, 0), metadata=True)
    finally:
        reader.close(autocommit=False)
    assert (found.offset, found.metadata) == (3, "half way, grüße")


def test_metadata_that_is_too_long_is_refused(bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    member = join("kafka-python", group=group, topics=[topic])
    until_sizes([member], 1)
    member.commit(topic, 0, 1, "x" * 4096)
    with pytest.raises(OffsetMetadataTooLargeError):
        member.commit(topic, 0, 2, "x" * 4097)
    assert member.committed(topic, 0) == 1


def test_a_client_without_membership_may_not_commit_into_a_group_with_members(
    bootstrap: str, join: Join, group: str
) -> None:
    """A simple consumer (no member id) is refused while the group has members, and welcome when it is empty."""
    topic = create_topic(bootstrap, 1)
    member = join("confluent-kafka", group=group, topics=[topic])
    until_sizes([member], 1)
    other_client = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    position = confluent_kafka.TopicPartition(topic, 0, 5)
    try:
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            other_client.commit(offsets=[position], asynchronous=False)
        assert refused.value.args[0].name() == "UNKNOWN_MEMBER_ID"
        assert member.committed(topic, 0) is None
        member.close()
        other_client.commit(offsets=[position], asynchronous=False)
        (found,) = other_client.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=PATIENCE_S)
        assert found.offset == 5
    finally:
        other_client.close()


def test_a_commit_of_a_stale_generation_or_by_an_unknown_member_is_refused(
    bootstrap: str, join: Join, group: str
) -> None:
    topic = create_topic(bootstrap, 1)
    member = join("kafka-python", group=group, topics=[topic])
    until_sizes([member], 1)
    member.commit(topic, 0, 3)
    now = member.run_in_thread(lambda consumer: consumer.group_metadata())
    wire = Wire(bootstrap, "stale")

    def commit(member_id: str, generation: int) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=99)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
        )
        code: int = wire.send_request(request, 8).topics[0].partitions[0].error_code
        return code

    try:
        assert commit(now.member_id, now.generation_id - 1) == ErrorCode.ILLEGAL_GENERATION
        assert commit(now.member_id, now.generation_id + 1) == ErrorCode.ILLEGAL_GENERATION
        assert commit("somebody-else", now.generation_id) == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.committed(topic, 0) == 3
        assert commit(now.member_id, now.generation_id) == ErrorCode.NONE
        assert member.committed(topic, 0) == 99
    finally:
        wire.close()


def test_offsets_live_in_a_compacted_topic_of_fifty_partitions(
    bootstrap: str, admin: AdminClient, join: Join, group: str
) -> None:
    topic = create_topic(bootstrap, 1)
    member = join("confluent-kafka", group=group, topics=[topic])
    until_sizes([member], 1)
    member.commit(topic, 0, 42, "note")
    offsets = admin.list_topics("__consumer_offsets", timeout=PATIENCE_S).topics["__consumer_offsets"]
    assert len(offsets.partitions) == 50
    resource = ConfigResource(ResourceType.TOPIC, "__consumer_offsets")
    config = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    assert config["cleanup.policy"].value == "compact"
    assert committed_record(bootstrap, group, topic) == 42


def committed_record(bootstrap: str, group: str, topic: str) -> int:
    """The offset in the last record for (group, topic, 0), read as any consumer can from the group's partition."""
    partition = kafka.TopicPartition("__consumer_offsets", java_hash_partition(group))
    wanted = struct.pack(">hh", 1, len(group)) + group.encode() + struct.pack(">h", len(topic)) + topic.encode()
    reader = kafka.KafkaConsumer(bootstrap_servers=bootstrap, exclude_internal_topics=False, metrics_enabled=False)
    try:
        reader.assign([partition])
        reader.seek_to_beginning(partition)

        def last() -> list[bytes]:
            return [r.value for r in reader.poll(500).get(partition, []) if r.key == wanted + struct.pack(">i", 0)]

        value = until(last, "the record")[-1]
    finally:
        reader.close()
    assert value[:2] == struct.pack(">h", 4)
    return int(struct.unpack(">q", value[2:10])[0])


def java_hash_partition(group: str) -> int:
    """abs(String.hashCode()) mod 50, over UTF-16 code units."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", group.encode("utf-16-be")):
        code = (31 * code + unit) & 0xFFFF_FFFF
    signed = code - 2**32 if code >= 2**31 else code
    return abs(signed) % 50

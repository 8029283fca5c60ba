"""Topics, their records and offsets: the same answers as librdkafka's AdminClient gets, on both brokers."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.admin import NewPartitions as TheirPartitions
from confluent_kafka.admin import NewTopic as TheirTopic
from tests.client.admin_kit import admin, answer, parts, refused, theirs
from tests.interop.kit import produce, produce_to, unique

from rota.client.admin.admin import Admin
from rota.client.admin.topics import NewPartitions, NewTopic
from rota.client.errors import AdminFailed, BrokerError, UnknownTopic
from rota.client.offsets.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode

__all__ = ["admin", "theirs"]


async def test_a_new_topic_can_be_used_at_once(bootstrap: str, admin: Admin, theirs: AdminClient, topic: str) -> None:
    made = (await admin.create_topics([NewTopic(topic, 3, 1, configs={"retention.ms": "60000"})]))[topic]
    assert (made.partitions, made.replication_factor, made.configs["retention.ms"]) == (3, 1, "60000")
    produce_to(bootstrap, topic, 2, [b"x"])
    ours = (await admin.describe_topics([topic]))[topic]
    other = answer(theirs.describe_topics(confluent_kafka.TopicCollection([topic]))[topic])
    assert [(p.partition, p.leader, list(p.replicas), list(p.isr)) for p in ours.partitions] == [
        (p.id, p.leader.id, [item.id for item in p.replicas], [item.id for item in p.isr]) for p in other.partitions
    ]
    assert (ours.name, ours.is_internal) == (other.name, other.is_internal)
    assert ours.id is not None
    assert int.from_bytes(ours.id[:8], "big", signed=True) == other.topic_id.get_most_significant_bits()
    assert ours.id == made.id


async def test_the_brokers_defaults(admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic)])
    assert len((await admin.describe_topics([topic]))[topic].partitions) == 4  # num.partitions of both brokers


async def test_replicas_by_hand(admin: Admin, topic: str) -> None:
    node = (await admin.describe_cluster()).nodes[0].id
    await admin.create_topics([NewTopic(topic, replica_assignments=[[node], [node]])])
    await admin.create_partitions({topic: NewPartitions(3, [[node]])})
    answer = (await admin.describe_topics([topic]))[topic]
    assert [item.replicas for item in answer.partitions] == [(node,)] * 3


async def test_refusals_are_those_of_the_broker(admin: Admin, theirs: AdminClient, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    wrong = [
        NewTopic(topic, 1),
        NewTopic("bad name!", 1),
        NewTopic(unique("topic"), 1, 9),
        NewTopic(unique("topic"), 0),
        NewTopic(unique("topic"), 1, configs={"retention.ms": "soon"}),
        NewTopic(unique("topic"), 1, configs={"no.such": "config"}),
    ]
    good = NewTopic(unique("topic"), 1)
    with pytest.raises(AdminFailed) as failed:
        await admin.create_topics([*wrong, good])
    assert list(failed.value.done) == [good.name]
    for item in wrong:
        error = failed.value.failed[item.name]
        assert isinstance(error, BrokerError)
        assert error.topic == item.name
        other = TheirTopic(item.name, item.partitions, max(item.replication_factor, 1), config=dict(item.configs))
        assert error.code == refused(theirs.create_topics([other])[item.name])


async def test_a_trial_creates_nothing(admin: Admin, topic: str) -> None:
    would = await admin.create_topics([NewTopic(topic, 2)], validate_only=True)
    assert would[topic].id is None
    assert topic not in await admin.list_topics()


async def test_all_topics_are_listed(admin: Admin, theirs: AdminClient, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 1)])
    ours = await admin.list_topics(internal=True)
    assert topic in ours
    assert topic in theirs.list_topics(timeout=10).topics
    assert not any(item.is_internal for item in (await admin.list_topics()).values())


async def test_partitions_are_added(bootstrap: str, admin: Admin, theirs: AdminClient, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 1)])
    await admin.create_partitions({topic: 5}, validate_only=True)
    await admin.create_partitions({topic: 3})
    produce_to(bootstrap, topic, 2, [b"x"])
    other = unique("topic")
    with pytest.raises(AdminFailed) as failed:
        await admin.create_partitions({topic: 2, other: 2})
    codes = {item: error.code for item, error in failed.value.failed.items() if isinstance(error, BrokerError)}
    assert codes == {
        topic: refused(theirs.create_partitions([TheirPartitions(topic, 2)])[topic]),
        other: refused(theirs.create_partitions([TheirPartitions(other, 2)])[other]),
    }


async def test_topics_go_by_name_and_by_id_and_their_names_are_free(admin: Admin, topic: str) -> None:
    second = unique("topic")
    for _ in range(2):
        made = await admin.create_topics([NewTopic(topic, 1), NewTopic(second, 1)])
        identity = made[second].id
        assert identity is not None
        await admin.delete_topics([topic, identity])
    assert not {topic, second} & set(await admin.list_topics())
    with pytest.raises(AdminFailed) as failed:
        await admin.delete_topics([topic, identity])
    assert {item: error.code for item, error in failed.value.failed.items() if isinstance(error, BrokerError)} == {
        topic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        identity: ErrorCode.UNKNOWN_TOPIC_ID,
    }


async def test_asking_about_a_topic_does_not_create_it(admin: Admin, topic: str) -> None:
    for _ in range(2):
        with pytest.raises(AdminFailed) as failed:
            await admin.describe_topics([topic])
        assert isinstance(failed.value.failed[topic], UnknownTopic)


async def test_offsets_of_partitions(bootstrap: str, admin: Admin, theirs: AdminClient, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    produce_to(bootstrap, topic, 0, [b"one", b"two", b"three"])
    first, second = parts(topic, 2)
    ours = await admin.list_offsets({first: EARLIEST, second: LATEST})
    assert ours == {first: OffsetAndTimestamp(0, -1, 0), second: OffsetAndTimestamp(0, -1, 0)}
    youngest = (await admin.list_offsets({first: MAX_TIMESTAMP}))[first]
    assert youngest is not None
    specs = {
        EARLIEST: OffsetSpec.earliest(),
        LATEST: OffsetSpec.latest(),
        MAX_TIMESTAMP: OffsetSpec.max_timestamp(),
        youngest.timestamp: OffsetSpec.for_timestamp(youngest.timestamp),
    }
    for time, spec in specs.items():
        partition = confluent_kafka.TopicPartition(topic, 0)
        other = answer(theirs.list_offsets({partition: spec})[partition])
        found = (await admin.list_offsets({first: time}))[first]
        assert found is not None
        assert (found.offset, found.timestamp, found.leader_epoch) == (
            other.offset,
            other.timestamp,
            other.leader_epoch if other.leader_epoch is not None else -1,
        )
    late = {first: youngest.timestamp + 3_600_000, second: 0}
    assert await admin.list_offsets(late) == {first: None, second: None}


async def test_records_are_deleted_up_to_an_offset(bootstrap: str, admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    produce(bootstrap, topic, [b"x"] * 10)
    first, second = parts(topic, 2)
    assert await admin.delete_records({first: 3, second: -1}) == {first: 3, second: 5}
    starts = await admin.list_offsets(dict.fromkeys((first, second), EARLIEST))
    assert [item and item.offset for item in starts.values()] == [3, 5]
    with pytest.raises(AdminFailed) as failed:
        await admin.delete_records({first: 4, second: 99, TopicPartition(topic, 7): 0})
    assert failed.value.done == {first: 4}
    assert failed.value.codes == {ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

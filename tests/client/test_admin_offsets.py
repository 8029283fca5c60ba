"""The offsets of groups: the same answers as librdkafka's AdminClient gets, on both brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient
from tests.client.admin_kit import admin, answer, parts, theirs
from tests.interop.kit import produce_to, unique

from rota.client.admin.admin import Admin
from rota.client.admin.lag import PartitionLag
from rota.client.admin.topics import NewTopic
from rota.client.errors import AdminFailed, KafkaError
from rota.client.offsets.list_offsets import EARLIEST, MAX_TIMESTAMP
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode

__all__ = ["admin", "theirs"]
RECORDS = 10
AGE_MS_MAX = 600_000  # of records that were written in this test


@pytest.fixture
async def filled(bootstrap: str, admin: Admin, topic: str) -> str:
    """Two partitions; the first has ten records of which two are deleted."""
    await admin.create_topics([NewTopic(topic, 2)])
    produce_to(bootstrap, topic, 0, [b"x"] * RECORDS)
    await admin.delete_records({TopicPartition(topic, 0): 2})
    return topic


async def test_offsets_set_by_one_client_are_read_by_the_other(
    admin: Admin, theirs: AdminClient, group: str, filled: str
) -> None:
    first, second = parts(filled, 2)
    await admin.alter_group_offsets(group, {first: 4, second: OffsetAndMetadata(0, "by hand")})
    requests = [ConsumerGroupTopicPartitions(group)]
    seen = answer(theirs.list_consumer_group_offsets(requests)[group]).topic_partitions
    # not their metadata: confluent-kafka 2.16 reads on behind its end
    assert sorted((p.partition, p.offset) for p in seen) == [(0, 4), (1, 0)]
    other = f"{group}-2"
    wanted = ConsumerGroupTopicPartitions(other, [TheirPartition(filled, 0, 7)])
    answer(theirs.alter_consumer_group_offsets([wanted])[other])
    unused = unique("group")
    assert await admin.list_group_offsets([group, other, unused]) == {
        group: {first: OffsetAndMetadata(4), second: OffsetAndMetadata(0, "by hand")},
        other: {first: OffsetAndMetadata(7)},
        unused: {},
    }


async def test_offsets_of_single_partitions_are_listed(admin: Admin, group: str, filled: str) -> None:
    first, second = parts(filled, 2)
    await admin.alter_group_offsets(group, {first: 4})
    unused = unique("group")
    assert await admin.list_group_offsets({group: [second, first], unused: [first]}) == {
        group: {second: None, first: OffsetAndMetadata(4)},
        unused: {first: None},
    }


async def test_an_unknown_partition_is_in_the_error(admin: Admin, group: str, filled: str) -> None:
    nowhere = TopicPartition(filled, 9)
    with pytest.raises(AdminFailed) as failed:
        await admin.alter_group_offsets(group, {nowhere: 1, TopicPartition(filled, 0): 3})
    assert (list(failed.value.done), failed.value.codes) == (
        [TopicPartition(filled, 0)],
        {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    )


async def test_offsets_are_deleted(admin: Admin, group: str, filled: str) -> None:
    first, second = parts(filled, 2)
    await admin.alter_group_offsets(group, {first: 4, second: 0})
    await admin.delete_group_offsets(group, [first])
    assert await admin.list_group_offsets([group]) == {group: {second: OffsetAndMetadata(0)}}
    with pytest.raises(AdminFailed) as failed:
        await admin.delete_group_offsets(unique("group"), [first])
    assert failed.value.codes == {ErrorCode.GROUP_ID_NOT_FOUND}


async def test_the_lag_of_a_group(admin: Admin, group: str, filled: str) -> None:
    first, second = parts(filled, 2)
    await admin.alter_group_offsets(group, {first: 4})
    assert await admin.group_lag(group) == {first: PartitionLag(4, 2, RECORDS, RECORDS - 4)}
    missing = TopicPartition(unique("topic"), 0)
    assert await admin.group_lag(group, [second, missing]) == {
        second: PartitionLag(None, 0, 0, None),
        missing: PartitionLag(None, None, None, None),
    }
    assert await admin.group_lag(unique("group")) == {}


async def test_the_lag_of_a_group_in_time(admin: Admin, group: str, filled: str) -> None:
    first, second = parts(filled, 2)
    missing = TopicPartition(unique("topic"), 0)
    await admin.alter_group_offsets(group, {first: 0, second: 0})  # of the first partition two records were deleted
    ages = {
        key: lag.age_ms for key, lag in (await admin.group_lag(group, [first, second, missing], with_age=True)).items()
    }
    assert ages[first] is not None
    assert 0 <= ages[first] < AGE_MS_MAX
    assert (ages[second], ages[missing]) == (0, None)
    assert (await admin.group_lag(group))[first].age_ms is None


@pytest.mark.parametrize(
    ("how", "offsets"),
    [
        ({"to": "earliest"}, [2, 0]),
        ({"to": "latest"}, [RECORDS, 0]),
        ({"offset": 7}, [7, 0]),
        ({"offset": 0}, [2, 0]),
        ({"time_ms": 0}, [2, 0]),
    ],
    ids=str,
)
async def test_a_group_is_reset(admin: Admin, group: str, filled: str, how: dict[str, int], offsets: list[int]) -> None:
    wanted = dict(zip(parts(filled, 2), offsets, strict=True))
    assert await admin.reset_group_offsets(group, [filled], **how, dry_run=True) == wanted  # type: ignore[arg-type]
    assert await admin.list_group_offsets([group]) == {group: {}}
    assert await admin.reset_group_offsets(group, [filled], **how) == wanted  # type: ignore[arg-type]
    assert (await admin.list_group_offsets([group]))[group] == {p: OffsetAndMetadata(o) for p, o in wanted.items()}


async def test_a_reset_by_time_is_the_first_record_since(bootstrap: str, admin: Admin, group: str, filled: str) -> None:
    first = TopicPartition(filled, 0)
    last = (await admin.list_offsets({first: MAX_TIMESTAMP}))[first]
    assert last is not None
    since = (await admin.list_offsets({first: last.timestamp}))[first]
    assert since is not None
    assert await admin.reset_group_offsets(group, [first], time_ms=last.timestamp) == {first: since.offset}
    assert await admin.reset_group_offsets(group, [first], time_ms=last.timestamp + 1) == {first: RECORDS}


async def test_a_reset_by_so_many_records(admin: Admin, group: str, filled: str) -> None:
    first, second = parts(filled, 2)
    await admin.alter_group_offsets(group, {first: 5})
    assert await admin.reset_group_offsets(group, shift_by=-1) == {first: 4}
    assert await admin.reset_group_offsets(group, shift_by=100) == {first: RECORDS}
    with pytest.raises(KafkaError, match="nothing is committed for"):
        await admin.reset_group_offsets(group, [first, second], shift_by=-1)
    assert await admin.list_group_offsets([group]) == {group: {first: OffsetAndMetadata(RECORDS)}}


async def test_a_deleted_topic_does_not_block_other_offsets(admin: Admin, group: str, filled: str) -> None:
    first = TopicPartition(filled, 0)
    short = unique("topic")
    await admin.create_topics([NewTopic(short, 1)])
    await admin.alter_group_offsets(group, {first: 5, TopicPartition(short, 0): 0})
    await admin.delete_topics([short])
    start = (await admin.list_offsets({first: EARLIEST}))[first]
    assert start is not None
    assert await admin.reset_group_offsets(group, to="earliest") == {first: start.offset}
    with pytest.raises(AdminFailed):
        await admin.reset_group_offsets(group, [short], to="earliest")

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, commit_request

from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.api.offset_fetch import offset_fetch
from rota.coordinator.metadata import eager_tasks
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)


def single(*partitions: int, topic: str = "t", group_id: str = "g") -> OffsetFetchRequest:
    topics = (OffsetFetchRequestTopic(name=topic, partition_indexes=partitions),)
    return OffsetFetchRequest(group_id=group_id, topics=topics)


def many(*groups: OffsetFetchRequestGroup) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=groups)


@pytest.mark.parametrize("version", range(1, 8))
def test_committed_offsets_are_returned_with_their_metadata(version: int) -> None:
    world = GroupWorld().open()
    world.commit(7, metadata="half way")
    answer = world.send_request(offset_fetch, single(0, 1), version)
    assert answer.error_code == 0
    first, second = answer.topics[0].partitions
    assert (first.committed_offset, first.committed_leader_epoch, first.metadata) == (7, 5, "half way")
    # O2: unknown is -1, never 0
    assert (second.committed_offset, second.committed_leader_epoch, second.metadata) == (-1, -1, "")


@pytest.mark.parametrize("version", [2, 7])
def test_no_topics_means_all_of_them(version: int) -> None:
    world = GroupWorld().open()
    world.commit(7)
    world.commit(8, partition=2)
    answer = world.send_request(offset_fetch, OffsetFetchRequest(group_id="g", topics=None), version)
    (topic,) = answer.topics
    assert [(partition.partition_index, partition.committed_offset) for partition in topic.partitions] == [
        (0, 7),
        (2, 8),
    ]


def test_an_unknown_group_has_no_offsets() -> None:
    answer = GroupWorld().open().send_request(offset_fetch, single(0), 7)
    assert [partition.committed_offset for partition in answer.topics[0].partitions] == [-1]


@pytest.mark.parametrize("version", [8, 9])
def test_many_groups_at_once(version: int) -> None:
    world = GroupWorld().open()
    world.commit(7, "a")
    world.commit(8, "b")
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    request = many(
        OffsetFetchRequestGroup(group_id="a", topics=topics), OffsetFetchRequestGroup(group_id="b", topics=None)
    )
    answer = world.send_request(offset_fetch, request, version)
    assert [(group.group_id, group.topics[0].partitions[0].committed_offset) for group in answer.groups] == [
        ("a", 7),
        ("b", 8),
    ]


def test_version_10_names_topics_by_id() -> None:
    world = GroupWorld().open()
    world.commit(7)
    topic = world.node.topics.get("t")
    assert topic is not None
    requested = (
        OffsetFetchRequestTopics(topic_id=b"x" * 16, partition_indexes=(0,)),
        OffsetFetchRequestTopics(topic_id=topic.topic_id, partition_indexes=(0,)),
    )
    answer = world.send_request(offset_fetch, many(OffsetFetchRequestGroup(group_id="g", topics=requested)), 10)
    known, unknown = answer.groups[0].topics  # as in Kafka the unknown ones come last
    assert (known.topic_id, known.partitions[0].committed_offset) == (topic.topic_id, 7)
    assert (unknown.topic_id, unknown.partitions[0].error_code) == (b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)
    everything = world.send_request(offset_fetch, many(OffsetFetchRequestGroup(group_id="g", topics=None)), 10)
    assert everything.groups[0].topics[0].topic_id == topic.topic_id


def test_version_10_shows_no_offset_of_a_deleted_topic_of_that_name() -> None:
    world = GroupWorld().open()
    world.commit(7)
    eager_tasks.run_eagerly(world.node.topics.delete("t"))
    topic = world.topic("t", 3)
    requested = (OffsetFetchRequestTopics(topic_id=topic.topic_id, partition_indexes=(0,)),)
    answer = world.send_request(offset_fetch, many(OffsetFetchRequestGroup(group_id="g", topics=requested)), 10)
    partition = answer.groups[0].topics[0].partitions[0]
    assert (partition.committed_offset, partition.error_code) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize("version", [7, 9])
def test_a_read_waits_for_the_write_that_it_saw(version: int) -> None:
    world = GroupWorld().open()
    commit = world.serve(offset_commit, commit_request(7), 8)
    request = many(OffsetFetchRequestGroup(group_id="g", topics=None)) if version > 7 else single(0)
    read = world.serve(offset_fetch, request, version)
    assert not read.answered
    world.turn()
    assert commit.answered
    topics = read.value.groups[0].topics if version > 7 else read.value.topics
    assert topics[0].partitions[0].committed_offset == 7


def test_before_the_offsets_topic_exists_this_is_not_the_coordinator() -> None:
    world = GroupWorld()
    refused = world.send_request(offset_fetch, single(0), 7)
    assert (refused.error_code, refused.topics) == (ErrorCode.NOT_COORDINATOR, ())
    assert (
        world.send_request(offset_fetch, single(0), 1).topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    )
    answer = world.send_request(offset_fetch, many(OffsetFetchRequestGroup(group_id="g", topics=None)), 8)
    assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR

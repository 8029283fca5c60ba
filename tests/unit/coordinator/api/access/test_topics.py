"""Requests of which a part is allowed: the rest has an error, and does not show whether it exists."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.access import access_world
from tests.unit.coordinator.api.access.access_world import MISSING, TOPIC, AccessWorld, granted
from tests.unit.coordinator.api.data_world import batch, produces

from rota.coordinator.network.call import CloseConnection
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

DENIED, INVALID, OVER = 29, 42, 7
ZERO = bytes(16)


def names(topics: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in topics]


def test_produce_appends_to_the_allowed_topics_and_refuses_the_others() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t WRITE"))
    response = world.send(0, produces([("t", 0, batch(b"x")), (TOPIC, 0, batch(b"y"))]), 9)
    assert [(t.name, t.partition_responses[0].error_code) for t in response.responses] == [("t", 0), (TOPIC, DENIED)]
    assert world.partition("t").log.log_end_offset == 1
    assert world.partition(TOPIC).log.log_end_offset == 1  # what was there


def test_produce_without_acks_ends_the_connection_when_a_topic_is_refused() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t WRITE"))
    with pytest.raises(CloseConnection, match="TOPIC_AUTHORIZATION_FAILED"):
        world.send(0, produces([("t", 0, batch(b"x")), (TOPIC, 0, batch(b"y"))], acks=0), 9)
    assert world.partition("t").log.log_end_offset == 1
    records = batch(b"x", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    with pytest.raises(CloseConnection, match="TRANSACTIONAL_ID"):
        world.send(0, produces([("t", 0, records)], acks=0, transactional_id="x"), 9)


def test_produce_names_topics_by_id() -> None:
    world = AccessWorld(granted())
    topic_id = world.node.topics.get(TOPIC).topic_id  # type: ignore[union-attr]
    known, unknown = world.send(0, produces([(topic_id, 0, batch(b"x")), (b"\xff" * 16, 0, batch(b"x"))]), 13).responses
    codes = {topic.topic_id: topic.partition_responses[0].error_code for topic in (known, unknown)}
    assert codes == {topic_id: DENIED, b"\xff" * 16: 100}


def test_list_offsets_returns_the_refused_topics_with_the_others() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t READ"))
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=-1),)
    request = ListOffsetsRequest(topics=tuple(ListOffsetsTopic(name=n, partitions=partitions) for n in (TOPIC, "t")))
    response = world.send(2, request, 7)
    found = [(topic.name, topic.partitions[0].error_code, topic.partitions[0].offset) for topic in response.topics]
    assert found == [("t", 0, 0), (TOPIC, DENIED, -1)]


@pytest.mark.parametrize("version", [0, 1, 8, 13])
def test_metadata_lists_visible_topics_only(version: int) -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t DESCRIBE"))
    everything = next(access_world.metadata(version))
    assert names(world.send(3, everything, version).topics) == [("t", 0)]


@pytest.mark.parametrize("version", [0, 1, 8, 13])
def test_metadata_of_a_refused_topic_is_the_same_whether_it_exists_or_not(version: int) -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t DESCRIBE"))
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in (TOPIC, "t", MISSING)))
    response = world.send(3, request, version)
    assert names(response.topics) == [("t", 0), (TOPIC, DENIED), (MISSING, DENIED)]
    assert [topic.topic_id for topic in response.topics[1:]] == [ZERO, ZERO]
    alone = world.send(3, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), version)
    assert names(alone.topics) == [(TOPIC, DENIED)]


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_is_invalid_before_version_12_whoever_asks(version: int) -> None:
    """AT8. Its response needs names."""
    world = AccessWorld(granted())
    hidden = world.node.topics.get(TOPIC)
    assert hidden is not None
    topics = (MetadataRequestTopic(name="", topic_id=hidden.topic_id),)
    assert names(world.send(3, MetadataRequest(topics=topics), version).topics) == [("", INVALID)]


def test_metadata_by_id_refuses_without_the_name() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t DESCRIBE"))
    topics = [world.node.topics.get(name) for name in (TOPIC, "t")]
    ids = tuple(MetadataRequestTopic(name=None, topic_id=topic.topic_id) for topic in topics if topic is not None)
    assert names(world.send(3, MetadataRequest(topics=ids), 12).topics) == [("t", 0), (None, DENIED)]


@pytest.mark.parametrize(
    ("grants", "code"),
    [(("DESCRIBE",), DENIED), (("DESCRIBE", "CREATE"), 3)],
)
def test_metadata_creates_a_missing_topic_only_with_create(grants: tuple[str, ...], code: int) -> None:
    world = AccessWorld(granted(*(f"TOPIC:LITERAL:{MISSING} {grant}" for grant in grants)))
    request = MetadataRequest(topics=(MetadataRequestTopic(name=MISSING),))
    assert names(world.send(3, request, 9).topics) == [(MISSING, code)]
    assert (MISSING in world.node.topics) is ("CREATE" in grants)


def test_metadata_computes_authorized_operations() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t READ", "CLUSTER:LITERAL:kafka-cluster DESCRIBE"))
    response = world.send(3, next(access_world.metadata(8)), 8)
    assert [topic.topic_authorized_operations for topic in response.topics] == [1 << 3 | 1 << 8]
    assert response.cluster_authorized_operations == 1 << 8
    assert AccessWorld(granted()).send(3, next(access_world.metadata(8)), 8).cluster_authorized_operations == 0


def test_pages_of_partitions_show_visible_topics_only() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t DESCRIBE", "TOPIC:LITERAL:zoo READ"))
    world.topic("zoo")
    first = world.send(75, DescribeTopicPartitionsRequest(topics=(), response_partition_limit=3), 0)
    assert names(first.topics) == [("t", 0)]
    assert first.next_cursor == Cursor(topic_name="zoo", partition_index=0)
    assert first.topics[0].topic_authorized_operations == 1 << 8
    hidden = Cursor(topic_name=TOPIC, partition_index=1)
    assert names(world.send(75, DescribeTopicPartitionsRequest(topics=(), cursor=hidden), 0).topics) == [
        ("t", 0),
        ("zoo", 0),
    ]
    behind = Cursor(topic_name="zzz", partition_index=0)
    assert world.send(75, DescribeTopicPartitionsRequest(topics=(), cursor=behind), 0).topics == ()
    named = DescribeTopicPartitionsRequest(topics=(TopicRequest(name=TOPIC), TopicRequest(name="t")))
    assert names(world.send(75, named, 0).topics) == [(TOPIC, DENIED), ("t", 0)]


def test_configs_of_a_new_topic_are_shown_with_describe_configs_only() -> None:
    request = CreateTopicsRequest(
        topics=tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("new", TOPIC))
    )
    created, refused = AccessWorld(granted("TOPIC:LITERAL:new CREATE")).send(19, request, 7).topics
    assert (created.name, created.error_code, created.topic_config_error_code) == ("new", 0, DENIED)
    assert (created.num_partitions, created.configs) == (-1, ())
    assert (refused.name, refused.error_code) == (TOPIC, DENIED)
    shown = AccessWorld(granted("TOPIC:PREFIXED:n ALL")).send(19, request, 7).topics[0]
    assert (shown.topic_config_error_code, shown.num_partitions) == (0, 1)
    assert shown.configs


def test_create_on_the_cluster_allows_every_topic() -> None:
    request = CreateTopicsRequest(topics=(CreatableTopic(name="new", num_partitions=1, replication_factor=1),))
    world = AccessWorld(granted("CLUSTER:LITERAL:kafka-cluster CREATE"))
    assert names(world.send(19, request, 7).topics) == [("new", 0)]


def test_partitions_are_added_to_allowed_topics() -> None:
    world = AccessWorld(granted("TOPIC:LITERAL:t ALTER"))
    topics = tuple(CreatePartitionsTopic(name=name, count=4) for name in (TOPIC, "t"))
    results = world.send(37, CreatePartitionsRequest(topics=topics, timeout_ms=1000), 3).results
    assert names(results) == [("t", 0), (TOPIC, DENIED)]


def test_topics_are_deleted_with_delete() -> None:
    request = DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name, topic_id=ZERO) for name in (TOPIC, "t")), timeout_ms=1000
    )
    deleted, refused = AccessWorld(granted("TOPIC:LITERAL:t DELETE")).send(20, request, 6).responses
    assert [(deleted.name, deleted.error_code), (refused.name, refused.error_code)] == [("t", 0), (TOPIC, DENIED)]
    assert refused.topic_id == ZERO


def test_a_refused_deletion_by_id_names_only_a_topic_that_may_be_described() -> None:
    for grants, name in (((), None), ((f"TOPIC:LITERAL:{TOPIC} READ",), TOPIC)):
        world = AccessWorld(granted(*grants))
        topic_id = world.node.topics.get(TOPIC).topic_id  # type: ignore[union-attr]
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=topic_id),), timeout_ms=1000)
        (refused,) = world.send(20, request, 6).responses
        assert (refused.name, refused.topic_id, refused.error_code) == (name, topic_id, DENIED)


@pytest.mark.parametrize(
    ("grant", "code"), [("DESCRIBE", 3), ("READ", 3), ("DELETE", 3), ("CREATE", DENIED), ("DESCRIBE_CONFIGS", DENIED)]
)
def test_who_may_describe_a_topic_is_told_that_it_does_not_exist(grant: str, code: int) -> None:
    world = AccessWorld(granted(f"TOPIC:LITERAL:{MISSING} {grant}"))
    by_name = DeleteTopicsRequest(topic_names=(MISSING,), timeout_ms=1000)
    by_state = DeleteTopicsRequest(topics=(DeleteTopicState(name=MISSING, topic_id=ZERO),), timeout_ms=1000)
    for version, request in ((1, by_name), (5, by_name), (6, by_state)):
        assert names(world.send(20, request, version).responses) == [(MISSING, code)]


CREATE, GROW, DELETE = 19, 37, 20
ALLOWED = granted("TOPIC:PREFIXED:mine CREATE", "TOPIC:PREFIXED:mine ALTER", "TOPIC:PREFIXED:mine DELETE")


def changed(api: int, timeout_ms: int, *named: str) -> list[tuple[str | None, int]]:
    """The name and the error of each topic; a topic that is to be deleted is named by NAME, or as NAME/ID."""
    world = AccessWorld(ALLOWED)
    if api == CREATE:
        new = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in named)
        return names(world.send(api, CreateTopicsRequest(topics=new, timeout_ms=timeout_ms), 7).topics)
    if api == GROW:
        grown = tuple(CreatePartitionsTopic(name=name, count=2) for name in named)
        return names(world.send(api, CreatePartitionsRequest(topics=grown, timeout_ms=timeout_ms), 3).results)
    old = tuple(DeleteTopicState(name=name.rstrip("/"), topic_id=b"1" * 16 if "/" in name else ZERO) for name in named)
    results = names(world.send(api, DeleteTopicsRequest(topics=old, timeout_ms=timeout_ms), 6).responses)
    if not any("/" in name for name in named):
        by_name = DeleteTopicsRequest(topic_names=named, timeout_ms=timeout_ms)
        assert names(world.send(api, by_name, 5).responses) == results
    return results


@pytest.mark.parametrize("api", [CREATE, GROW, DELETE])
def test_at9_a_topic_that_is_named_twice_is_invalid_whoever_asks(api: int) -> None:
    assert changed(api, 1000, TOPIC, TOPIC) == [(TOPIC, INVALID)]
    assert sorted(changed(api, 1000, TOPIC, TOPIC, "other")) == [("other", DENIED), (TOPIC, INVALID)]  # type: ignore[type-var]


def test_at9_no_client_may_create_the_topic_of_the_metadata_or_name_a_topic_in_two_ways() -> None:
    metadata = "__cluster_metadata"
    assert changed(CREATE, 1000, metadata, TOPIC) == [(metadata, INVALID), (TOPIC, DENIED)]
    assert changed(CREATE, 0, metadata, TOPIC) == [(metadata, INVALID), (TOPIC, DENIED)]
    assert changed(CREATE, 0, metadata, "mine") == [(metadata, OVER), ("mine", OVER)]
    assert changed(DELETE, 1000, f"{TOPIC}/") == changed(DELETE, 0, f"{TOPIC}/") == [(TOPIC, INVALID)]


@pytest.mark.parametrize("api", [CREATE, GROW])
def test_at9_the_time_is_over_for_all_topics_if_one_of_them_may_be_changed(api: int) -> None:
    for timeout_ms in (0, -1):
        assert changed(api, timeout_ms, TOPIC, "mine", "twice", "twice") == [
            (name, OVER) for name in (TOPIC, "mine", "twice", "twice")
        ]
        assert changed(api, timeout_ms, TOPIC) == [(TOPIC, DENIED)]
        assert changed(api, timeout_ms, TOPIC, "mine", "mine") == [("mine", INVALID), (TOPIC, DENIED)]


def test_at9_the_time_to_delete_is_over_whoever_asks() -> None:
    assert changed(DELETE, 0, TOPIC, "mine", MISSING) == [(name, OVER) for name in (TOPIC, "mine", MISSING)]
    assert changed(DELETE, 0, TOPIC, TOPIC) == [(TOPIC, INVALID)]


def test_cluster_action_allows_offset_for_leader_epoch_of_every_topic() -> None:
    request = next(access_world.offset_for_leader_epoch(4))
    world = AccessWorld(granted("CLUSTER:LITERAL:kafka-cluster CLUSTER_ACTION"))
    assert world.send(23, request, 4).topics[0].partitions[0].error_code == 0


def test_missing_topics_that_may_not_be_created_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request names as many topics as fit into it: the loop must not stand still for their square."""
    compared = 0

    def equal(item: object, other: object) -> bool:
        nonlocal compared
        compared += 1
        return item is other

    monkeypatch.setattr(MetadataRequestTopic, "__eq__", equal)
    world = AccessWorld(granted("TOPIC:PREFIXED:new DESCRIBE"))
    topics = tuple(MetadataRequestTopic(name=f"new{number}") for number in range(100))
    response = world.send(3, MetadataRequest(topics=topics, allow_auto_topic_creation=True), 8)
    assert {topic.error_code for topic in response.topics} == {DENIED}
    assert len(response.topics) == 100
    assert compared <= 100

"""What goes over the wire for topics, and how answers are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.admin.conftest import Pair, until_version
from tests.unit.client.network.scripted import Scripted

from rota.client.admin.requests import Deadline
from rota.client.admin.topics import (
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topics,
    list_topics,
)
from rota.client.config import ClientConfig
from rota.client.errors import (
    AdminFailed,
    BrokerError,
    IllegalArgument,
    IllegalUse,
    TimedOut,
    UnknownTopic,
    Unsupported,
)
from rota.client.network.cluster import Cluster
from rota.client.types import PartitionInfo
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from rota.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rota.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse

FIRST_ID, SECOND_ID = b"1" * 16, b"2" * 16


def creates(pair: Pair, **codes: int) -> None:
    """Broker 0 makes what it is asked for, with two partitions."""

    def answer(request: CreateTopicsRequest) -> CreateTopicsResponse:
        results = []
        for topic in request.topics:
            code = codes.get(topic.name, 0)
            if not code and not request.validate_only:
                pair.topics[topic.name], pair.ids[topic.name] = [0, 1], FIRST_ID
            config = CreatableTopicConfigs(name="retention.ms", value="5", read_only=False, is_sensitive=False)
            results.append(
                CreatableTopicResult(
                    name=topic.name, topic_id=FIRST_ID, error_code=code, num_partitions=2, configs=(config,)
                )
            )
        return CreateTopicsResponse(topics=tuple(results))

    pair.one.on(CreateTopicsRequest, answer)


def last(broker: Scripted, request: type) -> Any:
    return next(item for item in reversed(broker.requests) if type(item) is request)


async def test_many_topics_are_one_request(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    creates(pair)
    new = [NewTopic("a", 2, 1, configs={"retention.ms": "5"}), NewTopic("b", replica_assignments=[[0, 1], [1, 0]])]
    made = await create_topics(cluster, new, deadline, validate_only=False, wait=True)
    assert (made["a"].id, made["a"].partitions, made["a"].configs) == (FIRST_ID, 2, {"retention.ms": "5"})
    first, second = last(pair.one, CreateTopicsRequest).topics
    assert (first.num_partitions, first.replication_factor, first.configs[0].value) == (2, 1, "5")
    assert (second.num_partitions, second.replication_factor) == (-1, -1)
    assert [(item.partition_index, item.broker_ids) for item in second.assignments] == [(0, (0, 1)), (1, (1, 0))]
    assert sum(len(received) for received in pair.requests(CreateTopicsRequest)) == 1


async def test_failed_topics_are_reported_with_the_created_ones(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    creates(pair, b=ErrorCode.TOPIC_ALREADY_EXISTS)
    with pytest.raises(AdminFailed, match=r"\(b\): TOPIC_ALREADY_EXISTS.*delete the topic first") as failed:
        await create_topics(cluster, [NewTopic("a"), NewTopic("b")], deadline, validate_only=False, wait=True)
    assert failed.value.done["a"].partitions == 2


async def test_a_created_topic_missing_from_metadata_times_out(
    pair: Pair, cluster: Cluster, soon: Deadline, deadline: Deadline
) -> None:
    creates(pair)
    pair.one.on(
        CreateTopicsRequest,
        lambda _: CreateTopicsResponse(topics=(CreatableTopicResult(name="a", num_partitions=2),)),
    )
    with pytest.raises(TimedOut, match="a is done, but no broker showed it"):
        await create_topics(cluster, [NewTopic("a")], soon, validate_only=False, wait=True)
    done = await create_topics(cluster, [NewTopic("a")], deadline, validate_only=False, wait=False)
    assert done["a"].partitions == 2


async def test_a_creation_timeout_of_the_controller_is_not_retried(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    creates(pair, a=ErrorCode.REQUEST_TIMED_OUT)
    with pytest.raises(AdminFailed, match="REQUEST_TIMED_OUT"):
        await create_topics(cluster, [NewTopic("a")], deadline, validate_only=False, wait=True)
    assert len(pair.requests(CreateTopicsRequest)[0]) == 1


async def test_deleting_from_an_old_broker_uses_names(deadline: Deadline) -> None:
    async with Scripted(versions=until_version(DeleteTopicsRequest, 5)) as broker:
        broker.on(
            DeleteTopicsRequest,
            lambda request: DeleteTopicsResponse(
                responses=tuple(DeletableTopicResult(name=name) for name in request.topic_names)
            ),
        )
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        await cluster.start()
        await delete_topics(cluster, ["a"], deadline, wait=False)
        with pytest.raises(Unsupported):
            await delete_topics(cluster, [FIRST_ID], deadline, wait=False)
        await cluster.close()


async def test_a_trial_waits_for_nothing(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    creates(pair)
    await create_topics(cluster, [NewTopic("a")], deadline, validate_only=True, wait=True)
    assert last(pair.one, CreateTopicsRequest).validate_only
    assert not pair.topics


async def test_a_topic_is_named_once(cluster: Cluster, deadline: Deadline) -> None:
    with pytest.raises(IllegalUse, match="a twice"):
        await create_topics(cluster, [NewTopic("a"), NewTopic("a", 2)], deadline, validate_only=False, wait=True)


async def test_a_name_is_no_new_topic(cluster: Cluster, deadline: Deadline) -> None:
    with pytest.raises(IllegalArgument, match=r"give NewTopic\('orders'\)"):
        await create_topics(cluster, ["orders"], deadline, validate_only=False, wait=False)  # type: ignore[list-item]


async def test_empty_calls_send_no_request(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    before = len(pair.one.requests)
    assert await create_topics(cluster, [], deadline, validate_only=False, wait=True) == {}
    await delete_topics(cluster, [], deadline, wait=True)
    await create_partitions(cluster, {}, deadline, validate_only=False, wait=True)
    assert await describe_topics(cluster, [], deadline) == {}
    assert len(pair.one.requests) == before


def deletes(pair: Pair, **codes: int) -> None:
    def answer(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        names = {value: name for name, value in pair.ids.items()}
        results = []
        for item in request.topics:
            name = item.name or names[item.topic_id]
            code = codes.get(name, 0)
            if not code:
                pair.topics.pop(name, None)
            results.append(DeletableTopicResult(name=name, topic_id=pair.ids[name], error_code=code))
        return DeleteTopicsResponse(responses=tuple(results))

    pair.one.on(DeleteTopicsRequest, answer)


async def test_topics_are_deleted_by_name_and_by_id(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics, pair.ids = {"a": [0], "b": [0], "c": [0]}, {"a": FIRST_ID, "b": SECOND_ID, "c": b"3" * 16}
    deletes(pair)
    await delete_topics(cluster, ["a", SECOND_ID], deadline, wait=True)
    assert list(pair.topics) == ["c"]


async def test_a_deletion_that_fails_names_the_topic(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics, pair.ids = {"a": [0], "b": [0]}, {"a": FIRST_ID, "b": SECOND_ID}
    deletes(pair, b=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(AdminFailed, match=r"\(b\).*list_topics") as failed:
        await delete_topics(cluster, ["a", "b"], deadline, wait=True)
    assert isinstance(failed.value.failed["b"], UnknownTopic)
    assert len(pair.requests(DeleteTopicsRequest)[0]) == 1
    with pytest.raises(AdminFailed, match=SECOND_ID.hex()):
        await delete_topics(cluster, [SECOND_ID], deadline, wait=True)


async def test_a_recreated_topic_counts_as_deleted(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics, pair.ids = {"a": [0]}, {"a": SECOND_ID}  # somebody was quick
    answer = DeleteTopicsResponse(responses=(DeletableTopicResult(name="a", topic_id=FIRST_ID),))
    pair.one.on(DeleteTopicsRequest, lambda _: answer)
    await delete_topics(cluster, ["a"], deadline, wait=True)


async def test_partitions_are_added_up_to_a_total(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"a": [0], "b": [0]}

    def answer(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        for item in request.topics:
            pair.topics[item.name] = [0] * item.count
        return CreatePartitionsResponse(results=tuple(CreatePartitionsTopicResult(name=o.name) for o in request.topics))

    pair.one.on(CreatePartitionsRequest, answer)
    totals = {"a": 3, "b": NewPartitions(2, [[1, 0]])}
    await create_partitions(cluster, totals, deadline, validate_only=False, wait=True)
    first, second = last(pair.one, CreatePartitionsRequest).topics
    assert (first.count, first.assignments) == (3, None)
    assert (second.count, [item.broker_ids for item in second.assignments]) == (2, [(1, 0)])


async def test_topics_are_described_with_their_partitions(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics, pair.ids = {"a": [1, -1], "__offsets": [0]}, {"a": FIRST_ID}
    reply = (await describe_topics(cluster, ["a"], deadline))["a"]
    assert (reply.id, reply.is_internal) == (FIRST_ID, False)
    assert reply.partitions == (
        PartitionInfo("a", 0, 1, -1, (0, 1), (0, 1)),
        PartitionInfo("a", 1, -1, -1, (0, 1), (0, 1)),
    )
    with pytest.raises(AdminFailed) as failed:
        await describe_topics(cluster, ["a", "nowhere"], deadline)
    assert isinstance(failed.value.failed["nowhere"], UnknownTopic)
    assert failed.value.done["a"] == reply


async def test_internal_topics_are_listed_on_request(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.topics = {"b": [0], "__offsets": [0], "a": [0]}
    assert list(await list_topics(cluster, deadline, internal=False)) == ["a", "b"]
    assert list(await list_topics(cluster, deadline, internal=True)) == ["__offsets", "a", "b"]


async def test_asking_never_creates(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    with pytest.raises(AdminFailed):
        await describe_topics(cluster, ["nowhere"], deadline)
    await list_topics(cluster, deadline, internal=False)
    metadata_requests = [
        item for broker in pair.both for item in broker.requests if type(item).__name__ == "MetadataRequest"
    ]
    assert not any(item.allow_auto_topic_creation for item in metadata_requests)


async def test_ad7_metadata_that_is_refused_as_a_whole_is_an_error(pair: Pair, cluster: Cluster) -> None:
    refused = MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    for broker in pair.both:
        broker.on(MetadataRequest, lambda _: refused)
    with pytest.raises(BrokerError, match="REBOOTSTRAP_REQUIRED"):
        await list_topics(cluster, Deadline(100, 100), internal=True)
    with pytest.raises(AdminFailed, match="REBOOTSTRAP_REQUIRED"):
        await describe_topics(cluster, ["t"], Deadline(100, 100))

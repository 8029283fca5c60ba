"""Administration through confluent-kafka, kafka-python and aiokafka; Kafka's own tools are in test_java_tools.py.

kafka-python's own admin tests run too: client_suites/test_client_suites.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import confluent_kafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import KafkaAdminClient
from tests.interop.conftest import Join
from tests.interop.kit import PATIENCE_S, create_topic, produce, unique, until
from tests.interop.layouts import describe, until_sizes


def refusal(future: object) -> str:
    """The name of the error that a future of librdkafka ends with."""
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        future.result(PATIENCE_S)  # type: ignore[attr-defined]
    return str(refused.value.args[0].name())


# ---- confluent-kafka


def test_confluent_topics(admin: AdminClient) -> None:
    name = unique("topic")
    admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "60000"})])[name].result(PATIENCE_S)
    assert refusal(admin.create_topics([NewTopic(name, 2, 1)])[name]) == "TOPIC_ALREADY_EXISTS"
    assert refusal(admin.create_topics([NewTopic("bad name!", 1, 1)])["bad name!"]) == "TOPIC_EXCEPTION"
    admin.create_partitions([NewPartitions(name, 3)])[name].result(PATIENCE_S)
    assert refusal(admin.create_partitions([NewPartitions(name, 2)])[name]) == "INVALID_PARTITIONS"
    reply = admin.describe_topics(confluent_kafka.TopicCollection([name]))[name].result(PATIENCE_S)
    assert [(p.id, p.leader.id, [r.id for r in p.replicas]) for p in reply.partitions] == [
        (n, 0, [0]) for n in range(3)
    ]
    admin.delete_topics([name])[name].result(PATIENCE_S)
    until(lambda: name not in admin.list_topics(timeout=PATIENCE_S).topics, "the topic to go")
    assert refusal(admin.delete_topics([name])[name]) == "UNKNOWN_TOPIC_OR_PART"


def test_confluent_configs(admin: AdminClient, bootstrap: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, create_topic(bootstrap, 1))
    resource.add_incremental_config(ConfigEntry("retention.ms", "1234", incremental_operation=AlterConfigOpType.SET))
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    )
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

    def configs() -> dict[str, ConfigEntry]:
        found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return found

    # Kafka's brokers learn of it a moment later
    until(
        lambda: (configs()["retention.ms"].value, configs()["retention.ms"].is_default) == ("1234", False),
        "the new value",
    )
    assert configs()["cleanup.policy"].value == "delete,compact"
    assert (configs()["segment.bytes"].value, configs()["segment.bytes"].is_default) == ("1073741824", True)
    wrong = ConfigResource(ResourceType.TOPIC, resource.name)
    wrong.add_incremental_config(ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET))
    assert refusal(admin.incremental_alter_configs([wrong])[wrong]) == "INVALID_CONFIG"


def test_confluent_offsets_of_partitions(admin: AdminClient, bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"x"] * 10)
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return int(admin.list_offsets({partition: spec})[partition].result(PATIENCE_S).offset)

    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (0, 10)
    assert offset(OffsetSpec.for_timestamp(1)) == 0
    admin.delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0, 4)].result(PATIENCE_S)
    assert offset(OffsetSpec.earliest()) == 4


def test_confluent_groups_and_their_offsets(admin: AdminClient, bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 7), TopicPartition(topic, 1, 9)])
    admin.alter_consumer_group_offsets([wanted])[group].result(PATIENCE_S)
    reply = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_S)
    assert sorted((p.partition, p.offset) for p in reply.topic_partitions) == [(0, 7), (1, 9)]
    assert describe(admin, group).state.name == "EMPTY"
    member = join("confluent-kafka", group=group, topics=[topic])
    until_sizes([member], 2)
    listed = admin.list_consumer_groups().result(PATIENCE_S).valid
    assert (group, "STABLE", False) in [(g.group_id, g.state.name, g.is_simple_consumer_group) for g in listed]
    refused = admin.alter_consumer_group_offsets([wanted])[group].result(PATIENCE_S)
    assert {p.error.name() for p in refused.topic_partitions} == {"UNKNOWN_MEMBER_ID"}
    assert refusal(admin.delete_consumer_groups([group])[group]) == "NON_EMPTY_GROUP"
    member.close()
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert refusal(admin.delete_consumer_groups([group])[group]) == "GROUP_ID_NOT_FOUND"


# ---- kafka-python


@pytest.fixture
def kafka_python(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def test_kafka_python_groups_and_their_offsets(
    kafka_python: KafkaAdminClient, bootstrap: str, join: Join, group: str
) -> None:
    topic = create_topic(bootstrap, 2)
    first, second = kafka.TopicPartition(topic, 0), kafka.TopicPartition(topic, 1)
    positions = {tp: kafka.OffsetAndMetadata(5, "by hand", -1) for tp in (first, second)}
    kafka_python.alter_group_offsets(group, positions)
    kafka_python.delete_group_offsets(group, [second])
    reply = kafka_python.list_group_offsets(group)
    offsets = reply.get(group, reply)
    assert {tp: (found.offset, found.metadata) for tp, found in offsets.items()} == {first: (5, "by hand")}
    member = join("kafka-python", group=group, topics=[topic], client_id="seen", instance="me")
    until_sizes([member], 2)
    kafka_python.remove_group_members(group, [kafka.admin.MemberToRemove(group_instance_id="me")])
    until(lambda: group in kafka_python.delete_groups([group]) or True, "the group to be deleted")


# ---- aiokafka


@pytest.fixture
async def aio(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    yield client
    await client.close()


async def test_aiokafka_topics_and_configs(aio: AIOKafkaAdminClient) -> None:
    name = unique("topic")
    created = await aio.create_topics([AioNewTopic(name, 2, 1)])
    assert created.topic_errors[0][:2] == (name, 0)
    await aio.create_partitions({name: AioNewPartitions(4)})
    (reply,) = await aio.describe_topics([name])
    assert sorted(partition["partition"] for partition in reply["partitions"]) == [0, 1, 2, 3]
    resource = AioConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "777"})
    await aio.alter_configs([resource])
    (answer,) = await aio.describe_configs([AioConfigResource(ConfigResourceType.TOPIC, name)])
    assert ("retention.ms", "777") in [(entry[0], entry[1]) for entry in answer.resources[0][4]]
    assert name in await aio.list_topics()
    await aio.delete_topics([name])
    assert name not in await aio.list_topics()


async def test_aiokafka_groups_and_their_offsets(
    aio: AIOKafkaAdminClient, bootstrap: str, join: Join, group: str
) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"x"] * 5)
    member = join("aiokafka", group=group, topics=[topic])
    until_sizes([member], 1)
    member.commit(topic, 0, 3, "note")
    ((position, found),) = (await aio.list_consumer_group_offsets(group)).items()
    assert (position.topic, position.partition, found.offset, found.metadata) == (topic, 0, 3, "note")
    assert (group, "consumer") in await aio.list_consumer_groups()
    (answer,) = await aio.describe_consumer_groups([group])
    _, name, state, protocol_type, protocol, members = answer.groups[0][:6]
    assert (name, state, protocol_type, protocol, len(members)) == (group, "Stable", "consumer", "range", 1)

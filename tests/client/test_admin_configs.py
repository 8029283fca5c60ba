"""Configurations: the same answers as librdkafka's AdminClient gets, on both brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ResourceType
from confluent_kafka.admin import ConfigResource as TheirResource
from tests.client.admin_kit import admin, answer, theirs
from tests.interop.kit import PATIENCE_S, unique

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ConfigType
from rota.client.admin.topics import NewTopic
from rota.client.errors import AdminFailed, BrokerError
from rota.protocol.errors import ErrorCode

__all__ = ["admin", "theirs"]


@pytest.fixture
async def resource(admin: Admin, topic: str) -> ConfigResource:
    await admin.create_topics([NewTopic(topic, 1)])
    return ConfigResource.topic(topic)


async def seen(admin: Admin, resource: ConfigResource, **wanted: str) -> dict[str, ConfigEntry]:
    """The settings once they are as wanted: Kafka's brokers learn of a change a moment later."""
    keys = [name.replace("_", ".") for name in wanted]
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await admin.describe_configs([resource], keys=keys))[resource]
            if {name: entry.value for name, entry in found.items()} == dict(zip(keys, wanted.values(), strict=True)):
                return found


def read(entries: Any) -> dict[str, tuple[object, ...]]:
    return {
        name: (item.value, int(item.source), bool(item.is_read_only), bool(item.is_sensitive), bool(item.is_default))
        for name, item in entries.items()
    }


async def test_a_topic_and_a_broker_are_described(admin: Admin, theirs: AdminClient, resource: ConfigResource) -> None:
    node = (await admin.describe_cluster()).nodes[0].id
    ours = await admin.describe_configs([resource, ConfigResource.broker(node)])
    for item, kind in zip(ours, (ResourceType.TOPIC, ResourceType.BROKER), strict=True):
        other = TheirResource(kind, item.name)
        assert read(ours[item]) == read(answer(theirs.describe_configs([other])[other]))
    assert len(ours[resource]) > 20


async def test_an_entry_has_value_type_synonyms_and_documentation(admin: Admin, resource: ConfigResource) -> None:
    requests = await admin.describe_configs([resource], keys=["cleanup.policy"], synonyms=True, documentation=True)
    (entry,) = requests[resource].values()
    assert (entry.value, entry.type, entry.is_default) == ("delete", ConfigType.LIST, True)
    assert [(item.name, item.source) for item in entry.synonyms] == [("log.cleanup.policy", ConfigSource.DEFAULT)]
    assert entry.documentation


async def test_alter_configs_changes_only_the_named_settings(admin: Admin, resource: ConfigResource) -> None:
    await admin.alter_configs({resource: {"retention.ms": 1234, "cleanup.policy": ConfigChange.append("compact")}})
    found = await seen(admin, resource, retention_ms="1234", cleanup_policy="delete,compact")
    assert found["retention.ms"].source is ConfigSource.TOPIC
    await admin.alter_configs({resource: {"cleanup.policy": ConfigChange.subtract("delete"), "preallocate": True}})
    await seen(admin, resource, retention_ms="1234", cleanup_policy="compact", preallocate="true")
    await admin.alter_configs({resource: {"retention.ms": None, "cleanup.policy": ConfigChange.delete()}})
    back = await seen(admin, resource, retention_ms="604800000", cleanup_policy="delete")
    assert all(entry.is_default for entry in back.values())


async def test_a_trial_changes_nothing(admin: Admin, resource: ConfigResource) -> None:
    await admin.alter_configs({resource: {"retention.ms": 1}}, validate_only=True)
    await admin.alter_configs({resource: {"segment.bytes": 2_000_000}})
    await seen(admin, resource, retention_ms="604800000", segment_bytes="2000000")


async def test_of_one_resource_all_changes_are_made_or_none(admin: Admin, resource: ConfigResource) -> None:
    nowhere = ConfigResource.topic(unique("topic"))
    with pytest.raises(AdminFailed) as failed:
        await admin.alter_configs(
            {resource: {"retention.ms": "soon", "segment.bytes": 2_000_000}, nowhere: {"retention.ms": 1}}
        )
    assert failed.value.codes == {ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    await seen(admin, resource, retention_ms="604800000", segment_bytes="1073741824")


async def test_an_unknown_resource_fails_alone(admin: Admin, resource: ConfigResource) -> None:
    nowhere = ConfigResource.topic(unique("topic"))
    with pytest.raises(AdminFailed) as failed:
        await admin.describe_configs([nowhere, resource], keys=["retention.ms"])
    error = failed.value.failed[nowhere]
    assert isinstance(error, BrokerError)
    assert (error.code, error.topic) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, nowhere.name)
    assert failed.value.done[resource]["retention.ms"].value == "604800000"

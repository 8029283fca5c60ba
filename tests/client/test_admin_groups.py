"""Groups and their members: the same answers as librdkafka's AdminClient gets, on both brokers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.client.admin_kit import admin, answer, parts, refused, theirs
from tests.interop.clients import CLIENTS
from tests.interop.kit import until
from tests.interop.layouts import until_sizes
from tests.interop.members import Member, Settings

from rota.client.admin.admin import Admin
from rota.client.admin.topics import NewTopic
from rota.client.config import AdminConfig
from rota.client.errors import AdminFailed, BrokerError
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

__all__ = ["admin", "theirs"]
Join = Callable[..., Member]


@pytest.fixture
def join(bootstrap: str) -> Iterator[Join]:
    """A member of librdkafka, in a thread of its own; closed in the end."""
    members: list[Member] = []

    def start(**settings: Any) -> Member:
        members.append(CLIENTS["confluent-kafka"](bootstrap, Settings(**settings)))
        return members[-1]

    yield start
    for member in members:
        member.stop()
    for member in members:
        member.close()


@pytest.fixture
async def two(admin: Admin, topic: str) -> str:
    await admin.create_topics([NewTopic(topic, 2)])
    return topic


async def test_a_group_with_members(admin: Admin, theirs: AdminClient, join: Join, group: str, two: str) -> None:
    static = join(group=group, topics=[two], client_id="first", instance="kept")
    dynamic = join(group=group, topics=[two], client_id="second")
    until_sizes([static, dynamic], 1, 1)
    ours = (await admin.describe_groups([group]))[group]
    other = answer(theirs.describe_consumer_groups([group])[group])
    assert (ours.state, ours.protocol_type, ours.protocol) == ("Stable", "consumer", other.partition_assignor)
    assert other.state.name == "STABLE"
    assert ours.coordinator is not None
    assert (ours.coordinator.id, ours.coordinator.host, ours.coordinator.port) == (
        other.coordinator.id,
        other.coordinator.host,
        other.coordinator.port,
    )
    assert sorted(
        (m.member_id, m.client_id, m.host, m.group_instance_id, list(m.assignment)) for m in ours.members
    ) == (
        sorted(
            (
                m.member_id,
                m.client_id,
                m.host,
                m.group_instance_id,
                [TopicPartition(p.topic, p.partition) for p in m.assignment.topic_partitions],
            )
            for m in other.members
        )
    )
    assert {m.topics for m in ours.members} == {(two,)}
    assert {m.group_instance_id for m in ours.members} == {"kept", None}
    listed = (await admin.list_groups())[group]
    assert (listed.protocol_type, listed.state, listed.type, listed.is_simple) == (
        "consumer",
        "Stable",
        "classic",
        False,
    )
    readers = {p: item.member for p, item in (await admin.group_lag(group)).items()}
    assert readers == {p: m.member_id for m in ours.members for p in m.assignment}


async def test_groups_are_listed_by_state(admin: Admin, theirs: AdminClient, join: Join, group: str, two: str) -> None:
    await admin.alter_group_offsets(group, {TopicPartition(two, 0): 1})
    other = f"{group}-2"
    until_sizes([join(group=other, topics=[two])], 2)
    assert group in await admin.list_groups(states=["Empty"], types=["classic"])
    assert other not in await admin.list_groups(states=["Empty"])
    assert {group, other} <= set(await admin.list_groups(states=["Empty", "Stable"]))
    assert not set(await admin.list_groups(types=["share"])) & {group, other}
    ours = await admin.list_groups()
    assert ours[group].is_simple
    theirs_now = {item.group_id for item in answer(theirs.list_consumer_groups()).valid}
    assert {group, other} <= theirs_now


async def test_members_are_removed(admin: Admin, join: Join, group: str, two: str) -> None:
    static = join(group=group, topics=[two], instance="kept")
    until_sizes([static], 2)
    with pytest.raises(AdminFailed) as failed:
        await admin.remove_members(group, members=["nobody"], instances=["kept"])
    assert list(failed.value.done) == ["kept"]
    assert failed.value.codes == {ErrorCode.UNKNOWN_MEMBER_ID}
    static.stop()
    dynamic = join(group=group, topics=[two])
    until_sizes([dynamic], 2)
    before = {item.member_id for item in (await admin.describe_groups([group]))[group].members}
    await admin.remove_members(group, remove_all=True, reason="maintenance")
    left = (await admin.describe_groups([group]))[group].members
    assert not before & {item.member_id for item in left}
    until_sizes([dynamic], 2)  # it still runs, so it joins again


async def test_groups_are_deleted_when_they_are_empty(
    admin: Admin, theirs: AdminClient, join: Join, group: str, two: str
) -> None:
    other = f"{group}-2"
    await admin.alter_group_offsets(other, {TopicPartition(two, 0): 1})
    member = join(group=group, topics=[two])
    until_sizes([member], 2)
    with pytest.raises(AdminFailed) as failed:
        await admin.delete_groups([group, other, f"{group}-3"])
    assert list(failed.value.done) == [other]
    assert {item: error.code for item, error in failed.value.failed.items() if isinstance(error, BrokerError)} == {
        group: refused(theirs.delete_consumer_groups([group])[group]),
        f"{group}-3": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    member.close()
    until(
        lambda: answer(theirs.describe_consumer_groups([group])[group]).state.name == "EMPTY", "the group to be empty"
    )
    await admin.delete_groups([group])
    assert not {group, other} & set(await admin.list_groups())
    with pytest.raises(AdminFailed) as absent:
        await admin.describe_groups([group])
    assert absent.value.codes == {ErrorCode.GROUP_ID_NOT_FOUND}
    assert await admin.list_group_offsets([group]) == {group: {}}


async def test_offsets_under_members_stay(admin: Admin, join: Join, group: str, two: str) -> None:
    member = join(group=group, topics=[two])
    until_sizes([member], 2)
    member.commit(two, 0, 0)
    first, second = parts(two, 2)
    with pytest.raises(AdminFailed) as altered:
        await admin.alter_group_offsets(group, {first: 5, second: 5})
    assert altered.value.codes == {ErrorCode.UNKNOWN_MEMBER_ID}
    with pytest.raises(AdminFailed) as deleted:
        await admin.delete_group_offsets(group, [first])
    assert deleted.value.codes == {ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    with pytest.raises(BrokerError, match="Stop its members") as reset:
        await admin.reset_group_offsets(group, [two], to="latest")
    assert reset.value.code == ErrorCode.NON_EMPTY_GROUP
    assert {p: at and at.offset for p, at in (await admin.list_group_offsets([group]))[group].items()} == {first: 0}


@pytest.mark.peer
async def test_a_group_of_the_consumer_protocol(group: str, topic: str) -> None:
    """KIP-848, which Rota does not serve."""
    kafka = os.environ.get("ROTA_PEER")
    if not kafka:
        pytest.skip("no Apache Kafka runs beside: ROTA_PEER is not set")
    async with Admin(AdminConfig(bootstrap_servers=kafka)) as admin:
        await admin.create_topics([NewTopic(topic, 2)])
        member = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka, "group.id": group, "group.protocol": "consumer", "client.id": "new"}
        )
        try:
            member.subscribe([topic])
            until(lambda: member.poll(0.05) or len(member.assignment()) == 2, "the assignment")
            assert group in await admin.list_groups(types=["consumer"])
            answer = (await admin.describe_groups([group]))[group]
            assert (answer.type, answer.state, answer.protocol) == ("consumer", "Stable", "uniform")
            assert [(m.client_id, m.topics, m.assignment) for m in answer.members] == [
                ("new", (topic,), tuple(parts(topic, 2)))
            ]
            with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
                await admin.reset_group_offsets(group, [topic], to="latest")
        finally:
            member.close()
        assert await admin.reset_group_offsets(group, [topic], to="latest") == dict.fromkeys(parts(topic, 2), 0)
        await admin.delete_groups([group])

"""Members of one group on a live broker: who gets what, what is kept, what a close, a pause, a new topic mean."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.client.member_kit import Join, Reader, all_owned, readers, settled, shares, until
from tests.interop.kit import PATIENCE_S, create_topic, unique

from rota.client.errors import AssignmentFailed, BrokerError, FencedInstance, IllegalUse
from rota.client.types import TopicPartition


@pytest.fixture
async def join(bootstrap: str, group: str) -> AsyncIterator[Join]:
    """`reader = await join(topic, setting=…)`: a reader that polls; all are closed in the end."""
    async with readers(bootstrap, group) as join:
        yield join


# ---- who gets what (R2)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_partitions_are_reassigned_as_members_join_and_leave(bootstrap: str, join: Join, strategy: str) -> None:
    topic = create_topic(bootstrap, 3)
    everything = [TopicPartition(topic, n) for n in range(3)]
    members: list[Reader] = []
    for expected in ([3], [1, 2], [1, 1, 1], [0, 1, 1, 1]):
        members.append(await join(topic, partition_assignment_strategy=(strategy,)))
        await until(lambda: shares(*members) == expected and settled(*members), f"{expected}")  # noqa: B023
        assert all_owned(*members) == everything
    for expected in ([1, 1, 1], [1, 2], [3]):
        await members.pop(0).close()
        await until(lambda: shares(*members) == expected and settled(*members), f"{expected}")  # noqa: B023
        assert all_owned(*members) == everything


async def test_an_eager_member_gives_everything_up_before_it_joins(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 3)
    first = await join(topic, partition_assignment_strategy=("range",))
    await until(lambda: settled(first), "the first")
    second = await join(topic, partition_assignment_strategy=("range",))
    await until(lambda: settled(first, second), "both")
    assert [event for event, _ in first.events] == ["assigned", "revoked", "assigned"]
    assert len(first.events[1][1]) == 3
    assert all_owned(first, second) == [TopicPartition(topic, n) for n in range(3)]


async def test_a_cooperative_member_keeps_its_remaining_partitions(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 3)
    first = await join(topic, partition_assignment_strategy=("cooperative-sticky",))
    await until(lambda: settled(first), "the first")
    second = await join(topic, partition_assignment_strategy=("cooperative-sticky",))
    await until(lambda: settled(first, second) and second.owned, "both")
    assert shares(first, second) == [1, 2]
    assert len(first.answers("revoked")) == 1
    assert {one.partition for one in second.owned} == set(first.answers("revoked"))
    assert len(first.answers("assigned")) == 3
    assert not first.answers("lost")


# ---- coming back and leaving


async def test_a_static_member_returns_without_a_rebalance(bootstrap: str, group: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    stays = await join(topic, group_instance_id="stays")
    async with readers(bootstrap, group) as elsewhere:
        goes = await elsewhere(topic, group_instance_id="goes")
        await until(lambda: settled(stays, goes) and shares(stays, goes) == [1, 1], "both")
        had, generation = set(goes.owned), goes.member.group.generation_id
    back = await join(topic, group_instance_id="goes")
    await until(lambda: settled(back), "the one that came back")
    assert (back.owned, back.member.group.generation_id) == (had, generation)
    assert stays.member.group.generation_id == generation


async def test_a_second_member_of_an_instance_fences_the_first_for_good(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 1)
    first = await join(topic, group_instance_id="same", polls=False)
    await first.member.poll()
    second = await join(topic, group_instance_id="same")
    await until(lambda: settled(second), "the second")
    await until(lambda: not first.member.is_settled, "the first to notice")
    for _ in range(2):
        with pytest.raises(FencedInstance, match="same"):
            await first.member.poll()
    await until(lambda: settled(second), "the second to be left alone")


async def test_a_close_is_seen_at_once(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    first = await join(topic, session_timeout_ms=45_000)
    second = await join(topic, session_timeout_ms=45_000)
    await until(lambda: settled(first, second) and shares(first, second) == [1, 1], "both")
    await first.close()
    assert first.member.state == "CLOSED"
    assert first.answers("revoked")
    assert not first.answers("lost")
    await until(lambda: shares(second) == [2], "the second to have all")
    with pytest.raises(IllegalUse):
        await first.member.poll()


async def test_a_close_while_the_coordinator_holds_the_join_is_seen_at_once(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    idle = await join(topic, polls=False)
    await idle.member.poll()  # and no more: the rebalance waits for it
    joins = await join(topic)
    await until(lambda: joins.member.state == "JOINING" and not idle.member.is_settled, "a JoinGroup that is held")
    async with asyncio.timeout(PATIENCE_S / 2):
        await joins.close()
        await idle.member.poll()
    assert shares(idle) == [2]


async def test_a_member_without_polls_leaves_and_rejoins(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    slow = await join(topic, polls=False, max_poll_interval_ms=600)
    await slow.member.poll()
    other = await join(topic)
    await until(lambda: not slow.member.is_settled, "the rebalance")
    await slow.member.poll()
    await until(lambda: settled(other, slow) and shares(other, slow) == [1, 1], "both")
    slow.member.returning()
    await until(lambda: shares(other) == [2], "the other one to have all")
    assert slow.member.state == "DOWN"
    assert slow.member.group.generation_id == -1
    assert not slow.answers("lost")
    await slow.member.poll()
    assert slow.answers("lost") == [one.partition for _, partitions in slow.events[-2:-1] for one in partitions]
    await until(lambda: settled(other, slow) and shares(other, slow) == [1, 1], "both again")


# ---- topics that change (R5, R14)


async def test_partitions_that_are_added_are_assigned(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    members = [await join(topic, metadata_max_age_ms=100) for _ in range(2)]
    await until(lambda: settled(*members) and shares(*members) == [1, 1], "both")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(PATIENCE_S)
    await until(lambda: settled(*members) and shares(*members) == [2, 2], "the new partitions")


async def test_a_pattern_follows_created_and_deleted_topics(bootstrap: str, join: Join) -> None:
    prefix = unique("pattern")
    first = create_topic(bootstrap, 1, name=f"{prefix}-1")
    reader = await join(re.compile(f"{prefix}-.*"), metadata_max_age_ms=100)
    await until(lambda: {one.topic for one in reader.owned} == {first}, "the first topic")
    second = create_topic(bootstrap, 1, name=f"{prefix}-2")
    await until(lambda: {one.topic for one in reader.owned} == {first, second}, "the second topic")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([first])[first].result(PATIENCE_S)
    await until(lambda: {one.topic for one in reader.owned} == {second}, "the first to be gone")


async def test_a_topic_created_after_the_subscription_is_assigned(bootstrap: str, join: Join, topic: str) -> None:
    reader = await join(topic, metadata_max_age_ms=100)
    await until(lambda: settled(reader), "a membership with nothing to read")
    assert reader.owned == set()
    create_topic(bootstrap, 2, name=topic)
    await until(lambda: shares(reader) == [2], "its partitions")


async def test_the_leader_assigns_topics_that_it_does_not_read(bootstrap: str, join: Join) -> None:
    mine, theirs = create_topic(bootstrap, 1), create_topic(bootstrap, 2)
    leader = await join(mine)
    await until(lambda: settled(leader), "the leader")
    other = await join(theirs, metadata_max_age_ms=100)
    await until(lambda: settled(leader, other) and shares(leader, other) == [1, 2], "the other's topic")
    assert {one.topic for one in leader.owned} == {mine}
    assert {one.topic for one in other.owned} == {theirs}


async def test_a_subscription_that_changes_is_joined_with(bootstrap: str, join: Join) -> None:
    one, two = create_topic(bootstrap, 1), create_topic(bootstrap, 1)
    reader = await join(one, partition_assignment_strategy=("cooperative-sticky",))
    await until(lambda: settled(reader), "the first topic")
    reader.member.subscribe(frozenset({one, two}))
    await until(lambda: settled(reader) and shares(reader) == [2], "both topics")
    assert not reader.answers("revoked")
    reader.member.subscribe(frozenset({two}))
    await until(lambda: settled(reader) and {one.topic for one in reader.owned} == {two}, "the second topic alone")


# ---- refusals


async def test_members_without_a_common_assignor_get_an_error(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 1)
    first = await join(topic, partition_assignment_strategy=("range",))
    await until(lambda: settled(first), "the first")
    second = await join(topic, polls=False, partition_assignment_strategy=("roundrobin",))
    with pytest.raises(AssignmentFailed, match="partition_assignment_strategy"):
        await second.member.poll()
    assert settled(first)


async def test_an_invalid_session_timeout_raises_with_the_setting(bootstrap: str, join: Join) -> None:
    reader = await join(create_topic(bootstrap, 1), polls=False, session_timeout_ms=2_000_000)
    with pytest.raises(BrokerError, match=r"session_timeout_ms is 2000000") as refused:
        await reader.member.poll()
    assert refused.value.code.name == "INVALID_SESSION_TIMEOUT"


# ---- cancellation


async def test_a_poll_that_is_cancelled_anywhere_loses_nothing(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    first = await join(topic, polls=False)
    second = await join(topic, polls=False)
    members = (first, second)
    patience = 0
    async with asyncio.timeout(PATIENCE_S):
        while not (settled(*members) and shares(*members) == [1, 1]):
            patience = min(patience + 1, 50)
            for reader in members:
                polling = asyncio.create_task(reader.member.poll())
                for _ in range(patience):  # one turn of the loop more each time
                    await asyncio.sleep(0)
                polling.cancel()
                with suppress(asyncio.CancelledError):
                    await polling
    assert all_owned(*members) == [TopicPartition(topic, 0), TopicPartition(topic, 1)]


async def test_a_close_that_is_cancelled_leaves_nothing_behind(bootstrap: str, join: Join) -> None:
    reader = await join(create_topic(bootstrap, 1), polls=False)
    await reader.member.poll()
    never = asyncio.Event()
    closing = asyncio.create_task(reader.member.close("ends", before_leaving=never.wait, timeout_ms=60_000))
    await until(lambda: reader.member.state == "LEAVING", "the last commit")
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert reader.member.state == "CLOSED"
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("rota-group")]


async def test_a_callback_that_hangs_does_not_keep_a_member_from_leaving(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 1)
    hangs = await join(topic, polls=False)
    await hangs.member.poll()
    await hangs.member.close("ends", before_leaving=asyncio.Event().wait, timeout_ms=50)
    other = await join(topic)
    await until(lambda: shares(other) == [1], "the other one, long before the session of the first ran out")

"""Members behind the fault proxy: coordinators that refuse, close connections, stop answering, move, stop and start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.client.member_kit import Join, Reader, all_owned, readers, settled, shares, until
from tests.interop.kit import create_topic

from rota.client.types import TopicPartition

OFFSET_FETCH, FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC = 9, 10, 11, 12, 13, 14
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "heartbeat_interval_ms": 30,
}
LOAD_IN_PROGRESS, NOT_AVAILABLE, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING = (
    14,
    15,
    16,
    22,
    25,
    27,
)


@pytest.fixture
async def join(proxy: FaultProxy, group: str) -> AsyncIterator[Join]:
    async with readers(proxy.bootstrap, group, **QUICK) as join:
        yield join


def once(proxy: FaultProxy, api: int, fault: str | int) -> Any:
    """What goes wrong with one request of that API."""
    match fault:
        case "closes":
            return proxy.close(api)
        case "closes after":
            return proxy.close(api, after=True)
        case "cuts":
            return proxy.cut(api)
        case int(code):
            return proxy.refuse(api, code)


# ---- each request, each fault


@pytest.mark.parametrize(
    ("api", "fault"),
    [
        *((api, fault) for api in (FIND_COORDINATOR, JOIN, SYNC) for fault in ("closes", "closes after", "cuts")),
        *((FIND_COORDINATOR, code) for code in (LOAD_IN_PROGRESS, NOT_AVAILABLE)),
        *((JOIN, code) for code in (LOAD_IN_PROGRESS, NOT_AVAILABLE, NOT_COORDINATOR, UNKNOWN_MEMBER, REBALANCING)),
        *((SYNC, code) for code in (NOT_AVAILABLE, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING)),
    ],
)
async def test_a_member_joins_despite_any_single_fault(
    bootstrap: str, proxy: FaultProxy, join: Join, api: int, fault: str | int
) -> None:
    topic = create_topic(bootstrap, 2)
    wrong = once(proxy, api, fault)
    # a coordinator that has lost a member waits for it to come back, as long as its rebalance may take
    reader = await join(topic, max_poll_interval_ms=500, session_timeout_ms=6_000)
    await wrong.happened()
    await until(lambda: settled(reader) and shares(reader) == [2], "a membership")


@pytest.mark.parametrize("fault", ["closes", "closes after", "cuts", LOAD_IN_PROGRESS, NOT_AVAILABLE, NOT_COORDINATOR])
async def test_a_heartbeat_that_fails_costs_no_partition(
    bootstrap: str, proxy: FaultProxy, join: Join, fault: str | int
) -> None:
    reader = await member_of_two(bootstrap, join)
    generation, wrong = reader.member.group.generation_id, once(proxy, HEARTBEAT, fault)
    await wrong.happened()
    heartbeats = proxy.request_count(HEARTBEAT)
    await until(lambda: settled(reader) and proxy.request_count(HEARTBEAT) > heartbeats + 2, "heartbeats again")
    assert (reader.answers("lost"), reader.answers("revoked")) == ([], [])
    assert reader.member.group.generation_id == generation


@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER])
async def test_a_removed_member_loses_its_partitions_and_rejoins(
    bootstrap: str, proxy: FaultProxy, join: Join, code: int
) -> None:
    reader = await member_of_two(bootstrap, join)
    proxy.refuse(HEARTBEAT, code)
    await until(lambda: reader.answers("lost") == [0, 1] and settled(reader) and shares(reader) == [2], "to be back")
    assert reader.answers("revoked") == []


async def member_of_two(bootstrap: str, join: Join, **settings: Any) -> Reader:
    reader = await join(create_topic(bootstrap, 2), max_poll_interval_ms=500, session_timeout_ms=6_000, **settings)
    await until(lambda: settled(reader) and shares(reader) == [2], "a membership")
    reader.poll_again_every(0.1)
    return reader


# ---- coordinators


async def test_a_coordinator_that_moves_is_followed_without_a_rebalance(
    bootstrap: str, proxy: FaultProxy, join: Join, group: str
) -> None:
    reader = await member_of_two(bootstrap, join)
    generation = reader.member.group.generation_id
    proxy.coordinate(group, 1)
    await until(lambda: proxy.request_count(HEARTBEAT, 1) > 2, "heartbeats to the new coordinator")
    await until(lambda: settled(reader), "to be settled")
    assert (reader.member.group.generation_id, reader.events[1:]) == (generation, [])


async def test_a_member_reads_on_while_its_coordinator_is_away(
    bootstrap: str, proxy: FaultProxy, join: Join, group: str
) -> None:
    reader = await member_of_two(bootstrap, join)
    coordinator = proxy.coordinator(group)
    await proxy.stop_brokers(coordinator)
    await until(lambda: reader.member.state == "REDISCOVERING", "the loss to be seen")
    await reader.member.poll()
    assert shares(reader) == [2]
    await proxy.start_brokers(coordinator)
    await until(lambda: settled(reader), "to be back")
    assert reader.events[1:] == []


async def test_an_unresponsive_coordinator_is_looked_up_again(
    bootstrap: str, proxy: FaultProxy, join: Join, group: str
) -> None:
    reader = await join(create_topic(bootstrap, 2), session_timeout_ms=6_000, request_timeout_ms=100)
    await until(lambda: settled(reader) and shares(reader) == [2], "a membership")
    proxy.freeze(proxy.coordinator(group))
    await until(lambda: reader.member.state == "REDISCOVERING", "the silence to be noticed")
    proxy.thaw()
    await until(lambda: settled(reader), "to be back")
    assert reader.events[1:] == []


async def test_a_leave_that_gets_no_answer_does_not_hold_up_the_close(
    bootstrap: str, proxy: FaultProxy, join: Join
) -> None:
    reader = await member_of_two(bootstrap, join)
    proxy.close(LEAVE)
    await reader.close()
    assert reader.member.state == "CLOSED"
    assert reader.answers("revoked") == [0, 1]


async def test_two_members_become_stable_while_every_tenth_response_is_lost(
    bootstrap: str, proxy: FaultProxy, join: Join
) -> None:
    topic = create_topic(bootstrap, 3)
    count = 0

    def tenth(_: object) -> bool:
        nonlocal count
        count += 1
        return count % 10 == 0

    for api in (FIND_COORDINATOR, JOIN, SYNC, HEARTBEAT):
        proxy.close(api, after=True, times=None, when=tenth)
    members = [
        await join(
            topic,
            partition_assignment_strategy=("cooperative-sticky",),
            max_poll_interval_ms=500,
            session_timeout_ms=6_000,
        )
        for _ in range(2)
    ]
    for reader in members:
        reader.poll_again_every(0.1)
    await until(lambda: settled(*members) and shares(*members) == [1, 2], "both members")
    assert all_owned(*members) == [TopicPartition(topic, n) for n in range(3)]

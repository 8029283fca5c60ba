"""The shell of a membership, with a coordinator whose answers the test writes: real sockets, real timers."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import re
from collections.abc import AsyncIterator

import pytest
from tests.unit.client.network.scripted import CLOSE, Scripted, eventually

from rota.client.config import ConsumerConfig
from rota.client.errors import BrokerError, FencedInstance, IllegalUse, KafkaError
from rota.client.group.assignors.strategies import resolve
from rota.client.group.effects import Partitions
from rota.client.group.membership import Membership
from rota.client.network.cluster import Cluster
from rota.client.types import GroupMetadata, TopicPartition
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


class User:
    """Hooks that keep what they were told, and may hang or raise."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Partitions]] = []
        self.hold: asyncio.Event | None = None
        self.hold_at = ""  # the only callback that waits for `hold`; "": each
        self.error: Exception | None = None
        self.member: Membership | None = None
        self.woken = 0

    async def before_rejoin(self) -> None:
        await self.answers("before_rejoin", ())

    async def revoked(self, partitions: Partitions) -> None:
        await self.answers("revoked", partitions)

    async def lost(self, partitions: Partitions) -> None:
        await self.answers("lost", partitions)

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        await self.answers("assigned", added)

    async def answers(self, what: str, partitions: Partitions) -> None:
        self.events.append((what, partitions))
        if self.hold is not None and self.hold_at in ("", what):
            await self.hold.wait()
        if self.error is not None:
            raise self.error

    def wake(self) -> None:
        self.woken += 1


class ScriptedCoordinator:
    """A coordinator that makes a new generation of one member with each JoinGroup."""

    def __init__(self, broker: Scripted) -> None:
        self.broker, self.generation, self.heartbeat_code = broker, 0, 0
        self.partitions = 2
        broker.on(MetadataRequest, self._metadata)
        broker.on(FindCoordinatorRequest, self._found)
        broker.on(JoinGroupRequest, self._join)
        broker.on(SyncGroupRequest, lambda request: SyncGroupResponse(assignment=request.assignments[0].assignment))
        broker.on(HeartbeatRequest, lambda _: HeartbeatResponse(error_code=self.heartbeat_code))
        broker.on(LeaveGroupRequest, lambda _: LeaveGroupResponse())

    def _metadata(self, _: MetadataRequest) -> object:
        nodes = (self.broker.node,)
        partitions = tuple(
            MetadataResponsePartition(
                partition_index=n, leader_id=self.broker.node, replica_nodes=nodes, isr_nodes=nodes
            )
            for n in range(self.partitions)
        )
        return self.broker.metadata(MetadataResponseTopic(name="t", partitions=partitions))

    def _found(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        found = Coordinator(key="g", node_id=self.broker.node, host="127.0.0.1", port=self.broker.port)
        return FindCoordinatorResponse(coordinators=(found,))

    def _join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        self.generation += 1
        protocol = request.protocols[0]
        me = JoinGroupResponseMember(member_id="a", metadata=protocol.metadata)
        return JoinGroupResponse(
            generation_id=self.generation, protocol_name=protocol.name, leader="a", member_id="a", members=(me,)
        )

    def requests(self, kind: type) -> list[object]:
        return [request for request in self.broker.requests if isinstance(request, kind)]


@pytest.fixture
async def broker() -> AsyncIterator[Scripted]:
    async with Scripted() as broker:
        yield broker


@pytest.fixture
def coordinator(broker: Scripted) -> ScriptedCoordinator:
    return ScriptedCoordinator(broker)


class Clients:
    """A cluster and its members; all are closed in the end."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.clusters: list[Cluster] = []
        self.members: list[Membership] = []

    async def member(self, *, subscribed: bool = True, **settings: object) -> tuple[Membership, User]:
        given = {"heartbeat_interval_ms": 20, "session_timeout_ms": 5_000, "retry_backoff_ms": 5}
        config = ConsumerConfig(bootstrap_servers=self.address, group_id="g", **{**given, **settings})
        cluster = Cluster(config)
        await cluster.start()
        self.clusters.append(cluster)
        user = User()
        user.member = Membership(cluster, config, resolve("range"), user, wake=user.wake)
        self.members.append(user.member)
        if subscribed:
            user.member.subscribe(frozenset({"t"}))
        return user.member, user


@pytest.fixture
async def clients(coordinator: ScriptedCoordinator) -> AsyncIterator[Clients]:
    clients = Clients(coordinator.broker.address)
    yield clients
    for member in clients.members:
        await member.close("the test is over", before_leaving=nothing, timeout_ms=1_000)
    for cluster in clients.clusters:
        await cluster.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("rota-group")]


async def nothing() -> None:
    pass


# ---- poll


async def test_a_poll_brings_a_membership(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    assert (member.state, member.is_settled, member.group.generation_id) == ("DOWN", False, -1)
    await member.poll()
    assert (member.state, member.is_settled, member.group.generation_id) == ("STABLE", True, 1)
    assert member.group.member_id == "a"
    assert user.events == [("assigned", (ZERO, ONE))]
    await member.poll()
    assert len(coordinator.requests(JoinGroupRequest)) == 1


async def test_without_a_subscription_a_poll_returns(clients: Clients) -> None:
    member, user = await clients.member(subscribed=False)
    await member.poll()
    assert user.events == []


async def test_heartbeats_go_on_while_a_callback_hangs(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    user.hold = asyncio.Event()
    polling = asyncio.create_task(member.poll())
    await eventually(lambda: len(coordinator.requests(HeartbeatRequest)) > 3)
    assert not polling.done()
    user.hold.set()
    await polling


async def test_a_rebalance_waits_for_the_next_poll(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    await member.poll()
    member.returning()
    coordinator.heartbeat_code = 27
    await eventually(lambda: user.woken)
    heartbeats = len(coordinator.requests(HeartbeatRequest))
    await eventually(lambda: len(coordinator.requests(HeartbeatRequest)) > heartbeats + 2)
    assert len(coordinator.requests(JoinGroupRequest)) == 1
    assert [what for what, _ in user.events] == ["assigned"]
    coordinator.heartbeat_code = 0
    await member.poll()
    assert [what for what, _ in user.events] == ["assigned", "before_rejoin", "revoked", "assigned"]
    assert member.group.generation_id == 2


async def test_a_cancelled_poll_lets_its_callback_end_and_begins_no_other(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member()
    await member.poll()
    coordinator.heartbeat_code = 27
    await eventually(lambda: not member.is_settled)
    coordinator.heartbeat_code = 0
    user.hold = asyncio.Event()
    polling = asyncio.create_task(member.poll())
    await eventually(lambda: user.events[-1][0] == "before_rejoin")
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling
    user.hold.set()
    heartbeats = len(coordinator.requests(HeartbeatRequest))
    await eventually(lambda: len(coordinator.requests(HeartbeatRequest)) > heartbeats + 2)
    assert user.events[-1][0] == "before_rejoin"
    await member.poll()
    assert [what for what, _ in user.events][-2:] == ["revoked", "assigned"]


@pytest.mark.parametrize("ends_by", ["timeout", "cancel"])
async def test_a_poll_does_not_end_before_the_callback_that_runs_inside_it(
    clients: Clients, coordinator: ScriptedCoordinator, ends_by: str
) -> None:
    member, user = await clients.member()
    user.hold = asyncio.Event()
    limit = asyncio.timeout(None)

    async def polls() -> None:
        async with limit:
            await member.poll()

    polling = asyncio.create_task(polls())
    await eventually(lambda: user.events and user.events[-1][0] == "assigned")
    if ends_by == "cancel":
        polling.cancel()
    else:
        limit.reschedule(asyncio.get_running_loop().time())
    heartbeats = len(coordinator.requests(HeartbeatRequest))
    await eventually(lambda: len(coordinator.requests(HeartbeatRequest)) > heartbeats + 2)
    assert not polling.done()
    user.hold.set()
    with pytest.raises(TimeoutError if ends_by == "timeout" else asyncio.CancelledError):
        await polling
    await member.poll()
    assert [what for what, _ in user.events] == ["assigned"]


async def test_a_poll_that_is_cancelled_twice_ends_at_once(clients: Clients) -> None:
    member, user = await clients.member()
    user.hold = asyncio.Event()
    polling = asyncio.create_task(member.poll())
    await eventually(lambda: user.events and user.events[-1][0] == "assigned")
    for _ in range(2):
        polling.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(polling, 5)
    user.hold.set()


async def test_after_the_callback_that_outlasts_a_poll_no_other_begins(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member()
    await member.poll()
    coordinator.heartbeat_code = 27
    await eventually(lambda: not member.is_settled)
    coordinator.heartbeat_code = 0

    def revoking() -> bool:
        return user.events[-1][0] == "revoked"

    user.hold_at = "revoked"
    user.hold = asyncio.Event()
    polling = asyncio.create_task(member.poll())
    await eventually(revoking)
    polling.cancel()
    await asyncio.sleep(0)
    user.hold.set()
    with pytest.raises(asyncio.CancelledError):
        await polling
    heartbeats = len(coordinator.requests(JoinGroupRequest))
    await eventually(lambda: len(coordinator.requests(JoinGroupRequest)) >= heartbeats)
    assert revoking()
    await member.poll()
    assert user.events[-1][0] == "assigned"


async def test_an_exception_of_a_callback_is_raised_by_poll(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    user.error = ValueError("the user's")
    with pytest.raises(ValueError, match="the user's"):
        await member.poll()
    user.error = None
    await member.poll()
    assert (member.state, user.events) == ("STABLE", [("assigned", (ZERO, ONE))])


async def test_a_cancelled_error_of_a_callback_becomes_illegal_use(clients: Clients) -> None:
    member, user = await clients.member()
    user.error = asyncio.CancelledError()  # type: ignore[assignment]
    with pytest.raises(IllegalUse, match="cancelled"):
        await member.poll()
    user.error = None


async def test_a_callback_may_not_poll_nor_close(clients: Clients) -> None:
    member, user = await clients.member()

    async def polls(what: str, partitions: Partitions) -> None:
        await member.poll()

    user.answers, answer = polls, user.answers  # type: ignore[method-assign]
    with pytest.raises(IllegalUse, match="callback"):
        await member.poll()
    user.answers = answer  # type: ignore[method-assign]


async def test_a_callback_runs_in_the_context_of_the_poll(clients: Clients) -> None:
    member, user = await clients.member()
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    async def sees(what: str, partitions: Partitions) -> None:
        seen.append(who.get())

    user.answers = sees  # type: ignore[method-assign]
    who.set("the poll")
    await member.poll()
    assert seen == ["the poll"]


async def test_a_fatal_join_error_is_raised_by_each_poll(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, _ = await clients.member()
    coordinator.broker.on(JoinGroupRequest, lambda _: JoinGroupResponse(error_code=81))
    for _ in range(2):
        with pytest.raises(BrokerError, match=re.escape("group.max.size")):
            await member.poll()
    coordinator.broker.on(JoinGroupRequest, coordinator._join)
    await member.poll()
    assert member.state == "STABLE"


async def test_an_error_between_polls_is_raised_by_the_next_poll(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member(group_instance_id="i")
    await member.poll()
    coordinator.heartbeat_code = 82
    await eventually(lambda: member.state == "DOWN")
    assert user.woken
    assert not member.is_settled
    for _ in range(3):
        with pytest.raises(FencedInstance):
            await member.poll()


# ---- coordinators and sessions


async def test_a_member_keeps_its_partitions_without_a_coordinator(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member()
    await member.poll()
    coordinator.broker.on(FindCoordinatorRequest, lambda _: FindCoordinatorResponse(coordinators=(_missing(),)))
    coordinator.broker.on(HeartbeatRequest, lambda _: CLOSE)
    await eventually(lambda: member.state == "REDISCOVERING")
    await member.poll()
    assert (member.group.generation_id, user.events) == (1, [("assigned", (ZERO, ONE))])
    coordinator.broker.on(FindCoordinatorRequest, coordinator._found)
    coordinator.broker.on(HeartbeatRequest, lambda _: HeartbeatResponse())
    await eventually(lambda: member.state == "STABLE")
    await member.poll()
    assert len(coordinator.requests(JoinGroupRequest)) == 1


def _missing() -> Coordinator:
    return Coordinator(key="g", error_code=15)


async def test_a_session_without_an_answer_ends_the_membership(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member(session_timeout_ms=150)
    await member.poll()
    coordinator.broker.on(HeartbeatRequest, lambda _: None)
    await eventually(lambda: member.state == "DOWN")
    assert (member.group.generation_id, member.last_group) == (-1, GroupMetadata("g", 1, "a"))
    coordinator.broker.on(HeartbeatRequest, lambda _: HeartbeatResponse())
    await member.poll()
    assert [what for what, _ in user.events] == ["assigned", "lost", "assigned"]


async def test_without_polls_the_member_leaves_with_a_warning(
    clients: Clients, coordinator: ScriptedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    member, user = await clients.member(max_poll_interval_ms=60)
    await member.poll()
    member.returning()
    with caplog.at_level(logging.WARNING, "rota.client.group"):
        await eventually(lambda: coordinator.requests(LeaveGroupRequest))
    (leave,) = coordinator.requests(LeaveGroupRequest)
    assert leave.members[0].reason == "consumer poll timeout has expired."
    assert "Raise max_poll_interval_ms, or lower max_poll_records" in caplog.text
    await member.poll()
    assert [what for what, _ in user.events] == ["assigned", "lost", "assigned"]


async def test_waiting_inside_poll_does_not_exceed_the_poll_interval(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, _ = await clients.member(max_poll_interval_ms=50)

    async def takes_its_time(request: JoinGroupRequest) -> JoinGroupResponse:
        ends = asyncio.Event()
        asyncio.get_running_loop().call_later(0.15, ends.set)
        await ends.wait()
        return coordinator._join(request)

    coordinator.broker.on(JoinGroupRequest, takes_its_time)
    member.returning()
    await member.poll()
    assert member.group.generation_id == 1
    assert not coordinator.requests(LeaveGroupRequest)


async def test_a_callback_that_hangs_does_not_keep_the_partitions(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member(max_poll_interval_ms=60)
    user.hold = asyncio.Event()
    polling = asyncio.create_task(member.poll())
    await eventually(lambda: coordinator.requests(LeaveGroupRequest))
    assert member.group.generation_id == -1
    user.hold.set()
    await polling
    assert [what for what, _ in user.events] == ["assigned", "lost", "assigned"]


# ---- topics


async def test_partitions_that_are_added_are_joined_for(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member(metadata_max_age_ms=20)
    await member.poll()
    coordinator.partitions = 3
    await eventually(lambda: not member.is_settled)
    await member.poll()
    assert user.events[-1] == ("assigned", (ZERO, ONE, TopicPartition("t", 2)))


async def test_a_commit_that_was_refused_is_a_reason_to_join(clients: Clients) -> None:
    member, user = await clients.member()
    await member.poll()
    member.commit_refused(25, generation=0)
    assert member.is_settled
    member.commit_refused(25, generation=1)
    assert member.group.generation_id == -1
    await member.poll()
    assert [what for what, _ in user.events] == ["assigned", "lost", "assigned"]


async def test_a_pattern_subscribes_to_the_existing_topics(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member(subscribed=False)
    member.subscribe(re.compile("[a-t]"))
    await member.poll()
    assert user.events == [("assigned", (ZERO, ONE))]


async def test_rejoin_starts_a_new_rebalance(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, _ = await clients.member()
    await member.poll()
    member.rejoin("rebalance enforced by user")
    assert not member.is_settled
    await member.poll()
    assert member.group.generation_id == 2
    assert coordinator.requests(JoinGroupRequest)[-1].reason == "rebalance enforced by user"


async def test_a_request_that_cannot_be_encoded_is_raised_by_poll(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, _ = await clients.member()
    member.subscribe(frozenset({"t" * (1 << 16)}))  # longer than the wire can say
    for _ in range(2):
        with pytest.raises(KafkaError, match="could not be sent"):
            await member.poll()


async def test_an_unexpected_exception_is_raised_by_poll(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    assert user.member is not None
    coordinator.broker.on(HeartbeatRequest, lambda _: HeartbeatResponse(error_code=25))

    def stumbles() -> None:
        raise ValueError("of the consumer")

    user.member._wake = stumbles
    await member.poll()
    await eventually(lambda: member.state == "DOWN")
    with pytest.raises(ValueError, match="of the consumer"):
        await member.poll()


# ---- close


async def test_a_close_commits_revokes_and_leaves(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    await member.poll()

    async def commits() -> None:
        user.events.append(("commits", ()))
        assert member.group.generation_id == 1

    await member.close("bye", before_leaving=commits, timeout_ms=1_000)
    assert [what for what, _ in user.events] == ["assigned", "commits", "revoked"]
    (leave,) = coordinator.requests(LeaveGroupRequest)
    assert (leave.members[0].member_id, leave.members[0].reason) == ("a", "bye")
    assert (member.state, member.is_settled) == ("CLOSED", True)
    with pytest.raises(IllegalUse, match="closed"):
        await member.poll()
    await member.close("again", before_leaving=commits, timeout_ms=1_000)
    member.returning()
    assert len(user.events) == 3


async def test_close_raises_callback_exceptions_after_it_has_left(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member()
    await member.poll()
    user.error = ValueError("the user's")
    with pytest.raises(ValueError, match="the user's"):
        await member.close("bye", before_leaving=nothing, timeout_ms=1_000)
    assert coordinator.requests(LeaveGroupRequest)
    assert member.state == "CLOSED"


async def test_close_ends_at_its_timeout_without_a_response(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, user = await clients.member()
    await member.poll()
    coordinator.broker.on(LeaveGroupRequest, lambda _: None)
    await member.close("bye", before_leaving=nothing, timeout_ms=50)
    assert member.state == "CLOSED"
    assert user.events[-1][0] == "revoked"


async def test_a_close_out_of_time_cancels_the_callback_and_leaves(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, user = await clients.member()
    await member.poll()
    await member.close("bye", before_leaving=asyncio.Event().wait, timeout_ms=50)
    assert member.state == "CLOSED"
    assert coordinator.requests(LeaveGroupRequest)
    assert user.events == [("assigned", (ZERO, ONE))]


async def test_a_close_without_time_still_leaves(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, _ = await clients.member()
    await member.poll()
    await member.close("bye", before_leaving=nothing, timeout_ms=0)
    assert (member.state, len(coordinator.requests(LeaveGroupRequest))) == ("CLOSED", 1)


async def test_a_close_while_the_coordinator_holds_the_join(clients: Clients, coordinator: ScriptedCoordinator) -> None:
    member, _ = await clients.member()
    coordinator.broker.on(JoinGroupRequest, lambda _: None)
    polling = asyncio.create_task(member.poll())
    await eventually(lambda: coordinator.requests(JoinGroupRequest))
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling
    await member.close("bye", before_leaving=nothing, timeout_ms=1_000)
    assert member.state == "CLOSED"


async def test_a_poll_that_waits_returns_when_the_member_is_closed(
    clients: Clients, coordinator: ScriptedCoordinator
) -> None:
    member, _ = await clients.member()
    coordinator.broker.on(JoinGroupRequest, lambda _: None)
    polling = asyncio.create_task(member.poll())
    await eventually(lambda: coordinator.requests(JoinGroupRequest))
    await member.close("bye", before_leaving=nothing, timeout_ms=1_000)
    await polling

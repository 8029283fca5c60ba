"""Members and the real coordinator of their group, in virtual time, over connections that delay and lose.

Everything is drawn from one random number generator: latencies, how long callbacks and users take, what is lost. Nobody
waits for real. `quiet` ends the faults; then everything has to come to rest.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from tests.property.member_world import metadata

from rota.client.config import ConsumerConfig
from rota.client.errors import Unreachable
from rota.client.group import effects as out
from rota.client.group import events
from rota.client.group.assignors.strategies import resolve
from rota.client.group.machine import step
from rota.client.group.state import new_member
from rota.client.group.states import MemberState
from rota.client.types import TopicPartition
from rota.coordinator.group import effects as result
from rota.coordinator.group import events as requests
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

TOPICS = {"t": 4, "u": 2}
LATENCY_MS, CALLBACK_MS, WORK_MS, SLOW_MS = 20, 60, 150, 3_000
SESSION_MS = 800


class Time:
    """What happens when."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, ms: int, does: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + ms, self._count, does))

    def run(self, for_ms: int, check: Callable[[], None]) -> None:
        ends = self.now_ms + for_ms
        while self._queue and self._queue[0][0] <= ends:
            self.now_ms, _, does = heapq.heappop(self._queue)
            does()
            check()
        self.now_ms = ends


class Coordinator:
    """The group itself, as the broker runs it."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self.group = Group("g", GroupConfig(initial_rebalance_delay_ms=0, session_min_ms=1))
        self._tokens = 0
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._timers: dict[str, int] = {}

    def send_request(self, request: Any, name: str, answer: Callable[[Any], None]) -> None:
        self._tokens += 1
        self._waiting[self._tokens] = answer
        self._perform(self.group.step(self._event(request, requests.Token(self._tokens), name), self.time.now_ms))

    def _event(self, request: Any, token: requests.Token, name: str) -> requests.Event:
        match request:
            case JoinGroupRequest():
                return requests.Join(
                    token=token,
                    member_id=requests.MemberId(request.member_id),
                    instance_id=None,
                    fresh_id=requests.MemberId(f"{name}-{token}"),
                    client_id=name,
                    client_host="/h",
                    session_ms=request.session_timeout_ms,
                    rebalance_ms=request.rebalance_timeout_ms,
                    protocol_type=request.protocol_type,
                    protocols=tuple(requests.Proto(item.name, item.metadata) for item in request.protocols),
                    requires_known_id=True,
                    can_skip_assignment=True,
                    reason=request.reason,
                )
            case SyncGroupRequest():
                return requests.Sync(
                    token=token,
                    member_id=requests.MemberId(request.member_id),
                    instance_id=None,
                    generation=request.generation_id,
                    protocol_type=request.protocol_type,
                    protocol=request.protocol_name,
                    assignments=tuple((requests.MemberId(a.member_id), a.assignment) for a in request.assignments),
                )
            case HeartbeatRequest():
                return requests.Heartbeat(token, requests.MemberId(request.member_id), None, request.generation_id)
            case LeaveGroupRequest():
                identities = tuple(
                    requests.LeavingMember(requests.MemberId(item.member_id), None, item.reason)
                    for item in request.members
                )
                return requests.Leave(token, identities)
        raise AssertionError(request)

    def _perform(self, effects: list[result.Effect]) -> None:
        for effect in effects:
            match effect:
                case result.Reply(token, body):
                    self._waiting.pop(token)(_response(body))
                case result.Arm(key, at_ms):
                    self._timers[key] = at_ms
                    self.time.after(at_ms - self.time.now_ms, lambda key=key, at_ms=at_ms: self._fire(key, at_ms))
                case result.Disarm(key):
                    self._timers.pop(key, None)

    def _fire(self, key: str, at_ms: int) -> None:
        if self._timers.get(key) == at_ms:
            del self._timers[key]
            self._perform(self.group.step(requests.TimerFired(key), self.time.now_ms))


def _response(body: result.Body) -> Any:
    match body:
        case result.Joined():
            return JoinGroupResponse(
                error_code=body.error,
                generation_id=body.generation,
                protocol_type=body.protocol_type,
                protocol_name=body.protocol,
                leader=body.leader,
                skip_assignment=body.skip_assignment,
                member_id=body.member_id,
                members=tuple(
                    JoinGroupResponseMember(member_id=item.member_id, metadata=item.metadata) for item in body.members
                ),
            )
        case result.Synced():
            return SyncGroupResponse(
                error_code=body.error,
                protocol_type=body.protocol_type,
                protocol_name=body.protocol,
                assignment=body.assignment,
            )
        case result.LeaveResult():
            return LeaveGroupResponse(error_code=body.error)
    return HeartbeatResponse(error_code=int(body))  # type: ignore[arg-type]


class Node:
    """One member: its machine, its timers, and a user who polls, works, and at times takes too long."""

    def __init__(self, world: Members, name: str, topics: frozenset[str]) -> None:
        self.world, self.name, self.time = world, name, world.time
        config = ConsumerConfig(
            bootstrap_servers="h:1",
            group_id="g",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=100,
            max_poll_interval_ms=1_000,
            retry_backoff_ms=10,
            retry_backoff_max_ms=100,
            request_timeout_ms=400,
        )
        self.m = new_member(config, resolve(world.strategy))
        self.dropped: set[int] = set()
        self.timers: dict[str, int] = {}
        self.polling = self.failed = False
        self.working = 0  # the turn of the user's work that is under way
        self.cut_until_ms = 0  # nothing goes there or back before
        self.last_received_ms = 0  # when the coordinator was last heard
        self.step(events.MetadataChanged(world.metadata))
        self.step(events.Subscribed(topics))
        self.poll()

    def step(self, event: events.Event) -> None:
        for effect in step(self.m, event, self.time.now_ms):
            self._perform(effect)
        if self.polling and (self.failed or not self.m.is_due):
            self.polling = self.failed = False
            self.step(events.PollEnded())
            self._work()

    def poll(self) -> None:
        if not self.polling:
            self.polling = True
            self.step(events.PollBegan())

    def _work(self) -> None:
        """The user has control, for a while."""
        self.step(events.PollReturned())
        self.working += 1
        turn, rng = self.working, self.world.rng
        slow = self.world.has_faults and rng.random() < 0.02
        takes = SLOW_MS if slow else rng.randrange(WORK_MS)
        self.time.after(takes, lambda: self.poll() if turn == self.working and self.m.closing is None else None)

    def close(self) -> None:
        self.polling = False
        self.step(events.Close("the consumer is being closed"))

    def _perform(self, effect: out.Effect) -> None:
        rng, later = self.world.rng, self.time.after
        match effect:
            case out.SendRequest():
                self._send_request(effect)
            case out.CancelRequest(ticket):
                self.dropped.add(ticket)
            case out.FindCoordinator():
                later(rng.randrange(LATENCY_MS), lambda: self.step(events.CoordinatorFound(1)))
            case out.RefreshMetadata(ticket):
                later(
                    rng.randrange(LATENCY_MS), lambda: self.step(events.MetadataRefreshed(ticket, self.world.metadata))
                )
            case out.Arm(key, at_ms):
                self.timers[key] = at_ms
                later(at_ms - self.time.now_ms, lambda: self._fire(key, at_ms))
            case out.Disarm(key):
                del self.timers[key]
            case out.RunHook(ticket):
                later(rng.randrange(CALLBACK_MS), lambda: self.step(events.HookDone(ticket)))
            case out.RaiseInPoll(error):
                raise AssertionError(f"{self.name} failed") from error

    def _fire(self, key: str, at_ms: int) -> None:
        if self.timers.get(key) == at_ms:
            del self.timers[key]
            self.step(events.TimerExpired(key))

    @property
    def is_cut(self) -> bool:
        return self.time.now_ms < self.cut_until_ms

    def _send_request(self, command: out.SendRequest) -> None:
        """There and back; lost on the way now and then, which the member hears of or not before its timeout."""
        rng, later, answered = self.world.rng, self.time.after, [False]

        def arrive(event: events.Event) -> None:
            if not answered[0] and command.ticket not in self.dropped:
                answered[0] = True
                self.last_received_ms = (
                    self.time.now_ms if isinstance(event, events.ResponseReceived) else self.last_received_ms
                )
                self.step(event)

        def reply(response: Any) -> None:
            if self.is_cut:
                return
            if not lost_back:
                later(rng.randrange(LATENCY_MS), lambda: arrive(events.ResponseReceived(command.ticket, response)))
            else:
                later(LATENCY_MS, lambda: arrive(events.RequestFailed(command.ticket, Unreachable("lost"))))

        lost_there, lost_back = (self.world.has_faults and rng.random() < 0.03 for _ in range(2))
        there = rng.randrange(LATENCY_MS)
        if lost_there:
            later(there, lambda: arrive(events.RequestFailed(command.ticket, Unreachable("lost"))))
        elif not self.is_cut:
            later(there, lambda: self.world.coordinator.send_request(command.request, self.name, reply))
        later(command.timeout_ms, lambda: arrive(events.RequestFailed(command.ticket, Unreachable("late"))))


class Members:
    """The whole of it."""

    def __init__(self, seed: int, strategy: str) -> None:
        self.rng = random.Random(seed)
        self.strategy = strategy
        self.time = Time()
        self.coordinator = Coordinator(self.time)
        self.metadata = metadata(TOPICS)
        self.has_faults = True
        self.nodes: list[Node] = []
        self.left: list[Node] = []
        self.names = 0

    def come(self) -> None:
        self.names += 1
        topics = self.rng.choice([frozenset({"t"}), frozenset({"t", "u"}), frozenset({"u"})])
        self.nodes.append(Node(self, f"n{self.names}", topics))

    def go(self) -> None:
        if self.nodes:
            node = self.nodes.pop(self.rng.randrange(len(self.nodes)))
            self.left.append(node)
            node.close()

    def grow(self) -> None:
        counts = {name: len(topic.partitions) for name, topic in self.metadata.topics.items()}
        counts[self.rng.choice(sorted(counts))] += 1
        self.metadata = metadata(counts)
        for node in self.nodes:
            self.time.after(self.rng.randrange(100), lambda node=node: node.step(events.MetadataChanged(self.metadata)))

    def cut(self) -> None:
        """One of them is alone for a while, without knowing."""
        if self.nodes:
            node = self.rng.choice(self.nodes)
            node.cut_until_ms = self.time.now_ms + self.rng.randrange(2 * SESSION_MS)

    def run(self, ms: int) -> None:
        self.time.run(ms, self.check)

    def check(self) -> None:
        """G1: of those whom the coordinator counts as members no two hold one partition. R12: who has not heard of it
        for a session is no member."""
        holders: dict[TopicPartition, Node] = {}
        present = self.coordinator.group.members.by_id
        for node in (*self.nodes, *self.left):
            if node.m.state in (MemberState.STABLE, MemberState.ASSIGNING, MemberState.REDISCOVERING):
                assert self.time.now_ms - node.last_received_ms <= SESSION_MS, node.name
            if node.m.generation >= 0 and node.m.member_id in present:
                for partition in node.m.owned:
                    other = holders.setdefault(partition, node)
                    assert other is node, f"{partition} at {other.name} and {node.name}"

    def quiet(self) -> None:
        """No more faults: everybody gets everything that is to be had, and it stays so."""
        self.has_faults = False
        self.run(10_000)
        subscribed = {topic for node in self.nodes for topic in node.m.topics}
        everything = {TopicPartition(topic, n) for topic in subscribed for n in self.metadata.partitions(topic) or ()}
        assert {item for node in self.nodes for item in node.m.owned} == everything
        for node in self.nodes:
            assert node.m.state is MemberState.STABLE
            assert node.m.generation == self.coordinator.group.generation
        assert all(node.m.state is MemberState.CLOSED and not node.timers for node in self.left)
        generation = self.coordinator.group.generation
        self.run(2_000)
        assert self.coordinator.group.generation == generation

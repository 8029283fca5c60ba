"""A shell around one membership, and a coordinator that may answer anything: it checks the laws as it goes.

What the machine asks for stays open until somebody answers it, in any order. `settle` is a coordinator that behaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rota.client.config import ConsumerConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.group import effects as out
from rota.client.group import events
from rota.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from rota.client.group.assignors.range import RangeAssignor
from rota.client.group.machine import step
from rota.client.group.state import new_member
from rota.client.group.states import MemberState
from rota.client.group.subscription import encoded_subscription, grouped
from rota.client.network.metadata import Metadata, TopicInfo
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.consumer_protocol import Assignment, decode_assignment, encode_assignment
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

SETTLED_IN = 60  # steps of a coordinator that behaves
S = MemberState


def metadata(counts: dict[str, int], *, internal: Iterable[str] = ()) -> Metadata:
    """Topics with so many partitions each."""
    topics = {}
    for name, count in counts.items():
        partitions = {n: PartitionInfo(name, n, 1, 0, (1,), (1,)) for n in range(count)}
        topics[name] = TopicInfo(name, b"", name in internal, partitions)
    return Metadata(topics=topics)


class World:
    """One membership, what it waits for, its timers, and what the user's callbacks were told."""

    def __init__(self, *, cooperative: bool, static: bool) -> None:
        config = ConsumerConfig(
            bootstrap_servers="h:1",
            group_id="g",
            group_instance_id="i" if static else None,
            session_timeout_ms=1_000,
            heartbeat_interval_ms=300,
            max_poll_interval_ms=5_000,
        )
        self.machine = new_member(config, [CooperativeStickyAssignor() if cooperative else RangeAssignor()])
        self.now_ms = 0
        self.open_requests: dict[int, out.SendRequest] = {}
        self.timers: dict[str, int] = {}
        self.is_finding = 0
        self.learning: list[int] = []
        self.hook: out.RunHook | None = None
        self.held: set[TopicPartition] = set()
        self.in_poll = False
        self.failures: list[BaseException] = []
        self.generations = 0
        self.left = 0
        self.metadata = metadata({"t": 3, "u": 2})

    # ---- stepping

    def step(self, event: events.Event) -> None:
        for effect in step(self.machine, event, self.now_ms):
            self.take(effect)
        self.check()

    def take(self, effect: out.Effect) -> None:
        match effect:
            case out.SendRequest():
                self.requests(effect)
            case out.CancelRequest(ticket):
                del self.open_requests[ticket]
            case out.FindCoordinator():
                self.is_finding += 1
            case out.RefreshMetadata(ticket):
                self.learning.append(ticket)
            case out.Arm(key, at_ms):
                assert at_ms >= self.now_ms
                self.timers[key] = at_ms
            case out.Disarm(key):
                del self.timers[key]
            case out.RunHook():
                self.run(effect)
            case out.RaiseInPoll(error):
                self.failures.append(error)
            case out.ForgetCoordinator() | out.FollowTopics() | out.Wake() | out.Note():
                pass

    def requests(self, send_request: out.SendRequest) -> None:
        """M3: what is asked names what is true now."""
        self.open_requests[send_request.ticket] = send_request
        assert send_request.node == self.machine.coordinator
        match send_request.request:
            case JoinGroupRequest(member_id=member):
                assert member == self.machine.member_id
            case SyncGroupRequest() | HeartbeatRequest():
                assert send_request.request.generation_id == self.machine.generation >= 0
                assert send_request.request.member_id == self.machine.member_id
            case LeaveGroupRequest(member_id=member):
                assert member
                assert not self.machine.is_static
                self.left += 1

    def run(self, run: out.RunHook) -> None:
        """M1 and M2."""
        assert self.hook is None
        assert self.in_poll or self.machine.closing is not None
        self.hook = run
        match run.hook:
            case out.Revoke(partitions) | out.Lose(partitions):
                assert partitions
                assert self.held.issuperset(partitions)
                assert (self.machine.generation < 0) <= isinstance(run.hook, out.Lose)
            case out.Assign(owned, added):
                assert not self.held & set(added)
                assert self.held | set(added) == set(owned)
                self.held = set(owned)
            case out.BeforeRejoin() | out.BeforeLeaving():
                pass

    def check(self) -> None:
        machine = self.machine
        kinds = [type(send_request.request) for send_request in self.open_requests.values()]
        assert kinds.count(HeartbeatRequest) <= 1
        assert kinds.count(JoinGroupRequest) + kinds.count(SyncGroupRequest) <= 1
        assert self.is_finding <= 1
        assert machine.owned == self.held
        if machine.state in (S.STABLE, S.ASSIGNING, S.REDISCOVERING):
            assert machine.generation >= 0
            assert "session" in self.timers
            assert "heartbeat" in self.timers or machine.coordinator is None
        if machine.state is S.STABLE:
            assert machine.coordinator is not None
        if machine.coordinator is None and machine.generation >= 0 and machine.state not in (S.LEAVING, S.CLOSED):
            assert self.is_finding or "retry" in self.timers
        if machine.state is S.CLOSED:
            assert not self.timers
            assert not self.open_requests or {
                type(send_request.request) for send_request in self.open_requests.values()
            } == {LeaveGroupRequest}

    # ---- what the user does

    def poll(self) -> None:
        self.in_poll = True
        self.step(events.PollBegan())
        self.look()

    def look(self) -> bool:
        """What a waiting `poll` does after each step. Whether it is over."""
        if self.in_poll and (self.failures or not self.machine.is_due):
            failed, self.failures = bool(self.failures), []
            if failed:
                self.step(events.PollReturned())
            self.in_poll = False
            self.step(events.PollEnded())
        return not self.in_poll

    def cancel(self) -> None:
        self.in_poll = False
        self.step(events.PollReturned())
        self.step(events.PollEnded())

    # ---- answers

    def answer(self, ticket: int, response: Any) -> None:
        del self.open_requests[ticket]
        self.step(events.ResponseReceived(ticket, response))
        self.look()

    def lose(self, ticket: int, error: KafkaError | None = None) -> None:
        del self.open_requests[ticket]
        self.step(events.RequestFailed(ticket, error or Unreachable("gone")))
        self.look()

    def found(self, error: KafkaError | None = None) -> None:
        self.is_finding -= 1
        self.step(events.CoordinatorFound(1) if error is None else events.CoordinatorNotFound(error))
        self.look()

    def learned(self) -> None:
        self.step(events.MetadataRefreshed(self.learning.pop(0), self.metadata))
        self.look()

    def hook_done(self, error: BaseException | None = None) -> None:
        run, self.hook = self.hook, None
        assert run is not None
        if isinstance(run.hook, out.Revoke | out.Lose):
            self.held -= set(run.hook.partitions)
        self.step(events.HookDone(run.ticket, error))
        self.look()

    def fire(self) -> None:
        """The next timer goes off."""
        key = min(self.timers, key=lambda key: self.timers[key])
        self.now_ms = max(self.now_ms, self.timers.pop(key))
        self.step(events.TimerExpired(key))
        self.look()

    # ---- a coordinator

    def good(self, send_request: out.SendRequest, *, leads: bool = True, given: Iterable[TopicPartition] = ()) -> Any:
        """An answer without error. `given`: what another leader gives us."""
        match send_request.request:
            case JoinGroupRequest():
                return self._joined(send_request.request, leads)
            case SyncGroupRequest():
                mine = [
                    item.assignment
                    for item in send_request.request.assignments
                    if item.member_id == send_request.request.member_id
                ]
                raw = mine[0] if mine else encode_assignment(Assignment(assigned_partitions=grouped(given)))
                decode_assignment(raw)
                return SyncGroupResponse(
                    assignment=raw, protocol_type="consumer", protocol_name=self.chosen(send_request)
                )
            case HeartbeatRequest():
                return HeartbeatResponse()
            case _:
                return LeaveGroupResponse()

    def chosen(self, send_request: out.SendRequest) -> str:
        return str(send_request.request.protocol_name)

    def _joined(self, request: JoinGroupRequest, leads: bool) -> JoinGroupResponse:
        self.generations += 1
        member = request.member_id or f"m{self.generations}"
        protocol = request.protocols[0]
        other = JoinGroupResponseMember(member_id="other", metadata=encoded_subscription(("t", "v"), None, (), -1, ""))
        me = JoinGroupResponseMember(
            member_id=member, group_instance_id=request.group_instance_id, metadata=protocol.metadata
        )
        return JoinGroupResponse(
            generation_id=self.generations,
            protocol_type="consumer",
            protocol_name=protocol.name,
            leader=member if leads else "other",
            member_id=member,
            members=(me, other) if leads else (),
        )

    def settle(self) -> None:
        """Everything is answered well from now on: whatever was going on, it ends."""
        for _ in range(SETTLED_IN):
            if self.hook is not None:
                self.hook_done()
            elif self.is_finding:
                self.found()
            elif self.learning:
                self.learned()
            elif self.open_requests:
                ticket, send_request = next(iter(self.open_requests.items()))
                self.answer(ticket, self.good(send_request, leads=True))
            elif "retry" in self.timers:
                self.now_ms = max(self.now_ms, self.timers.pop("retry"))
                self.step(events.TimerExpired("retry"))
                self.look()
            else:
                return
        raise AssertionError(f"not settled in {SETTLED_IN} steps: {self.machine.state}")

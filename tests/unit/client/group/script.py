"""A test that reads like a conversation: `>>` goes in, `<<` must come out next; nothing may be left over.

What comes out is shown as tuples, ("join", member, reason) and so on, see `shown`; answers find their requests by
themselves. Notes are kept apart, in `notes`, so that only the tests which are about them have to name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rota.client.config import ConsumerConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.group import effects as out
from rota.client.group import events
from rota.client.group.assignors.strategies import resolve
from rota.client.group.machine import step
from rota.client.group.state import new_member
from rota.client.group.states import MemberState
from rota.client.group.subscription import encoded_subscription, grouped
from rota.client.network.metadata import Metadata, TopicInfo
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.consumer_protocol import Assignment, encode_assignment
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

GROUP, NODE = "g", 1
SESSION_MS, HEARTBEAT_MS, POLL_MS, BACKOFF_MS = 10_000, 3_000, 60_000, 100
CONFIG = {
    "bootstrap_servers": "h:1",
    "group_id": GROUP,
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": HEARTBEAT_MS,
    "max_poll_interval_ms": POLL_MS,
}
KINDS = {
    JoinGroupRequest: "join",
    SyncGroupRequest: "sync",
    HeartbeatRequest: "heartbeat",
    LeaveGroupRequest: "leave",
}
Shown = tuple[object, ...]
S = MemberState


@dataclass
class Reply:
    """The answer to the request of that kind which waits."""

    kind: str
    response: Any


@dataclass
class Broken:
    """No answer to it."""

    kind: str
    error: KafkaError


@dataclass
class Done:
    """The hook that runs has ended."""

    error: BaseException | None = None


@dataclass
class Read:
    """Metadata was read, as was asked for."""

    metadata: Metadata


class Script:
    """A conversation with one membership. Starts at time 0, subscribed, with nothing polled."""

    def __init__(
        self,
        *topics: str,
        pattern: str = "",
        strategy: str = "range",
        counts: dict[str, int] | None = None,
        **settings: object,
    ) -> None:
        self.m = new_member(ConsumerConfig(**{**CONFIG, **settings}), resolve(strategy))
        self.now_ms = 0
        self.out: list[Shown] = []
        self.notes: list[out.Note] = []
        self.requests: dict[str, out.SendRequest] = {}
        self.ran: out.RunHook | None = None
        self.hook_ends_ms: int | None = None  # kept apart, as notes are
        self.learning = 0
        self.failure: BaseException | None = None
        self.does(events.MetadataChanged(metadata(**(counts or {"t": 2}))))
        self.does(events.Subscribed(re.compile(pattern) if pattern else frozenset(topics or ("t",))))
        self.notes.clear()

    def __rshift__(self, event: events.Event | Reply | Broken | Done | Read) -> Script:
        self._nothing_left()
        self.out = [
            shown
            for effect in step(self.m, self._event(event), self.now_ms)
            if (shown := self._take(effect)) is not None
        ]
        return self

    def __lshift__(self, effect: Shown) -> Script:
        assert self.out, f"expected {effect}, but nothing more came out"
        assert self.out.pop(0) == effect
        return self

    def __bool__(self) -> bool:
        self._nothing_left()
        return True

    def after(self, ms: int) -> Script:
        self.now_ms += ms
        return self

    def does(self, *happened: events.Event | Reply | Broken | Done | Read) -> Script:
        """Step, and let everything pass that comes out: it is another test's subject."""
        for event in happened:
            self.out.clear()
            _ = self >> event
        self.out.clear()
        return self

    def includes(self, *effects: Shown) -> Script:
        """These came out just now, among other things."""
        for effect in effects:
            assert effect in self.out, self.out
        self.out.clear()
        return self

    def lacks(self, *kinds: str) -> Script:
        """Nothing of these kinds came out just now."""
        assert not [effect for effect in self.out if effect[0] in kinds], self.out
        self.out.clear()
        return self

    def is_in(self, state: MemberState, generation: int) -> Script:
        assert (self.m.state, self.m.generation) == (state, generation)
        return self

    def emitted(self, event: str, **fields: object) -> Script:
        """A note of that text came since the last look, with (at least) these fields."""
        found, self.notes = self.notes, []
        assert any(note.event == event and fields.items() <= note.fields.items() for note in found), found
        return self

    def request(self, kind: str) -> Any:
        """What was asked last of that kind."""
        return self.requests[kind].request

    def _event(self, event: events.Event | Reply | Broken | Done | Read) -> events.Event:
        match event:
            case Reply(kind, response):
                return events.ResponseReceived(self.requests[kind].ticket, response)
            case Broken(kind, error):
                return events.RequestFailed(self.requests[kind].ticket, error)
            case Done(error):
                assert self.ran is not None
                return events.HookDone(self.ran.ticket, error)
            case Read(known):
                return events.MetadataRefreshed(self.learning, known)
        return event

    def _take(self, effect: out.Effect) -> Shown | None:
        match effect:
            case out.Note():
                self.notes.append(effect)
                return None
            case out.SendRequest(request=request):
                self.requests[KINDS[type(request)]] = effect
            case out.RunHook():
                self.ran = effect
            case out.RefreshMetadata(ticket):
                self.learning = ticket
            case out.RaiseInPoll(error):
                self.failure = error
            case out.Arm("hook", at_ms):
                self.hook_ends_ms = at_ms
                return None
            case out.Disarm("hook"):
                self.hook_ends_ms = None
                return None
            case out.CancelRequest(ticket):
                return (
                    "drop",
                    next(kind for kind, send_request in self.requests.items() if send_request.ticket == ticket),
                )
        return shown(effect)

    def _nothing_left(self) -> None:
        assert not self.out, f"unexpected: {self.out}"


def shown(effect: out.Effect) -> Shown:
    """An effect as tests name it."""
    match effect:
        case out.SendRequest(request=JoinGroupRequest() as request):
            return ("join", request.member_id, request.reason)
        case out.SendRequest(request=SyncGroupRequest() as request):
            return ("sync", request.generation_id, tuple(item.member_id for item in request.assignments))
        case out.SendRequest(request=HeartbeatRequest() as request):
            return ("heartbeat", request.generation_id)
        case out.SendRequest(request=LeaveGroupRequest() as request):
            return ("leave", request.members[0].member_id, request.members[0].reason)
        case out.RunHook(hook=out.Revoke(partitions)):
            return ("revoke", *map(str, partitions))
        case out.RunHook(hook=out.Lose(partitions)):
            return ("lose", *map(str, partitions))
        case out.RunHook(hook=out.Assign(owned, added)):
            return ("assign", tuple(map(str, owned)), tuple(map(str, added)))
        case out.RunHook(hook=hook):
            return ("before_rejoin",) if isinstance(hook, out.BeforeRejoin) else ("before_leaving",)
        case out.Arm(key, at_ms):
            return ("arm", key, at_ms)
        case out.Disarm(key):
            return ("disarm", key)
        case out.ForgetCoordinator(node):
            return ("forget", node)
        case out.FollowTopics(topics):
            return ("want", None if topics is None else tuple(sorted(topics)))
        case out.RaiseInPoll(error):
            return ("fail", type(error).__name__)
        case out.Note(event=event):
            return ("note", event)
    return (re.sub(r"(?<!^)(?=[A-Z])", " ", type(effect).__name__).lower(),)


def metadata(**counts: int) -> Metadata:
    """Topics with so many partitions each."""
    topics = {}
    for name, count in counts.items():
        partitions = {n: PartitionInfo(name, n, NODE, 0, (NODE,), (NODE,)) for n in range(count)}
        topics[name] = TopicInfo(name, b"", name.startswith("__"), partitions)
    return Metadata(topics=topics)


# ---- events

POLL, ENDED, RETURNING, FOUND = (
    events.PollBegan(),
    events.PollEnded(),
    events.PollReturned(),
    events.CoordinatorFound(NODE),
)


def fires(key: str) -> events.TimerExpired:
    return events.TimerExpired(key)


def subscribes(*topics: str) -> events.Subscribed:
    return events.Subscribed(frozenset(topics))


def knows(**counts: int) -> events.MetadataChanged:
    return events.MetadataChanged(metadata(**counts))


def reads(**counts: int) -> Read:
    return Read(metadata(**counts))


def join_refused(code: ErrorCode, member: str = "") -> Reply:
    return Reply("join", JoinGroupResponse(error_code=code, member_id=member))


def joined(
    generation: int,
    member: str = "a",
    *,
    leader: str = "other",
    others: dict[str, bytes] | None = None,
    protocol: str = "range",
    protocol_type: str | None = "consumer",
    skip: bool = False,
    topics: tuple[str, ...] = ("t",),
) -> Reply:
    """Told the generation; the leader also `others`: the subscriptions of other members."""
    members = {member: encoded_subscription(topics, None, (), -1, ""), **(others or {})} if leader == member else {}
    return Reply(
        "join",
        JoinGroupResponse(
            generation_id=generation,
            protocol_type=protocol_type,
            protocol_name=protocol,
            leader=leader,
            member_id=member,
            skip_assignment=skip,
            members=tuple(JoinGroupResponseMember(member_id=name, metadata=raw) for name, raw in members.items()),
        ),
    )


def sync_refused(code: ErrorCode) -> Reply:
    return Reply("sync", SyncGroupResponse(error_code=code))


def synced(*partitions: str, protocol: str | None = None, protocol_type: str | None = None) -> Reply:
    """Given these: "t-0", "t-1"."""
    raw = encode_assignment(Assignment(assigned_partitions=grouped(named(*partitions))))
    return Reply("sync", SyncGroupResponse(assignment=raw, protocol_name=protocol, protocol_type=protocol_type))


def heartbeat_reply(code: ErrorCode = ErrorCode.NONE) -> Reply:
    return Reply("heartbeat", HeartbeatResponse(error_code=code))


def left(code: ErrorCode = ErrorCode.NONE) -> Reply:
    members = (MemberResponse(member_id="a", group_instance_id=None, error_code=code),)
    return Reply("leave", LeaveGroupResponse(members=members))


def breaks(kind: str, error: KafkaError | None = None) -> Broken:
    return Broken(kind, error or Unreachable("the connection broke"))


def named(*partitions: str) -> list[TopicPartition]:
    return [TopicPartition(item.rpartition("-")[0], int(item.rpartition("-")[2])) for item in partitions]


# ---- effects


def arm(key: str, at_ms: int) -> Shown:
    return ("arm", key, at_ms)


def disarm(key: str) -> Shown:
    return ("disarm", key)


# ---- places to start from


def joining(*topics: str, **settings: Any) -> Script:
    """Member "a" waits for the answer to the JoinGroup that names it; `poll` waits too."""
    script = Script(*topics, **settings).does(POLL, FOUND)
    if "group_instance_id" not in settings:
        script.does(join_refused(ErrorCode.MEMBER_ID_REQUIRED, "a"))
    script.notes.clear()
    return script.is_in(S.JOINING, -1)


def syncing(*topics: str, protocol: str = "range", **settings: Any) -> Script:
    """A follower of generation 1, whose SyncGroup waits."""
    strategy = settings.pop("strategy", protocol)
    script = joining(*topics, strategy=strategy, **settings).does(joined(1, protocol=protocol))
    script.notes.clear()
    return script.is_in(S.SYNCING, 1)


def stable(*partitions: str, **settings: Any) -> Script:
    """Part of generation 1 with t-0 (or these); `poll` has returned, the user is at work."""
    script = syncing(**settings).does(synced(*(partitions or ("t-0",))), Done(), ENDED, RETURNING)
    script.notes.clear()
    return script.is_in(S.STABLE, 1)


def cooperative(*partitions: str, **settings: Any) -> Script:
    """The same with the cooperative protocol."""
    return stable(*partitions, protocol="cooperative-sticky", **settings)


def leading(*, others: dict[str, bytes] | None = None, **settings: Any) -> Script:
    """The leader of generation 1, alone (or with others), part of it with all of t."""
    script = joining(**settings).does(joined(1, leader="a", others=others))
    script.does(synced("t-0", "t-1"), Done(), ENDED, RETURNING)
    script.notes.clear()
    return script.is_in(S.STABLE, 1)

"""A conversation with one group id: heartbeats go in, answers come out, timers fire when time advances.

Every record goes through its bytes into a log. `restarted` is the group that another coordinator would load from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Self

from rota.coordinator.consumer_group import records as consumer_records
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, can_describe_all
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.consumer_group.member import STATIC_LEFT_EPOCH, MemberState
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, Environment
from rota.coordinator.consumer_group.state import ConsumerGroup, owned_by
from rota.coordinator.consumer_group.topics import TopicMetadata
from rota.coordinator.group import records as group_records
from rota.coordinator.group.effects import (
    Append,
    AppendAndReply,
    AppendInTransaction,
    Arm,
    Disarm,
    Effect,
    GroupValue,
    Note,
    OffsetValue,
    Reply,
)
from rota.coordinator.group.events import (
    Commit,
    DeleteGroup,
    DropOffsets,
    ExpireOffsets,
    Join,
    MemberId,
    OffsetRecord,
    Proto,
    TimerFired,
    Token,
    TransactionalCommit,
)
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.runtime.contract import Encoded
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember

GROUP = "g"
CLIENT, HOST = "client", "/127.0.0.1"
REBALANCE_MS = 60_000
START_WALL_MS = 1_000_000


class TopicsInMemory:
    """A directory that a test changes."""

    def __init__(self, **counts: int) -> None:
        self.version = self.created_version = 1
        self._topics: dict[str, TopicMetadata] = {}
        for name, number in counts.items():
            self.set(name, number)

    def set(self, name: str, partitions: int, topic_id: bytes | None = None, racks: tuple[str, ...] = ()) -> None:
        """Create a topic or change its number of partitions, its id or the racks of its replicas."""
        self.version += 1
        if name not in self._topics:
            self.created_version = self.version
        self._topics[name] = TopicMetadata(name, topic_id or id_of(name), (racks,) * partitions)

    def delete(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def get(self, name: str) -> TopicMetadata | None:
        return self._topics.get(name)

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)

    def names(self) -> Iterable[str]:
        return list(self._topics)


def id_of(name: str) -> bytes:
    """The id of a topic in these tests."""
    return name.encode().ljust(16, b"\0")[:16]


class Script:
    """A new group at time 0, without an assignment interval unless `settings` say otherwise."""

    def __init__(
        self,
        topics: TopicsInMemory | None = None,
        settings: ConsumerGroupSettings | None = None,
        config: GroupConfig | None = None,
    ) -> None:
        self.topics = topics or TopicsInMemory(t=4)
        self.settings = settings or ConsumerGroupSettings(assignment_interval_ms=0)
        self.config = config or GroupConfig(initial_rebalance_delay_ms=0)
        self.log: list[Encoded] = []
        self.now_ms = 0
        self.timers: dict[str, int] = {}
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.written: list[Note] = []  # the same, as they were written
        self.replies: dict[int, Any] = {}
        self._tokens = count(1)
        self.hosted = self._new()

    def _new(self) -> HostedGroup:
        return HostedGroup(GROUP, self.config, Environment(self.topics, lambda _: self.settings))

    @property
    def group(self) -> ConsumerGroup:
        assert self.hosted.consumer is not None
        return self.hosted.consumer

    @property
    def wall_ms(self) -> int:
        return START_WALL_MS + self.now_ms

    # ---- in

    def heartbeat(
        self,
        member: str,
        epoch: int,
        *,
        names: Iterable[str] | None = None,
        owned: dict[str, Iterable[int]] | None = None,
        instance: str | None = None,
        rebalance_ms: int | None = None,
        regex: str | None = None,
        rack: str | None = None,
        assignor: str | None = None,
        can_describe: Callable[[str], bool] = can_describe_all,
        client: str = CLIENT,
        host: str = HOST,
    ) -> HeartbeatReply:
        """Send a heartbeat and return the answer."""
        event = ConsumerHeartbeat(
            token=self._token(),
            member_id=member,
            member_epoch=epoch,
            client_id=client,
            client_host=host,
            instance_id=instance,
            rack_id=rack,
            rebalance_ms=rebalance_ms,
            topic_names=None if names is None else frozenset(names),
            regex=regex,
            assignor=assignor,
            owned=None if owned is None else tuple((id_of(name), tuple(parts)) for name, parts in owned.items()),
            can_describe=can_describe,
        )
        extended = self.hosted.extend_session(member, epoch, (client, host), self.now_ms) if is_plain(event) else None
        effects, answer = len(self.log) + len(self.notes), self.send(event)
        assert isinstance(answer, HeartbeatReply)
        if extended is not None:  # law CG19, in every conversation and every generated one
            assert (extended, effects) == (answer, len(self.log) + len(self.notes))
        return answer

    def extend_session(self, member: str, epoch: int) -> HeartbeatReply | None:
        """Answer a heartbeat that says nothing new without a step; None where a step decides."""
        return self.hosted.extend_session(member, epoch, (CLIENT, HOST), self.now_ms)

    def join(self, member: str, *names: str, **more: Any) -> HeartbeatReply:
        """Join with these topics."""
        return self.heartbeat(member, 0, names=names, owned={}, **({"rebalance_ms": REBALANCE_MS} | more))

    def leave(self, member: str, epoch: int = -1, **more: Any) -> HeartbeatReply:
        return self.heartbeat(member, epoch, **more)

    def commit(self, member: str, epoch: int, partition: int = 0, topic: str = "t", version: int = 9) -> ErrorCode:
        """Commit offset 7 of one partition."""
        record = OffsetRecord(GROUP, topic, partition, OffsetValue(7, -1, "", self.wall_ms))
        event = Commit(
            token=self._token(),
            member_id=MemberId(member),
            instance_id=None,
            generation=epoch,
            records=[record],
            version=version,
        )
        answer = self.send(event)
        assert isinstance(answer, ErrorCode)
        return answer

    def commit_in_transaction(self, member: str, epoch: int, partition: int = 0) -> ErrorCode:
        """Commit offset 7 of one partition in a transaction of producer 1."""
        record = OffsetRecord(GROUP, "t", partition, OffsetValue(7, -1, "", self.wall_ms))
        answer = self.send(TransactionalCommit(self._token(), MemberId(member), None, epoch, [record], 1, 0))
        assert isinstance(answer, ErrorCode)
        return answer

    def delete(self) -> Any:
        return self.send(DeleteGroup(self._token()))

    def drop_offsets(self, *partitions: tuple[str, int]) -> Any:
        return self.send(DropOffsets(self._token(), partitions))

    def expire(self, retention_ms: int) -> None:
        self.perform(self.hosted.step(ExpireOffsets(retention_ms), self.now_ms, self.wall_ms))

    def classic_join(self, member: str = "", fresh: str = "classic-1") -> int:
        """Send a JoinGroup; return the token of its answer, which may come later."""
        token = self._token()
        self.perform(
            self.hosted.step(
                Join(
                    token=token,
                    member_id=MemberId(member),
                    instance_id=None,
                    fresh_id=MemberId(fresh),
                    client_id=CLIENT,
                    client_host=HOST,
                    session_ms=10_000,
                    rebalance_ms=REBALANCE_MS,
                    protocol_type="consumer",
                    protocols=(Proto("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),),
                    requires_known_id=False,
                    can_skip_assignment=False,
                ),
                self.now_ms,
                self.wall_ms,
            )
        )
        return token

    def send(self, event: Any) -> Any:
        """Step an event with a reply, which must come at once."""
        self.perform(self.hosted.step(event, self.now_ms, self.wall_ms))
        return self.replies.pop(event.token)

    def token(self) -> Token:
        return self._token()

    def advance(self, ms: int) -> None:
        """Let time pass; timers fire in their order."""
        end_ms = self.now_ms + ms
        while due := sorted((at, key) for key, at in self.timers.items() if at <= end_ms):
            at, key = due[0]
            self.now_ms = max(self.now_ms, at)
            del self.timers[key]
            self.perform(self.hosted.step(TimerFired(key), self.now_ms, self.wall_ms))
        self.now_ms = end_ms

    def _token(self) -> Token:
        return Token(next(self._tokens))

    # ---- out

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Append():
                    self._append((effect.record,))
                case AppendAndReply():
                    self._append(effect.records)
                    self.replies[effect.token] = effect.body
                case AppendInTransaction():
                    self.replies[effect.token] = effect.body
                case Reply():
                    self.replies[effect.token] = effect.body
                case Arm():
                    self.timers[effect.key] = effect.at_ms
                case Disarm():
                    self.timers.pop(effect.key, None)
                case _:
                    self.written.append(effect)
                    self.notes.append((effect.event, effect.fields | effect.timeline))
        if self.hosted.consumer is not None:
            check_owners(self.hosted.consumer)
            check_progress(self.hosted.consumer)

    def _append(self, decided: Iterable[Any]) -> None:
        self.log += group_records.encode(decided, consumer_records.encode)

    def restarted(self, *, compacted: bool = False) -> Self:
        """The same group, as another coordinator loads it from the log."""
        other = type(self)(self.topics, self.settings, config=self.config)
        other.log, other.now_ms = list(self.log), self.now_ms
        for key, value in compact(self.log) if compacted else self.log:
            record = group_records.decode(key, value) or consumer_records.decode(key, value)
            assert record is not None
            other.hosted.replay(record)
        other.perform(other.hosted.loaded(self.now_ms, self.wall_ms))
        return other

    def records(self, since: int = 0) -> list[tuple[str, Any]]:
        """The log from a position on: type of the key, and the value."""
        read = [consumer_records.decode(key, value) for key, value in self.log[since:]]
        return [(type(record.key).__name__, record.value) for record in read if record is not None]

    def assigned(self, member: str) -> dict[str, set[int]]:
        """What the coordinator says that the member owns, by topic name."""
        found = self.group.members[member].assigned
        return {topic_id.rstrip(b"\0").decode(): set(indexes) for topic_id, indexes in found.items()}

    def target(self, member: str) -> dict[str, set[int]]:
        found = self.group.targets.get(member, {})
        return {topic_id.rstrip(b"\0").decode(): set(indexes) for topic_id, indexes in found.items()}

    def noted(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.notes if name == event]


def is_plain(event: ConsumerHeartbeat) -> bool:
    """Return whether the heartbeat says nothing but its epoch."""
    fields = (event.instance_id, event.rack_id, event.rebalance_ms, event.topic_names, event.regex, event.assignor)
    return event.owned is None and all(value is None for value in fields)


def named(reply: HeartbeatReply) -> dict[str, set[int]] | None:
    """The assignment of an answer by topic name; None where it has none."""
    if reply.assignment is None:
        return None
    return {topic_id.rstrip(b"\0").decode(): set(indexes) for topic_id, indexes in reply.assignment.items()}


def compact(log: Iterable[Encoded]) -> list[Encoded]:
    """The last value of each key, in the order in which they were written."""
    newest: dict[bytes | None, bytes | None] = {}
    for key, value in log:
        newest.pop(key, None)
        newest[key] = value
    return list(newest.items())


def check_owners(group: ConsumerGroup) -> None:
    """CG1."""
    owned = [key for member in group.members.values() for key in owned_by(member)]
    assert len(owned) == len(set(owned)), "a partition has two owners"
    assert group.owners == {key: member.member_id for member in group.members.values() for key in owned_by(member)}


def check_progress(group: ConsumerGroup) -> None:
    """TL13. The soft state of the timeline names the members that are there and lack their target, and no others."""
    progress, members = group.progress, group.members
    assert progress.target is None
    assert progress.lagging | progress.revoking_since.keys() | progress.revoked.keys() <= members.keys()
    if group.epoch != group.target_epoch or any(each.state is MemberState.UNKNOWN for each in members.values()):
        return
    away = {each.member_id for each in members.values() if each.epoch == STATIC_LEFT_EPOCH}
    late = {each.member_id for each in members.values() if not each.is_reconciled_to(group.target_epoch)}
    assert progress.lagging | away == late
    assert progress.is_noted == bool(progress.lagging)
    revoking = {each.member_id for each in members.values() if each.state is MemberState.UNREVOKED_PARTITIONS}
    assert progress.revoking_since.keys() == revoking - away


def durable(hosted: HostedGroup) -> tuple[Any, ...]:
    """What must be the same after a restart."""
    group = hosted.consumer
    classic: GroupValue | None = hosted.hard
    if group is None:
        return (classic, hosted.offsets, None)
    state = (group.epoch, group.metadata_hash, group.target_epoch, group.target_ms)
    return (classic, hosted.offsets, state, group.members, group.targets, group.regexes, group.owners)


EVENT_MEMBER = EventMember(member_id="a", client_id=CLIENT, client_host=HOST)

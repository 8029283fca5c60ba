"""The member's side of the classic protocol, and a record of what all members saw.

No clock, no socket: `next` returns the next request, `heard` takes the response, or None when the connection broke
first. The simulation and the chaos tests use the same members.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from tests.simulation.history import Claim, Notice, Op, disputed_generations, double_owners, is_linearizable

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC = "t"
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\0\0\0\0"  # consumer protocol v0, topic "t"
VERSIONS = {8: 8, 9: 7, 11: 9, 12: 4, 13: 5, 14: 5}
# answers after which nobody knows whether the request was carried out
MAYBE_DONE = {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}

VersionedRequest = tuple[Any, int]  # a request and its version


@dataclass
class Trace:
    """What the clients of some groups saw. Times are of one clock, whatever its unit."""

    ops: dict[tuple[str, int], list[Op]] = field(default_factory=lambda: defaultdict(list))
    claims: list[Claim] = field(default_factory=list)
    answers: list[Notice] = field(default_factory=list)
    instances: set[str] = field(default_factory=set)  # of static members
    newest: dict[str, int] = field(default_factory=dict)  # the largest generation that anybody was told of
    stale: list[str] = field(default_factory=list)  # G3: what should have been refused
    offsets: count[int] = field(default_factory=lambda: count(1))

    def began(self, kind: str, group: str, partition: int, offset: int, now: float) -> Op:
        op = Op(kind, offset, now)
        self.ops[group, partition].append(op)
        return op

    def refused(self, group: str, partition: int, op: Op) -> None:
        """It certainly did not happen."""
        self.ops[group, partition].remove(op)

    def joined(self, group: str, instance: str | None, answer: Any) -> None:
        if instance is not None:
            self.instances.add(instance)
        self.instances |= {item.group_instance_id for item in answer.members} - {None}
        members = frozenset(item.member_id for item in answer.members) or None
        self.answers.append(Notice(group, answer.generation_id, answer.member_id, answer.leader, members))
        self.newest[group] = max(self.newest.get(group, 0), answer.generation_id)

    def check(self) -> None:
        """The laws that hold whatever happened."""
        assert not self.stale  # G3
        assert double_owners(self.claims) == []  # G1
        assert disputed_generations(map(self._named, self.answers)) == []  # G2
        for place, ops in self.ops.items():
            assert is_linearizable(ops), (place, ops)  # O1, O2

    def _named(self, item: Notice) -> Notice:
        """A static member is the same one under each of its ids."""
        members = None if item.members is None else frozenset(map(self._name, item.members))
        return Notice(item.group, item.generation, self._name(item.member), self._name(item.leader), members)

    def _name(self, member_id: str) -> str:
        """Ids are given to clients that die before they hear them; a static member's begins with its instance id."""
        return next((each for each in self.instances if member_id.startswith(f"{each}-")), member_id)


class Member:
    """One member of `group`, over the partitions of topic "t". `random` chooses what it does while it is inside."""

    def __init__(
        self,
        group: str,
        trace: Trace,
        random: Random,
        *,
        partitions: int = 3,
        instance: str | None = None,
        session_ms: int = 6_000,
        leaves: float = 0.02,
    ) -> None:
        self.group, self.trace, self.random, self.instance = group, trace, random, instance
        self.partitions, self.session_ms, self.leaves = partitions, session_ms, leaves
        self.member_id, self.generation = "", -1
        self.members: tuple[Any, ...] = ()  # as the leader was told them
        self.state = "outside"  # "outside" | "joined" | "inside" | "left"
        self.owned: tuple[int, ...] = ()
        self.since = 0.0
        self._ops: list[tuple[int, Op]] = []
        self._newest = 0

    @property
    def key(self) -> dict[str, Any]:
        """Who it says it is."""
        return {"group_id": self.group, "member_id": self.member_id, "group_instance_id": self.instance}

    # ---- what to ask

    def next(self, now: float) -> VersionedRequest:
        match self.state:
            case "outside":
                request = self.join()
            case "joined":
                request = self.sync()
            case _:
                request = self._inside(now)
        return request, VERSIONS[request.KEY]

    def join(self) -> JoinGroupRequest:
        protocols = (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),)
        return JoinGroupRequest(
            **self.key,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=2 * self.session_ms,
            protocol_type="consumer",
            protocols=protocols,
        )

    def sync(self) -> SyncGroupRequest:
        """The leader deals the partitions out, one by one."""
        ids = sorted(item.member_id for item in self.members)
        parts = {who: bytes(p for p in range(self.partitions) if p % len(ids) == at) for at, who in enumerate(ids)}
        assignments = tuple(SyncGroupRequestAssignment(member_id=who, assignment=b"=" + parts[who]) for who in ids)
        return SyncGroupRequest(
            **self.key,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )

    def _inside(self, now: float) -> Any:
        drawn = self.random.random()
        if drawn < self.leaves and self.instance is None:
            return LeaveGroupRequest(group_id=self.group, members=(MemberIdentity(member_id=self.member_id),))
        if drawn < 0.08 and self.generation > 1:
            return self.commit_as(now, self.random.randrange(self.partitions), self.generation - 1)  # G3
        if drawn < 0.5 and self.owned:
            return self.commit(now)
        if drawn < 0.6:
            return self.fetch(now)
        return self.heartbeat()

    def heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(**self.key, generation_id=self.generation)

    def commit(self, now: float) -> OffsetCommitRequest:
        """A new offset for one of its partitions."""
        return self.commit_as(now, self.random.choice(self.owned), self.generation)

    def commit_as(self, now: float, partition: int, generation: int) -> OffsetCommitRequest:
        offset = next(self.trace.offsets)
        self._ops = [(partition, self.trace.began("commit", self.group, partition, offset, now))]
        self._newest = self.trace.newest.get(self.group, 0)
        item = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=(item,)),)
        return OffsetCommitRequest(**self.key, generation_id_or_member_epoch=generation, topics=topics)

    def fetch(self, now: float) -> OffsetFetchRequest:
        """All partitions of the topic."""
        self._ops = [(p, self.trace.began("fetch", self.group, p, 0, now)) for p in range(self.partitions)]
        topics = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=tuple(range(self.partitions))),)
        return OffsetFetchRequest(group_id=self.group, topics=topics)

    # ---- what was answered

    def received(self, request: Any, answer: Any | None, now: float) -> None:
        """`answer` None: nobody knows whether the request arrived."""
        ops, self._ops = self._ops, []
        if answer is None:
            if isinstance(request, LeaveGroupRequest):
                self._out(now, "left")
            return
        match request:
            case OffsetCommitRequest():
                self._committed(request, ErrorCode(answer.topics[0].partitions[0].error_code), ops, now)
            case OffsetFetchRequest():
                self._fetched(answer, ops, now)
            case JoinGroupRequest():
                self._joined(answer, now)
            case SyncGroupRequest():
                self._synced(answer, now)
            case LeaveGroupRequest():
                self._out(now, "left")
            case _:
                self._obey(ErrorCode(answer.error_code), now)

    def _committed(self, request: OffsetCommitRequest, error: ErrorCode, ops: list[tuple[int, Op]], now: float) -> None:
        generation = request.generation_id_or_member_epoch
        for partition, op in ops:
            if error is ErrorCode.NONE:
                op.done = now
                if 0 <= generation < self._newest:
                    self.trace.stale.append(f"{op} in generation {generation}, after {self._newest} was told of")
            elif error not in MAYBE_DONE:
                self.trace.refused(self.group, partition, op)
        self._obey(error, now)

    def _fetched(self, answer: Any, ops: list[tuple[int, Op]], now: float) -> None:
        if answer.error_code:
            return
        offsets = {item.partition_index: item.committed_offset for item in answer.topics[0].partitions}
        for partition, op in ops:
            op.offset, op.done = offsets[partition], now

    def _joined(self, answer: Any, now: float) -> None:
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif error is not ErrorCode.NONE:
            self._obey(error, now)
        else:
            self.trace.joined(self.group, self.instance, answer)
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.members = answer.members if answer.leader == answer.member_id and not answer.skip_assignment else ()
            self.state = "joined"

    def _synced(self, answer: Any, now: float) -> None:
        if answer.error_code:
            self._obey(ErrorCode(answer.error_code), now)
        elif answer.assignment.startswith(b"="):
            self.state, self.owned, self.since = "inside", tuple(answer.assignment[1:]), now
        else:
            self.state = "outside"  # a leader that knew it deals something to everybody; this one was dealt nothing

    def _obey(self, error: ErrorCode, now: float) -> None:
        if error is ErrorCode.NONE or error in MAYBE_DONE:
            return
        if error not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.member_id = ""
        self._out(now, "outside")

    def _out(self, now: float, state: str) -> None:
        self.claim(now)
        self.state, self.owned = state, ()

    def claim(self, now: float) -> None:
        """Note what it owned until now; also at the end of a run."""
        who = self.instance or self.member_id
        self.trace.claims += [
            Claim(self.group, self.generation, partition, who, self.since, now) for partition in self.owned
        ]

"""A conversation with a group that has members of both protocols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.unit.coordinator.consumer_group.script import CLIENT, HOST, REBALANCE_MS, Script

from rota.coordinator.group.effects import Joined, LeaveResult, Synced
from rota.coordinator.group.events import Heartbeat, InstanceId, Join, Leave, LeavingMember, MemberId, Proto, Sync
from rota.coordinator.group.state import GroupConfig
from rota.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from rota.protocol.errors import ErrorCode

SESSION_MS = 10_000
Partitions = dict[str, Iterable[int]]


def partitions(named: Partitions) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic=name, partitions=tuple(indexes)) for name, indexes in named.items())


def subscription(*names: str, owned: Partitions | None = None, version: int = 1) -> bytes:
    return encode_subscription(Subscription(topics=names, owned_partitions=partitions(owned or {})), version)


def assignment(named: Partitions, user_data: bytes | None = None) -> bytes:
    return encode_assignment(Assignment(assigned_partitions=partitions(named), user_data=user_data), 0)


def read(raw: bytes) -> dict[str, set[int]]:
    return {part.topic: set(part.partitions) for part in decode_assignment(raw).assigned_partitions}


class MixedScript(Script):
    """Classic members say c_join, c_sync, c_beat and c_leave; what waits is None until `answer` has it."""

    def __init__(self, *arguments: Any, config: GroupConfig | None = None, **more: Any) -> None:
        # the first generation begins only when a test lets time pass
        super().__init__(*arguments, config=config or GroupConfig(initial_rebalance_delay_ms=3_000), **more)

    def c_join(
        self,
        member: str = "",
        *names: str,
        fresh: str = "c",
        instance: str | None = None,
        owned: Partitions | None = None,
        protocols: tuple[tuple[str, bytes], ...] | None = None,
        protocol_type: str = "consumer",
        known: bool = False,
        session_ms: int = SESSION_MS,
        version: int = 1,
    ) -> Joined | None:
        """Send a JoinGroup; return the answer, None when it waits."""
        if protocols is None:
            protocols = (("range", subscription(*(names or ("t",)), owned=owned, version=version)),)
        self.last = self.token()
        event = Join(
            token=self.last,
            member_id=MemberId(member),
            instance_id=None if instance is None else InstanceId(instance),
            fresh_id=MemberId(fresh),
            client_id=CLIENT,
            client_host=HOST,
            session_ms=session_ms,
            rebalance_ms=REBALANCE_MS,
            protocol_type=protocol_type,
            protocols=tuple(Proto(name, metadata) for name, metadata in protocols),
            requires_known_id=known,
            can_skip_assignment=True,
        )
        self.perform(self.hosted.step(event, self.now_ms, self.wall_ms))
        return self.replies.pop(self.last, None)

    def c_sync(
        self,
        member: str,
        generation: int,
        assigned: dict[str, Partitions] | None = None,
        *,
        raw: dict[str, bytes] | None = None,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
    ) -> Synced | None:
        """Send a SyncGroup, with the assignment of a leader; return the answer, None when it waits."""
        parts = raw or {name: assignment(named) for name, named in (assigned or {}).items()}
        self.last = self.token()
        event = Sync(
            token=self.last,
            member_id=MemberId(member),
            instance_id=None if instance is None else InstanceId(instance),
            generation=generation,
            protocol_type=protocol_type,
            protocol=protocol,
            assignments=tuple((MemberId(name), part) for name, part in parts.items()),
        )
        self.perform(self.hosted.step(event, self.now_ms, self.wall_ms))
        return self.replies.pop(self.last, None)

    def c_heartbeat(self, member: str, generation: int, instance: str | None = None) -> ErrorCode:
        held = None if instance is None else InstanceId(instance)
        code = self.send(Heartbeat(self.token(), MemberId(member), held, generation))
        assert isinstance(code, ErrorCode)
        return code

    def c_leave(self, *identities: tuple[str, str | None]) -> list[ErrorCode]:
        named = tuple(
            LeavingMember(MemberId(name), None if held is None else InstanceId(held)) for name, held in identities
        )
        answer = self.send(Leave(self.token(), named))
        assert isinstance(answer, LeaveResult)
        return [code for _, _, code in answer.members]

    def c_assigned(self, member: str, generation: int) -> dict[str, set[int]]:
        """What a classic member of the consumer group gets from SyncGroup."""
        synced = self.c_sync(member, generation)
        assert synced is not None
        assert synced.error is ErrorCode.NONE
        return read(synced.assignment)


def classic_pair(**more: Any) -> MixedScript:
    """A classic group in generation 1: c1 has partitions 0 and 1 of t, c2 has 2 and 3."""
    script = MixedScript(**more)
    script.c_join("", fresh="c1")
    first = script.last
    script.c_join("", fresh="c2")
    script.advance(6_000)
    assert script.replies.pop(first).generation == script.replies.pop(script.last).generation == 1
    script.c_sync("c2", 1)
    script.replies.pop(script.last, None)
    waiting = script.last
    script.c_sync("c1", 1, {"c1": {"t": (0, 1)}, "c2": {"t": (2, 3)}})
    assert read(script.replies.pop(waiting).assignment) == {"t": {2, 3}}
    return script


def mixed() -> MixedScript:
    """A group of c1 and c2, which are classic, and of a, which has joined with the consumer protocol: epoch 2."""
    script = classic_pair()
    assert script.join("a", "t").member_epoch == 2
    return script


def settled() -> MixedScript:
    """The same, when c1 and c2 have joined again and each member has its target."""
    script = mixed()
    for member in ("c1", "c2"):
        kept = script.target(member)["t"]
        answer = script.c_join(member, owned={"t": kept})
        assert answer is not None
        assert script.c_assigned(member, answer.generation) == {"t": kept}
    script.heartbeat("a", 2)
    assert script.group.state.value == "Stable"
    return script

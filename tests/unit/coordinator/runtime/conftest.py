"""A world for shards with real parts: logs in memory, timers that go off when a test moves the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rota.coordinator.group.effects import Joined, LeaveResult, Synced
from rota.coordinator.group.events import (
    Commit,
    Join,
    Leave,
    LeavingMember,
    MemberId,
    OffsetRecord,
    OffsetValue,
    Proto,
    Sync,
)
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group_coordinator import OFFSETS_TOPIC, GroupCoordinator, GroupShard
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.coordinator import load_now
from rota.coordinator.runtime.shard import Shard
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import TimerHeap

CONFIG = GroupConfig(initial_rebalance_delay_ms=0)


class World:
    """A coordinator over logs that outlive it. `turn` ends a turn of the loop; `flush` puts records on the medium."""

    def __init__(self, shards: int = 3) -> None:
        self.partitions = [
            Partition(OFFSETS_TOPIC, bytes(16), index, 0, MemoryLog(LogConfig(compact=True, delete=False)))
            for index in range(shards)
        ]
        self.now_ms = 1_000_000
        self.tick_queue: list[Callable[[], None]] = []
        self.load_soon = load_now
        self.start()

    def start(self) -> None:
        """A new life of the broker over the same logs."""
        self.timers = TimerHeap()
        self.tick_queue.clear()
        self.coordinator = GroupCoordinator(
            shards=len(self.partitions),
            config=CONFIG,
            partition=self.partitions.__getitem__,
            timers=self.timers,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            tick_queue=self.tick_queue.append,
            ensure_topic=self._ensure_topic,
            leader=lambda index: 0,
        )
        self.coordinator.load_soon = self.load_soon
        for index in range(len(self.partitions)):
            self.coordinator.lead(index, 0)
        self.turn()

    async def _ensure_topic(self) -> bool:
        return True

    def turn(self) -> None:
        while self.tick_queue:
            self.part_of_turn()

    def part_of_turn(self) -> None:
        tick_queue, self.tick_queue[:] = list(self.tick_queue), []
        for call in tick_queue:
            call()

    def after(self, ms: int) -> None:
        self.now_ms += ms
        for call in self.timers.due(self.now_ms):
            call()
        self.turn()

    def request_flushes(self) -> None:
        """From now on records are committed when they are on the medium."""
        for partition in self.partitions:
            partition.configure(replace(partition.log.config, flush_messages=1))

    def flush(self) -> None:
        for partition in self.partitions:
            partition.log.flush()
            partition.flushed()

    # ---- requests, as the API files make them

    def shard(self, group_id: str) -> GroupShard:
        shard = self.coordinator.ready(group_id)
        assert isinstance(shard, Shard)
        return shard

    def join(
        self, group_id: str, member_id: str = "", fresh_id: str = "m-1", known: bool = False
    ) -> DelayedReply[Joined]:
        shard = self.shard(group_id)
        event = Join(
            token=shard.token(),
            member_id=MemberId(member_id),
            instance_id=None,
            fresh_id=MemberId(fresh_id),
            client_id="test",
            client_host="/127.0.0.1",
            session_ms=10_000,
            rebalance_ms=60_000,
            protocol_type="consumer",
            protocols=(Proto("range", b"subscription"),),
            requires_known_id=known,
            can_skip_assignment=False,
        )
        return shard.submit(
            self.coordinator.group(shard, group_id),
            event,
            lambda code: Joined(member_id=event.member_id, error=code),
            mutes=True,
        )

    def sync(
        self, group_id: str, member_id: str, generation: int, *assigned: tuple[str, bytes]
    ) -> DelayedReply[Synced]:
        shard = self.shard(group_id)
        event = Sync(
            token=shard.token(),
            member_id=MemberId(member_id),
            instance_id=None,
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            assignments=tuple((MemberId(member), assignment) for member, assignment in assigned),
        )
        return shard.submit(shard.machines[group_id], event, lambda code: Synced(error=code), mutes=True)

    def commit(
        self,
        group_id: str,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        *,
        topic: str = "topic",
        topic_id: bytes | None = None,
        partition: int = 0,
    ) -> DelayedReply[Any]:
        shard = self.shard(group_id)
        event = Commit(
            token=shard.token(),
            member_id=MemberId(member_id),
            instance_id=None,
            generation=generation,
            records=(
                OffsetRecord(group_id, topic, partition, OffsetValue(offset, -1, "", self.now_ms, None, topic_id)),
            ),
        )
        group = self.coordinator.group(shard, group_id)
        return shard.submit(group, event, lambda code: code)

    def leave(self, group_id: str, member_id: str) -> DelayedReply[LeaveResult]:
        shard = self.shard(group_id)
        token = shard.token()
        return shard.submit(
            shard.machines[group_id], Leave(token, (LeavingMember(MemberId(member_id), None),)), LeaveResult
        )

    def member(self, group_id: str) -> Joined:
        """A group of one member that has its assignment."""
        joined = self.join(group_id)
        self.after(0)
        assert joined.value is not None
        self.sync(group_id, joined.value.member_id, joined.value.generation, (joined.value.member_id, b"all"))
        self.turn()
        return joined.value

    def offset(self, group_id: str) -> int | None:
        group = self.shard(group_id).machines.get(group_id)
        value = None if group is None else group.offsets.get(("topic", 0))
        return None if value is None else value.offset


@pytest.fixture
def world() -> World:
    return World()

"""A broker without sockets for the group APIs: real topics, shards and logs in memory; a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.find_coordinator import find_coordinator
from rota.coordinator.api.join_group import join_group
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.api.sync_group import sync_group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group_coordinator import GroupCoordinator
from rota.coordinator.group_environment import environment
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\0\0\0\0"  # consumer protocol v0, topic "t"


class GroupWorld(World):
    """`turn` ends a turn of the loop: what was decided is written, and answered."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        super().__init__({"offsets.topic.num.partitions": "4", **(properties or {})})
        node = self.node
        node.groups = GroupCoordinator(
            shards=4,
            config=GroupConfig(
                initial_rebalance_delay_ms=0, group_size_max=100, record_bytes_max=node.config.message_max_bytes
            ),
            partition=self._offsets_partition,
            timers=node.timers,
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            tick_queue=self.tick_queue.append,
            ensure_topic=self._ensure_topic,
            leader=lambda index: 0,
            environment=environment(node.topics, node.config),
        )

    def _offsets_partition(self, index: int) -> Any:
        return self.partition(CONSUMER_OFFSETS, index)

    async def _ensure_topic(self) -> bool:
        self.topic(CONSUMER_OFFSETS, 4, cleanup_policy="compact")
        for index in range(4):
            self.node.groups.lead(index, 0)
        return True

    def turn(self) -> None:
        self.now_ms += 1
        self.node.timers.fire()
        self.end_turn()

    def send_request(self, api: Callable[..., Any], request: Any, version: int) -> Any:
        """The answer after as many turns as it takes; a Parked that nobody answers is an error of the test."""
        reply = self.serve(api, request, version)
        for _ in range(4):
            self.turn()
        if isinstance(reply, DelayedReply):
            assert reply.answered, "the request still waits"
            return reply.value
        return reply

    def open(self) -> GroupWorld:
        """The offsets topic is there, and a topic "t" of three partitions."""
        self.send_request(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        self.topic("t", 3)
        self.turn()
        return self

    def join(self, group_id: str = "g", member_id: str = "", version: int = 3, **more: Any) -> Any:
        return self.serve(join_group, join_request(group_id, member_id, **more), version)

    def member(self, group_id: str = "g") -> JoinGroupResponse:
        """A group of one, Stable, whose member owns b"all"."""
        joined: JoinGroupResponse = self.send_request(join_group, join_request(group_id), 3)
        share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(share,),
        )
        assert not self.send_request(sync_group, request, 3).error_code
        return joined

    def commit(self, offset: int, group_id: str = "g", partition: int = 0, metadata: str = "") -> None:
        answer = self.send_request(offset_commit, commit_request(offset, group_id, partition, metadata), 8)
        assert not answer.topics[0].partitions[0].error_code


def join_request(group_id: str = "g", member_id: str = "", **more: Any) -> JoinGroupRequest:
    defaults: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    }
    return JoinGroupRequest(group_id=group_id, member_id=member_id, **{**defaults, **more})


def commit_request(
    offset: int, group_id: str = "g", partition: int = 0, metadata: str = "", topic: str = "t", **more: Any
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata, committed_leader_epoch=5
    )
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    return OffsetCommitRequest(
        group_id=group_id, **{"generation_id_or_member_epoch": -1, "member_id": "", "topics": topics, **more}
    )


def call(version: int = 0) -> Call:
    return Call(version, "test", "/127.0.0.1", "127.0.0.1", 9092)


__all__ = ["GroupWorld", "Node", "call", "commit_request", "join_request"]

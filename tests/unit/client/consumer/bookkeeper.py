"""The brokers of kit.py, which keep a group's offsets too and know where logs begin and end; and a consumer on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.client.consumer.kit import QUICK, TOPIC, TOPIC_ID, Feed

from rota.client.config import ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

GROUP = "tellers"


class Bookkeeper(Feed):
    """`committed[p]`: the group's offsets; `commits`: what each OffsetCommit said; `refusals`: the codes of the next
    ones; `open` unset: commits wait. `unstable`: the codes of the next OffsetFetches, of the partitions `refused` if
    there are any. `silent`: partitions whose ends nobody tells."""

    def __init__(self, partitions: int = 2) -> None:
        super().__init__(partitions)
        self.committed: dict[int, int] = {}
        self.commits: list[dict[int, int]] = []
        self.refusals: list[int] = []
        self.unstable: list[int] = []
        self.refused: set[int] = set()
        self.silent: set[int] = set()
        self.open = asyncio.Event()
        self.open.set()
        for broker in self.brokers:
            broker.on(FindCoordinatorRequest, self._found)
            broker.on(OffsetCommitRequest, self._commit)
            broker.on(OffsetFetchRequest, self._fetch_offsets)
            broker.on(ListOffsetsRequest, self._list)

    def _found(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        item = Coordinator(key=request.coordinator_keys[0], node_id=0, host="127.0.0.1", port=self.brokers[0].port)
        return FindCoordinatorResponse(coordinators=(item,))

    async def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        [topic] = request.topics
        assert topic.topic_id == TOPIC_ID, "by id, as the metadata know it"
        offsets = {item.partition_index: item.committed_offset for item in topic.partitions}
        self.commits.append(offsets)
        await self.open.wait()
        code = self.refusals.pop(0) if self.refusals else 0
        if not code:
            self.committed |= offsets
        several = tuple(OffsetCommitResponsePartition(partition_index=item, error_code=code) for item in offsets)
        return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(topic_id=TOPIC_ID, partitions=several),))

    def _fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        [group] = request.groups
        code = self.unstable.pop(0) if self.unstable else 0
        several = tuple(
            OffsetFetchResponsePartitions(
                partition_index=item,
                committed_offset=self.committed.get(item, -1),
                error_code=code if item in self.refused or not self.refused else 0,
            )
            for topic in group.topics or ()
            for item in topic.partition_indexes
        )
        topics = (OffsetFetchResponseTopics(name=TOPIC, partitions=several),)
        return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id=GROUP, topics=topics),))

    def _list(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        [topic] = request.topics
        several = tuple(
            ListOffsetsPartitionResponse(
                partition_index=item.partition_index,
                offset=0 if item.timestamp == -2 else self.end(item.partition_index) if item.timestamp == -1 else -1,
                error_code=5 if item.partition_index in self.silent else 0,
            )
            for item in topic.partitions
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=TOPIC, partitions=several),))


class Group(Bookkeeper):
    """A coordinator too: every JoinGroup makes a generation of one member, which leads."""

    def __init__(self) -> None:
        super().__init__(1)
        self.generation = 0
        for broker in self.brokers:
            broker.on(JoinGroupRequest, self._join)
            broker.on(SyncGroupRequest, lambda request: SyncGroupResponse(assignment=request.assignments[0].assignment))
            broker.on(HeartbeatRequest, lambda _: HeartbeatResponse())
            broker.on(LeaveGroupRequest, lambda _: LeaveGroupResponse())

    def _join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        self.generation += 1
        member = JoinGroupResponseMember(member_id="teller-1", metadata=request.protocols[0].metadata)
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader="teller-1",
            member_id="teller-1",
            members=(member,),
        )


@asynccontextmanager
async def consuming(keeper: Bookkeeper, **settings: Any) -> AsyncIterator[Consumer]:
    """A consumer of the group's that starts at the beginning; nothing is assigned yet."""
    for broker in keeper.brokers:
        await broker.listen()
    given = {"group_id": GROUP, "auto_offset_reset": "earliest"} | QUICK | settings
    try:
        async with Consumer(ConsumerConfig(bootstrap_servers=keeper.brokers[0].address, **given)) as consumer:
            yield consumer
    finally:
        for broker in keeper.brokers:
            await broker.stop()

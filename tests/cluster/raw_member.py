"""A member of a group that sends its requests one by one, to whichever broker coordinates the group at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.cluster.brokers import Brokers

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rota.transport.connection import Connection
from rota.transport.errors import KafkaError
from rota.transport.handshake import connect

SESSION_MS = 3_000
SECONDS_MAX = 10.0
RETRIED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class RawMember:
    """`member_id`, `generation` and `assignment` are those of the last answers."""

    def __init__(self, brokers: Brokers, name: str, group: str = "g") -> None:
        self.brokers, self.name, self.group = brokers, name, group
        self.member_id, self.generation, self.leader, self.assignment = "", -1, "", b""
        self.others: tuple[str, ...] = ()

    async def send_request_once(self, request: Any) -> Any:
        """Raises KafkaError when the connection ends first."""
        address = self.brokers.by_id[self.brokers.coordinator(self.group)].address
        connection: Connection = await connect(
            *address, "coordinator", self.name, setup_seconds=5, request_seconds=5, ended=lambda _: None
        )
        try:
            return await connection.send_request(request, SECONDS_MAX)
        finally:
            connection.end(KafkaError("asked"))
            await connection.closed()

    async def send_request(self, request: Any) -> Any:
        """Ask until a coordinator answers."""
        while True:
            try:
                answer = await self.send_request_once(request)
            except (KafkaError, KeyError):
                await asyncio.sleep(0.01)
                continue
            if error_of(answer) not in RETRIED:
                return answer
            await asyncio.sleep(0.01)

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=self.name.encode()),),
        )

    async def join(self) -> None:
        """Join, with a new id where that is asked for, and wait for the generation."""
        while True:
            answer = await self.send_request(self.join_request())
            self.member_id = answer.member_id
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            elif answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                assert answer.error_code == ErrorCode.NONE, answer
                assert answer.generation_id >= self.generation, "generations only grow (G2)"
                self.generation, self.leader = answer.generation_id, answer.leader
                self.others = tuple(member.member_id for member in answer.members)
                return

    def sync_request(self) -> SyncGroupRequest:
        """With an assignment for each member, if this one is the leader."""
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=other, assignment=f"{at}@{self.generation}".encode())
                for at, other in enumerate(self.others)
            ),
        )

    async def sync(self) -> ErrorCode:
        answer = await self.send_request(self.sync_request())
        if answer.error_code == ErrorCode.NONE:
            self.assignment = answer.assignment
        return ErrorCode(answer.error_code)

    async def heartbeat(self, generation: int | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
        )
        return ErrorCode((await self.send_request(request)).error_code)

    async def commit(self, generation: int) -> ErrorCode:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=self.member_id,
            topics=(OffsetCommitRequestTopic(name="t", topic_id=self._topic_id(), partitions=(partition,)),),
        )
        return error_of(await self.send_request(request))

    def _topic_id(self) -> bytes:
        topic = next(iter(self.brokers.by_id.values())).topics.get("t")
        assert topic is not None
        return topic.topic_id

    async def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id)
        await self.send_request(LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=(identity,)))


def error_of(answer: Any) -> ErrorCode:
    """The error of the whole answer, or of its first partition."""
    if hasattr(answer, "error_code"):
        return ErrorCode(answer.error_code)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def join_all(members: Iterable[RawMember]) -> RawMember:
    """Let each member join, again whenever a heartbeat asks for it, until all are in one generation; its leader."""
    members, joined = list(members), dict[str, int]()

    def is_done() -> bool:
        return len(joined) == len(members) and len(set(joined.values())) == 1

    async def join(member: RawMember) -> None:
        while not is_done():
            await member.join()
            joined[member.name] = member.generation
            while not is_done() and await member.heartbeat() is ErrorCode.NONE:
                await asyncio.sleep(0.005)

    async with asyncio.timeout(30):
        await asyncio.gather(*(join(member) for member in members))
    return next(member for member in members if member.member_id == member.leader)


async def settle(members: Iterable[RawMember]) -> None:
    """Let the members join and sync until all have an assignment of one generation."""
    members = list(members)
    async with asyncio.timeout(30):
        while True:
            await join_all(members)
            codes = await asyncio.gather(*(member.sync() for member in members))
            if all(code is ErrorCode.NONE for code in codes):
                return

"""Rows of groups whose expected replies are recorded: the broker answers each request once before it is measured."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.groups import RETRIES, RETRY_S, find_coordinator
from benchmarks.joining import RETRIABLE
from benchmarks.pump import LoadConnection, pump
from benchmarks.rows import COMMIT_VERSION, GROUPS, Row, commit_request, committed_reply, create, settings, unique
from benchmarks.wire import Wire, frame
from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

FETCH_VERSION, HEARTBEAT_VERSION = 8, 1
MEMBERS = 4  # of a group, with as many partitions
OFFSET = 7  # what `commit_request` commits


def offset_fetches(conns: int, inflight: int, partitions: int) -> Callable[[str], float]:
    """Answers a second, each with the committed offsets of that many partitions."""

    def measure(address: str) -> float:
        topic, group = unique("fetched"), unique("fetch")
        create(address, topic, partitions)
        wire = Wire(find_coordinator(address, group))
        commit = frame(commit_request(group, topic, partitions), COMMIT_VERSION, 0)
        retried(lambda: _recorded(wire, commit) == committed_reply(topic, partitions, 0))  # it may still be loading
        topics = (OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(range(partitions))),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),))
        raw = frame(request, FETCH_VERSION, 0)
        reply = _recorded(wire, raw)
        _, at = read_response_header(reply[4:], OffsetFetchRequest.KEY, FETCH_VERSION)
        fetched = codec(OffsetFetchResponse, FETCH_VERSION).decode(reply[4:], at)[0].groups[0].topics[0].partitions
        assert [partition.committed_offset for partition in fetched] == [OFFSET] * partitions
        wire.close()
        return pump(address, [LoadConnection([raw], [reply])] * conns, inflight, settings.seconds).per_s

    return measure


@dataclass(slots=True)
class ConsumerMember:
    """One member of the consumer protocol (KIP-848). Members of one address share a connection."""

    group: str
    topic: str
    wire: Wire
    member_id: str
    epoch: int = 0
    owned: tuple[TopicPartitions, ...] = ()

    def heartbeat(self) -> bool:
        """Join, or report what is owned; return whether the answer brought nothing new."""
        self.send()
        return self.take()

    def send(self) -> None:
        joins = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=(self.topic,) if joins else None,
            topic_partitions=self.owned,
        )
        self.wire.send(request, HEARTBEAT_VERSION)

    def take(self) -> bool:
        answer = self.wire.receive(ConsumerGroupHeartbeatResponse, ConsumerGroupHeartbeatRequest.KEY, HEARTBEAT_VERSION)
        if answer.error_code in RETRIABLE:
            return False
        assert not answer.error_code, answer
        is_settled = answer.assignment is None and answer.member_epoch == self.epoch
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions
        return is_settled and sum(len(topic.partitions) for topic in self.owned) == 1

    def steady(self, correlation: int) -> bytes:
        """Return the frame of a heartbeat that reports no change."""
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=self.epoch)
        return frame(request, HEARTBEAT_VERSION, correlation)


def consumer_heartbeats(conns: int, inflight: int) -> Callable[[str], float]:
    """Heartbeats a second of settled members of the consumer protocol."""

    def measure(address: str) -> float:
        topic = unique("consumed")
        create(address, topic, MEMBERS)
        wire = Wire(find_coordinator(address, topic))
        groups = [
            [ConsumerMember(group, topic, wire, str(uuid.uuid4())) for _ in range(MEMBERS)]
            for group in (unique("consumer") for _ in range(GROUPS))
        ]
        members = [member for group in groups for member in group]
        retried(lambda: sum(member.heartbeat() for member in members) == len(members))
        lanes: list[tuple[list[bytes], list[bytes]]] = [([], []) for _ in range(conns)]
        for number, group in enumerate(groups):
            frames, replies = lanes[number % conns]
            for member in group:
                frames.append(member.steady(len(frames)))
                replies.append(_recorded(wire, frames[-1]))
        wire.close()
        return pump(address, [LoadConnection(*lane) for lane in lanes], inflight, settings.seconds).per_s

    return measure


def reached_targets(count: int, conns: int = 8) -> Callable[[str], float]:
    """Seconds until so many members of one group, joining all at once, own one partition each and nothing changes.

    Each connection carries a share of the members; a member sends its next heartbeat when all of a round are answered.
    """

    def measure(address: str) -> float:
        topic, group = unique("targets"), unique("group")
        create(address, topic, count)
        coordinator = find_coordinator(address, group)
        wires = [Wire(coordinator) for _ in range(conns)]
        members = [ConsumerMember(group, topic, wires[n % conns], str(uuid.uuid4())) for n in range(count)]

        def settled() -> bool:
            for member in members:
                member.send()
            return sum([member.take() for member in members]) == count

        began = time.perf_counter()
        while not settled():
            pass
        took = time.perf_counter() - began
        for wire in wires:
            wire.close()
        return took

    return measure


def retried(is_done: Callable[[], bool]) -> None:
    """Call until it returns True."""
    for _ in range(RETRIES):
        if is_done():
            return
        time.sleep(RETRY_S)
    raise TimeoutError("the broker does not answer as expected")


def _recorded(wire: Wire, request: bytes) -> bytes:
    """Return the reply to a request, with its length."""
    wire.socket.sendall(request)
    reply = wire.read()
    return struct.pack(">i", len(reply)) + reply


GROUP_ROWS = (
    Row("OffsetFetch of 1,000 partitions, 4 x 4", "1/s", True, 3, offset_fetches(4, 4, 1000)),
    Row("ConsumerGroupHeartbeat, 4 connections x 16", "1/s", True, 3, consumer_heartbeats(4, 16)),
    Row("ConsumerGroupHeartbeat, 32 connections x 1", "1/s", True, 3, consumer_heartbeats(32, 1)),
    Row("consumer protocol: 1,000 members reach their target", "s", False, 1, reached_targets(1000)),
)

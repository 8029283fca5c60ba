"""A member of the consumer protocol (KIP-848) whose polls, close and tasks are cancelled at every suspension point,
while the coordinator moves partitions; and one of group_protocol=auto that becomes a classic member meanwhile.

Law C9: nothing hangs, no task is left, each record is delivered once and in order, and what is committed is what was
delivered.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from tests.unit.client.consumer.bookkeeper import GROUP, Bookkeeper, Group
from tests.unit.client.consumer.kit import QUICK, TOPIC, TOPIC_ID, batch
from tests.unit.client.network.scripted import eventually
from tests.unit.suspensions import BEFORE_THE_FIRST_STEP, TEN_S, cancel, task_cancelled_at, tasks_of_ours

from rota.client.config import ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse
from rota.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from rota.transport import authentication

RECORDS = 20  # of each partition
BOTH = frozenset({0, 1})
IMPATIENT = 5  # cancellations, one at each suspension


class EpochGroup(Bookkeeper):
    """A coordinator of one member. `target`: the partitions that it is to have; `assigned`: those it was given last;
    `owned`: those it reported. `hides_topics`: the metadata have no topics before the member joins."""

    def __init__(self) -> None:
        super().__init__(2)
        self.member_id, self.epoch, self.hides_topics = "", 0, False
        self.target, self.assigned, self.owned = BOTH, frozenset[int](), frozenset[int]()
        for broker in self.brokers:
            broker.on(ConsumerGroupHeartbeatRequest, self._heartbeat)
            broker.on(SaslHandshakeRequest, lambda _: SaslHandshakeResponse(mechanisms=("PLAIN",)))
            broker.on(SaslAuthenticateRequest, lambda _: SaslAuthenticateResponse(session_lifetime_ms=20))

    def _heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        if request.member_epoch == 0:
            self.member_id, self.assigned = request.member_id, frozenset()
            self.epoch, self.hides_topics = self.epoch + 1, False
        elif request.member_id != self.member_id:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        elif request.member_epoch < 0:
            self.member_id, self.assigned, self.owned = "", frozenset(), frozenset()
            return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=-1)
        elif request.member_epoch != self.epoch:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.FENCED_MEMBER_EPOCH)
        if request.topic_partitions is not None:
            self.owned = frozenset(part for topic in request.topic_partitions for part in topic.partitions)
        is_unchanged = self.assigned == self.target and request.subscribed_topic_names is None
        self.assigned = self.target
        parts = (TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(sorted(self.target))),) if self.target else ()
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=5,
            assignment=None if is_unchanged else Assignment(topic_partitions=parts),
        )

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        return self.brokers[0].metadata() if self.hides_topics else super()._metadata(request)

    async def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        if (request.member_id, request.generation_id_or_member_epoch) != (self.member_id, self.epoch):
            self.refusals.insert(0, ErrorCode.STALE_MEMBER_EPOCH)
        return await super()._commit(request)


@asynccontextmanager
async def serving(group: Bookkeeper) -> AsyncIterator[Bookkeeper]:
    for partition in group.batches:
        group.write(partition, *(batch(base, 5) for base in range(0, RECORDS, 5)))
    for broker in group.brokers:
        await broker.listen()
    try:
        yield group
    finally:
        for broker in group.brokers:
            await broker.stop()


def made(group: Bookkeeper, **settings: Any) -> Consumer:
    config = {"bootstrap_servers": group.brokers[0].address, "group_id": GROUP, "group_protocol": "consumer"}
    given = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 0, "max_poll_records": 3}
    return Consumer(ConsumerConfig(**config | given | QUICK | {"fetch_max_wait_ms": 5} | settings))


async def ended(before: set[asyncio.Task[Any]]) -> None:
    """No task but those is left."""
    await eventually(lambda: tasks_of_ours() == before)


class Reading:
    """A user who polls until all is read, while partition 1 is taken away and given back. `seen`: by partition."""

    def __init__(self, group: EpochGroup, consumer: Consumer) -> None:
        self.group, self.consumer = group, consumer
        self.seen: dict[int, list[int]] = defaultdict(list)
        self.events: list[str] = []
        consumer.subscribe([TOPIC], on_assigned=self._callback("assigned"), on_revoked=self._callback("revoked"))

    def _callback(self, what: str) -> Callable[[tuple[Any, ...]], Coroutine[Any, Any, None]]:
        async def record_event(partitions: tuple[Any, ...]) -> None:
            await asyncio.sleep(0)
            self.events.append(f"{what} {sorted(item.partition for item in partitions)}")

        return record_event

    async def poll(self) -> None:
        for partition, records in (await self.consumer.getmany(timeout_ms=5)).items():
            self.seen[partition.partition] += [record.offset for record in records]

    async def read_all(self) -> None:
        """Read on from where an earlier call was cancelled."""
        while len(self.seen[1]) < 8 and self.group.target == BOTH and "revoked [1]" not in self.events:
            await self.poll()
        if "revoked [1]" not in self.events:
            self.group.target = frozenset({0})
        while self.group.target != BOTH:
            await self.poll()
            if self.group.owned == frozenset({0}):
                self.group.target = BOTH
        while sum(map(len, self.seen.values())) < 2 * RECORDS or "assigned [1]" not in self.events:
            await self.poll()

    async def finish(self) -> None:
        async with asyncio.timeout(TEN_S):
            await self.read_all()
            await self.consumer.commit()

    def check(self) -> None:
        assert dict(self.seen) == {0: list(range(RECORDS)), 1: list(range(RECORDS))}
        assert self.group.committed == {0: RECORDS, 1: RECORDS}
        moves = [move for move in self.events if move != "assigned []"]  # before the metadata have the topic
        assert moves == ["assigned [0, 1]", "revoked [1]", "assigned [1]", "revoked [0, 1]"]


@pytest.mark.parametrize("times", [1, IMPATIENT])
async def test_a_member_whose_polls_are_cancelled_reads_each_record_once(times: int) -> None:
    for suspension in count(BEFORE_THE_FIRST_STEP):
        async with serving(group := EpochGroup()):
            before = tasks_of_ours()
            async with made(group) as consumer:
                user = Reading(group, consumer)
                reached, _ = await cancel(user.read_all(), suspension, times)
                await user.finish()
            user.check()
            await ended(before)
            assert group.member_id == ""
        if not reached:
            break
    assert suspension > 20


CANCELLED_TASKS = [
    *(("Membership._send_request", nth) for nth in range(4)),
    *(("Membership._run", nth) for nth in range(3)),
    ("Membership._find", 0),
    ("Membership._refresh", 0),
    *(("_renew_until_end", nth) for nth in range(2)),  # the sessions of its connections (KIP-368)
]
SASL = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "alice",
    "sasl_password": "planted-secret",
}


@pytest.mark.parametrize(("name", "nth"), CANCELLED_TASKS)
async def test_a_member_whose_tasks_are_cancelled_reads_each_record_once(
    name: str, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "RENEWAL_SECONDS_MIN", 0.0)
    security = SASL if name == "_renew_until_end" else {}
    for suspension in count(BEFORE_THE_FIRST_STEP):
        async with serving(group := EpochGroup()):
            before = tasks_of_ours()
            group.hides_topics = name == "Membership._refresh"
            with task_cancelled_at(name, nth, suspension) as reached:
                async with made(group, **security) as consumer:
                    user = Reading(group, consumer)
                    await user.finish()
            user.check()
            await ended(before)
        if not reached or name == "Membership._run":  # a callback that has begun is the user's
            break
    assert suspension >= 0 or reached, f"there is no task {name}"


@pytest.mark.parametrize("call", ["close", "unsubscribe"])
async def test_a_member_whose_close_is_cancelled_leaves_nothing(call: str) -> None:
    for times in (1, IMPATIENT):
        for suspension in count(BEFORE_THE_FIRST_STEP):
            async with serving(group := EpochGroup()):
                before = tasks_of_ours()
                consumer = made(group)
                await consumer.start()
                user = Reading(group, consumer)
                while len(user.seen[0]) < 5:
                    await user.poll()
                reached, _ = await cancel(getattr(consumer, call)(), suspension, times)
                await asyncio.wait_for(consumer.close(), TEN_S)
                await ended(before)
                for partition, offset in group.committed.items():
                    assert offset <= len(user.seen[partition])
                if not reached:
                    assert all(group.committed[part] == len(offsets) for part, offsets in user.seen.items())
                    assert group.member_id == ""
                    break


async def test_a_member_that_becomes_classic_while_its_polls_are_cancelled_reads_each_record_once() -> None:
    for suspension in count(BEFORE_THE_FIRST_STEP):
        async with serving(group := Group()):
            for broker in group.brokers:
                refused = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
                broker.on(ConsumerGroupHeartbeatRequest, lambda _, refused=refused: refused)
            before = tasks_of_ours()
            async with made(group, group_protocol="auto") as consumer:
                consumer.subscribe([TOPIC])
                seen: list[int] = []
                reached, _ = await cancel(read_all(consumer, seen), suspension)
                async with asyncio.timeout(TEN_S):
                    await read_all(consumer, seen)
                    await consumer.commit()
            assert seen == list(range(RECORDS))
            assert group.committed == {0: RECORDS}
            assert group.generation == 1
            await ended(before)
        if not reached:
            break


async def read_all(consumer: Consumer, seen: list[int]) -> None:
    while len(seen) < RECORDS:
        for records in (await consumer.getmany(timeout_ms=5)).values():
            seen.extend(record.offset for record in records)

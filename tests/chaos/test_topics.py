"""kill -9 while topics come and go: what was acknowledged holds, and the rest is whole or not there. T1, T2, A3."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from tests.chaos.daemon import Daemon
from tests.chaos.line import Line
from tests.chaos.requests import batch, create_topic, produce, produced, records_of

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.wire import UUID_ZERO

NAMES = [f"topic-{at}" for at in range(4)]
PARTITIONS = 2


class Owner:
    """Creates and deletes a topic of its own, again and again, and knows what the broker promised."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids: set[bytes] = set()
        self.id: bytes | None = None  # of the topic that is there; None: it is not
        self.is_pending = False
        self.changes = 0

    async def work(self, line: Line) -> None:
        """Until the connection breaks."""
        while not line.is_cut:
            self.is_pending = True
            await (self._create(line) if self.id is None else self._delete(line))

    async def _create(self, line: Line) -> None:
        topic = CreatableTopic(name=self.name, num_partitions=PARTITIONS, replication_factor=1)
        answer = await line.send(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
        if answer is None:
            return
        assert answer.topics[0].error_code == ErrorCode.NONE
        self.id, self.is_pending = bytes(answer.topics[0].topic_id), False
        self.changes += 1
        assert self.id not in self.ids, "a topic id was given twice"
        self.ids.add(self.id)
        response = await line.send(produce(0, batch(self.id), self.name), 9)
        assert response is None or produced(response) == (ErrorCode.NONE, 0)

    async def _delete(self, line: Line) -> None:
        state = DeleteTopicState(name=self.name, topic_id=UUID_ZERO)
        answer = await line.send(DeleteTopicsRequest(topics=(state,), timeout_ms=10_000), 6)
        if answer is not None:
            assert answer.responses[0].error_code == ErrorCode.NONE
            self.id, self.is_pending = None, False
            self.changes += 1

    async def check(self, line: Line, found: dict[str, tuple[bytes, int]]) -> None:
        """What is there is taken from here on for what was promised."""
        topic_id, partitions = found.get(self.name, (None, PARTITIONS))
        assert partitions == PARTITIONS
        assert self.is_pending or topic_id == self.id
        if topic_id is not None:
            records = await records_of(line, 0, self.name)
            assert set(records.values()) <= {topic_id}, "records of an earlier topic of that name"
            assert await records_of(line, 1, self.name) == {}
            self.ids.add(topic_id)
        self.id, self.is_pending = topic_id, False


async def topics(line: Line) -> dict[str, tuple[bytes, int]]:
    """(id, number of partitions) of each; every partition has a leader."""
    answer = await line.send_request(MetadataRequest(topics=None), 10)
    assert not any(item.error_code for topic in answer.topics for item in topic.partitions)
    return {topic.name: (bytes(topic.topic_id), len(topic.partitions)) for topic in answer.topics}


async def test_topics_are_created_and_deleted_while_brokers_die(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    owners = [Owner(name) for name in NAMES]
    async with Daemon(tmp_path / "data") as daemon:
        await create_topic(await daemon.line(), "stays")
        stays = (await topics(await daemon.line()))["stays"]
        for _ in range(4):
            lines = [await daemon.line() for _ in owners]
            async with asyncio.TaskGroup() as tasks:
                for owner, line in zip(owners, lines, strict=True):
                    tasks.create_task(owner.work(line))
                expected = sum(owner.changes for owner in owners) + random.randrange(2, 12)
                while sum(owner.changes for owner in owners) < expected:
                    await asyncio.sleep(0.001)
                await daemon.crash()
            line = await daemon.line()
            found = await topics(line)
            assert found["stays"] == stays
            for owner in owners:
                await owner.check(line, found)

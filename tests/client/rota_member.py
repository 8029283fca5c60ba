"""Rota's own consumer as a member in a thread and a loop of its own, as the other clients in tests/interop are."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Sequence
from typing import Any

from tests.interop.clients import POLL_S, named
from tests.interop.kit import Record
from tests.interop.members import Member

from rota.client.config import ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.types import OffsetAndMetadata, TopicPartition


class RotaMember(Member):
    """A `Consumer`."""

    def _live(self) -> None:
        try:
            asyncio.run(self._consume())
        except BaseException as failure:  # noqa: BLE001 - told to the test by check()
            self.failure = failure

    async def _consume(self) -> None:
        given = self.settings
        async with Consumer(self._config()) as consumer:
            topics = re.compile(given.pattern) if given.pattern else given.topics
            if topics:
                self._subscribe(consumer, topics)
            while not self._stop.is_set():
                if self._paused.is_set():
                    await asyncio.sleep(POLL_S)
                    continue
                await self._answer(consumer)
                for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
                    self.records.extend(Record(r.topic, r.partition, r.offset, r.key, r.value) for r in records)

    def _config(self) -> ConsumerConfig:
        given = self.settings
        return ConsumerConfig(
            bootstrap_servers=self.bootstrap,
            group_id=given.group,
            client_id=given.client_id,
            group_instance_id=given.instance,
            partition_assignment_strategy=tuple(given.assignors),
            session_timeout_ms=given.session_ms,
            heartbeat_interval_ms=given.heartbeat_ms,
            max_poll_interval_ms=given.poll_interval_ms,
            metadata_max_age_ms=given.metadata_age_ms,
            auto_offset_reset=given.reset,
            enable_auto_commit=given.auto_commit,
            auto_commit_interval_ms=100,
            fetch_max_wait_ms=50,
        )

    def _subscribe(self, consumer: Consumer, topics: Sequence[str] | re.Pattern[str]) -> None:
        consumer.subscribe(
            topics,
            on_assigned=lambda partitions: self._gained(named(partitions)),
            on_revoked=lambda partitions: self._gave_up(named(partitions)),
        )

    async def _answer(self, consumer: Consumer) -> None:
        for function, answer in self._pending():
            try:
                result = function(consumer)
                answer.set_result(await result if inspect.isawaitable(result) else result)
            except Exception as error:  # noqa: BLE001 - raised where the question was asked
                answer.set_exception(error)

    def subscribe(self, topics: Sequence[str]) -> None:
        self.run_in_thread(lambda consumer: self._subscribe(consumer, list(topics)))

    def commit(self, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        position = {TopicPartition(topic, partition): OffsetAndMetadata(offset, metadata)}
        self.run_in_thread(lambda consumer: consumer.commit(position))

    def committed(self, topic: str, partition: int) -> int | None:
        requests = TopicPartition(topic, partition)

        async def look(consumer: Consumer) -> int | None:
            found = (await consumer.committed(requests))[requests]
            return None if found is None else found.offset

        result: Any = self.run_in_thread(look)
        return result

    def position(self, topic: str, partition: int) -> int | None:
        if (topic, partition) not in self.owned:
            return None
        return self.run_in_thread(lambda consumer: consumer.position(TopicPartition(topic, partition)))

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.run_in_thread(lambda consumer: consumer.seek(TopicPartition(topic, partition), offset))

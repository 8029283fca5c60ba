"""One query with a transactional sink on a real broker, its parts called as Spark calls them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pyarrow as pa

from rota.client import PartitionReader, TopicPartition
from rota.client.config import ClientConfig
from rota.spark_connector.options import WriteOptions, write_options
from rota.spark_connector.sink import prepare, settings_of
from rota.spark_connector.two_phase import micro_batch
from rota.spark_connector.two_phase.decision import Decision
from rota.spark_connector.two_phase.decision_topic import last_decision
from rota.spark_connector.two_phase.task_attempt import TaskAttempt
from rota.spark_connector.two_phase.task_write import PreparedTask

TASKS = 2


class World:
    """`topic` has two partitions. Task n of micro-batch b writes the value `b-n`."""

    def __init__(self, bootstrap: str, topic: str, query: str = "q", **options: str) -> None:
        self.bootstrap, self.topic, self.query = bootstrap, topic, query
        given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.transactional.id": topic}
        self.options: WriteOptions = write_options({**given, **options})
        assert self.options.transactions is not None
        self.transactions = self.options.transactions
        self.settings = settings_of(self.options)
        micro_batch.begin(self.settings, self.transactions)

    def task(self, batch: int, number: int, run: str, attempt: int = 0, task: int = 0) -> PreparedTask:
        rows = pa.RecordBatch.from_pydict({"value": pa.array([f"{batch}-{number}"])})
        return prepare(iter([rows]), self.options, TaskAttempt(self.query, run, batch, number, attempt, task))

    def tasks(self, batch: int, run: str = "run") -> list[PreparedTask]:
        return [self.task(batch, number, run) for number in range(TASKS)]

    def commit(self, batch: int, messages: Iterable[PreparedTask | None]) -> None:
        micro_batch.commit(list(messages), batch, self.settings, self.transactions)

    def abort(self, batch: int, messages: Iterable[PreparedTask | None]) -> None:
        micro_batch.abort(list(messages), batch, self.settings, self.transactions)

    def visible(self) -> list[str]:
        """What a reader of committed records sees, sorted."""
        return sorted(self._values("read_committed"))

    def written(self) -> list[str]:
        return sorted(self._values("read_uncommitted"))

    def decision(self) -> Decision | None:
        topic = self.transactions.decision_topic
        return asyncio.run(last_decision(self.settings, topic, self.query, is_exact=True))

    def _values(self, isolation: str) -> list[str]:
        async def read() -> list[str]:
            config = ClientConfig(bootstrap_servers=self.bootstrap)
            async with PartitionReader(config, isolation_level=isolation) as reader:
                partitions = [TopicPartition(self.topic, number) for number in range(2)]
                return [
                    (record.value or b"").decode() for one in partitions async for record in reader.read(one, -2, -1)
                ]

        return asyncio.run(read())


def expected(*batches: int) -> list[str]:
    """The values of these micro-batches, each once."""
    return sorted(f"{batch}-{number}" for batch in batches for number in range(TASKS))

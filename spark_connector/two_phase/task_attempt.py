"""Which attempt of which task of which query this process runs, and the transactional id that is its own.

Laws
    Two attempts that can run at the same time never have the same transactional id: one would abort the transaction of
    the other. An id has the query, its run (a start of the query), the partition and the number of the attempt. Where
    Spark runs a stage again it counts attempts from 0 again, while those of before may run: an id with an open
    transaction is not used, but one with the number of the task, which no other has.
    Else a query uses as many ids in a run as it has tasks in a micro-batch: each micro-batch uses them again.
"""

from __future__ import annotations

from typing import Final, Self

from pyspark import TaskContext

from rota.protocol.dataclass import dataclass
from rota.spark_connector.errors import OptionError

QUERY: Final = "sql.streaming.queryId"  # Spark's local properties of a micro-batch
BATCH: Final = "streaming.sql.batchId"
RUN: Final = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """`query` is the id in the checkpoint; `run` changes with each start of the query; `task` is the number of this
    attempt among all of the application."""

    query: str
    run: str
    batch: int
    partition: int
    attempt: int
    task: int

    @classmethod
    def of_stream(cls) -> Self:
        """The attempt that Spark runs in this process. Raises OptionError where Spark does not tell the query."""
        context = TaskContext.get()
        found = {name: context.getLocalProperty(name) if context else None for name in (QUERY, RUN, BATCH)}
        if context is None or None in found.values():
            missing = ", ".join(name for name, value in found.items() if value is None)
            raise OptionError(
                "kafka.transactional.id", "set", f"left out: this Spark does not give its tasks the property {missing}"
            )
        batch = int(found[BATCH] or 0)
        numbers = context.partitionId(), context.attemptNumber(), context.taskAttemptId()
        return cls(found[QUERY] or "", found[RUN] or "", batch, *numbers)

    def transactional_ids(self, prefix: str) -> tuple[str, str]:
        """The id of this attempt, and the one to use when that has an open transaction; `prefix` is the option
        kafka.transactional.id."""
        usual = f"{query_prefix(prefix, self.query)}{self.run}-{self.partition}-{self.attempt}"
        return usual, f"{usual}-{self.task}"


def query_prefix(prefix: str, query: str) -> str:
    """What the transactional ids of all attempts of a query begin with, and no other's do."""
    return f"{prefix}-{query}-"

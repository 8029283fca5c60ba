"""The calls of Spark to a sink on the driver at the begin and end of a micro-batch, in Python processes of its own.

Spark calls `abort` also after a `commit` that has failed, with the same messages.

Law
    A micro-batch without records leaves no decision: if it is repeated, its records are written for the first time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from pyspark.sql.datasource import WriterCommitMessage

from rota.client.producer.prepared import PreparedTransaction
from rota.spark_connector.options import Transactions
from rota.spark_connector.two_phase.committer import Committer
from rota.spark_connector.two_phase.decision_topic import create_topic
from rota.spark_connector.two_phase.task_write import PreparedTask

Messages = Sequence[WriterCommitMessage | None]


def begin(settings: Mapping[str, str], transactions: Transactions) -> None:
    """Create the decision topic where it is missing, before the tasks, each of which reads it. Raises KafkaError."""
    asyncio.run(create_topic(settings, transactions.decision_topic))


def commit(messages: Messages, batch: int, settings: Mapping[str, str], transactions: Transactions) -> None:
    """Commit what the tasks have prepared. Raises as Committer does."""
    tasks, prepared = prepared_tasks(messages)
    is_decided = any(task.is_decided for task in tasks)
    if prepared or is_decided:
        how = partial(Committer.commit, is_decided=is_decided)
        asyncio.run(_end(how, tasks[0].query, prepared, batch, settings, transactions))


def abort(messages: Messages, batch: int, settings: Mapping[str, str], transactions: Transactions) -> None:
    """Abort what the tasks have prepared, unless it is decided. Where no task has ended nothing is known of the query:
    the next micro-batch aborts what is left. Raises as Committer does."""
    tasks, prepared = prepared_tasks(messages)
    if tasks:
        asyncio.run(_end(Committer.abort, tasks[0].query, prepared, batch, settings, transactions))


def prepared_tasks(messages: Messages) -> tuple[list[PreparedTask], list[PreparedTransaction]]:
    """The tasks that have ended, and their transactions."""
    tasks = [message for message in messages if isinstance(message, PreparedTask)]
    return tasks, [task.transaction for task in tasks if task.transaction is not None]


async def _end(
    how: Callable[[Committer, int, Sequence[PreparedTransaction]], Awaitable[None]],
    query: str,
    prepared: Sequence[PreparedTransaction],
    batch: int,
    settings: Mapping[str, str],
    transactions: Transactions,
) -> None:
    async with Committer(settings, transactions.prefix, transactions.decision_topic, query) as committer:
        await how(committer, batch, prepared)

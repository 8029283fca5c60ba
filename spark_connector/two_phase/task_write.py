"""One task of a micro-batch: write its rows in a transaction, and leave that open for the driver.

Laws
    The transaction is prepared when all of its records are acknowledged; an attempt that fails aborts its own.
    An attempt of a micro-batch that is decided writes nothing. The driver checks it again: what the decision does not
    name is never committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pyspark.sql.datasource import WriterCommitMessage

from rota.client.config import ClientConfig, ProducerConfig
from rota.client.network.cluster import Cluster
from rota.client.producer.prepared import PreparedTransaction, open_transaction
from rota.client.producer.producer import Producer
from rota.protocol.dataclass import dataclass
from rota.spark_connector.options import Transactions
from rota.spark_connector.two_phase.decision_topic import client_settings, last_decision
from rota.spark_connector.two_phase.errors import OldMicroBatch
from rota.spark_connector.two_phase.task_attempt import TaskAttempt


@dataclass
class PreparedTask(WriterCommitMessage):
    """What one task has prepared. `transaction` None: it has written nothing, because it had no rows, or because the
    micro-batch `is_decided`."""

    query: str
    records: int
    transaction: PreparedTransaction | None
    is_decided: bool = False


async def write_prepared(
    attempt: TaskAttempt,
    settings: Mapping[str, str],
    transactions: Transactions,
    send: Callable[[Producer], Awaitable[int]],
) -> PreparedTask:
    """`send` sends the rows of the task and returns their number. Raises OldMicroBatch, KafkaError, what `send`
    raises."""
    transactional_id = await _free_id(settings, *attempt.transactional_ids(transactions.prefix))
    decision = await last_decision(settings, transactions.decision_topic, attempt.query, is_exact=False)
    if decision is not None and decision.batch > attempt.batch:
        raise OldMicroBatch(attempt.query, attempt.batch, decision.batch, transactions.decision_topic)
    if decision is not None and decision.batch == attempt.batch:
        return PreparedTask(attempt.query, 0, None, is_decided=True)
    own = {"transactional.id": transactional_id}
    async with Producer(ProducerConfig.from_properties({**settings, **own})) as producer:
        await producer.begin_transaction()
        records = await send(producer)
        return PreparedTask(attempt.query, records, await producer.prepare_transaction())


async def _free_id(settings: Mapping[str, str], usual: str, other: str) -> str:
    """`usual`, or `other` when another attempt has left a transaction of that open, or still writes in it."""
    cluster = Cluster(ClientConfig.from_properties(client_settings(settings)))
    await cluster.start()
    try:
        return usual if await open_transaction(cluster, usual, 1) is None else other
    finally:
        await cluster.close()

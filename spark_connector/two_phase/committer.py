"""The driver's part of a micro-batch: decide, commit what the tasks have prepared, note that all is committed.

    fence ─▶ read ─▶ check ─▶ DECIDE ─▶ commit each ─▶ abort leftovers ─▶ note completion

Laws
    Before the decision no record of the micro-batch is visible, and after it none is written anew: whoever finds the
    decision commits what it names, and nothing else of that micro-batch.
    A micro-batch is decided once: by the first that writes after it has fenced the others and read no decision.
    A decided transaction that the broker has aborted is an error at each attempt, never silence; so is a decision that
    a task has found and that is not there any more.
    Nothing that is decided is aborted, also when Spark calls `abort` after a `commit` that failed. What was left open
    is discarded, before it is aborted, by a record that a fenced driver cannot write and that the next one reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, TypeVar

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, TransactionAborted
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.producer.prepared import (
    PreparedTransaction,
    abort_prepared,
    commit_prepared,
    is_open,
    open_ids,
    open_transaction,
)
from rota.client.producer.transaction import BROKERS_ADD, FEATURE
from rota.spark_connector.two_phase.decision import NONE_DECIDED, Decision
from rota.spark_connector.two_phase.decision_topic import DecisionTopic, client_settings
from rota.spark_connector.two_phase.errors import (
    DecidedTransactionLost,
    DecisionLost,
    OldMicroBatch,
    PreparedTransactionLost,
)
from rota.spark_connector.two_phase.task_attempt import query_prefix

T = TypeVar("T")
REQUESTS_MAX: Final = 64  # under way at a time
DISCARDED_MAX: Final = 1_000  # in one record
_log = logger("rota.spark")


class Committer:
    """`async with`: for one micro-batch of `query`. `settings` are those of the producers. Raises KafkaError."""

    def __init__(self, settings: Mapping[str, str], prefix: str, topic: str, query: str) -> None:
        self._query, self._topic, self._prefix = query, topic, query_prefix(prefix, query)
        self._decisions = DecisionTopic(settings, topic, query, f"{prefix}-{query}")
        self._cluster = Cluster(ClientConfig.from_properties(client_settings(settings)))

    async def __aenter__(self) -> Self:
        await self._decisions.__aenter__()
        try:
            await self._cluster.start()
        except BaseException as error:
            await self._decisions.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self._cluster.close()
        finally:
            await self._decisions.__aexit__(kind, error, at)

    async def commit(self, batch: int, prepared: Sequence[PreparedTransaction], *, is_decided: bool = False) -> None:
        """Commit the micro-batch: `prepared`, unless it was decided before; `is_decided`: a task has found it decided
        and written nothing. Raises PreparedTransactionLost, DecidedTransactionLost, DecisionLost, OldMicroBatch,
        KafkaError."""
        decision = await self._decisions.last()
        if is_decided and (decision is None or decision.batch < batch):
            raise DecisionLost(self._query, batch, self._topic)
        if decision is not None and decision.batch != batch and not decision.is_complete:
            await self._complete(decision, prepared)
        if decision is None or decision.batch < batch:
            await self._check(batch, prepared, decision)
            decision = Decision(batch, tuple(prepared))
            await self._decisions.write(decision)
        self._check_order(batch, decision)
        await self._complete(decision)

    async def abort(self, batch: int, prepared: Sequence[PreparedTransaction]) -> None:
        """Abort what is prepared, unless the micro-batch is decided: then commit it. Raises as `commit`."""
        decision = await self._decisions.last()
        if decision is not None and decision.batch == batch:
            await self._complete(decision)
            return
        await self._all(lambda one: abort_prepared(self._cluster, one), prepared)
        await self._abort_leftovers(decision or NONE_DECIDED)

    async def _check(self, batch: int, prepared: Sequence[PreparedTransaction], last: Decision | None) -> None:
        are_open = await self._all(lambda one: is_open(self._cluster, one), prepared)
        discarded = {one.incarnation for one in last.discarded} if last is not None else set()
        pairs = zip(prepared, are_open, strict=True)
        lost = [one.transactional_id for one, is_still in pairs if not is_still or one.incarnation in discarded]
        if lost:
            raise PreparedTransactionLost(self._query, batch, lost)

    def _check_order(self, batch: int, decision: Decision) -> None:
        if decision.batch > batch:
            raise OldMicroBatch(self._query, batch, decision.batch, self._topic)

    async def _complete(self, decision: Decision, prepared: Sequence[PreparedTransaction] = ()) -> None:
        """Commit what is decided, abort the rest of the query's transactions without those of `prepared`, and note that
        nothing is left."""
        if not decision.is_complete:
            await self._commit_all(decision)
        decision = await self._abort_leftovers(decision, prepared)
        if not decision.is_complete:
            await self._decisions.write(decision.completed())

    async def _commit_all(self, decision: Decision) -> None:
        is_committed = await self._all(self._is_committed, decision.transactions)
        pairs = zip(decision.transactions, is_committed, strict=True)
        lost = [one.transactional_id for one, done in pairs if not done]
        if lost:
            committed = len(decision.transactions) - len(lost)
            raise DecidedTransactionLost(self._query, decision.batch, self._topic, lost, committed)

    async def _is_committed(self, prepared: PreparedTransaction) -> bool:
        """Commit; False when the broker has aborted it."""
        try:
            await commit_prepared(self._cluster, prepared)
        except TransactionAborted as error:
            _log.error("a transaction that was to be committed is aborted", reason=str(error))
            return False
        return True

    async def _abort_leftovers(self, decision: Decision, prepared: Sequence[PreparedTransaction] = ()) -> Decision:
        """Abort what tasks have left open that were killed, or that Spark ran twice; return the decision with these. A
        failure is logged: they end by their timeout as well."""
        try:
            left = await self._leftovers({one.transactional_id for one in (*decision.transactions, *prepared)})
            for start in range(0, len(left), DISCARDED_MAX):
                part = tuple(left[start : start + DISCARDED_MAX])
                noted = replace(decision, discarded=part)
                await self._decisions.write(noted)
                decision = noted
                for each in part:
                    await abort_prepared(self._cluster, each)
        except KafkaError as error:
            _log.warning("transactions of earlier tasks were not aborted", query=self._query, reason=str(error))
        return decision

    async def _leftovers(self, kept: set[str]) -> list[PreparedTransaction]:
        """The open transactions of the query, without the ids `kept`."""
        version = min(BROKERS_ADD, max(1, self._cluster.finalized_feature(FEATURE)))
        names = [name for name in await open_ids(self._cluster, self._prefix) if name not in kept]
        found = [await open_transaction(self._cluster, name, version) for name in names]
        return [each for each in found if each is not None]

    async def _all(
        self, request: Callable[[PreparedTransaction], Awaitable[T]], prepared: Sequence[PreparedTransaction]
    ) -> list[T]:
        """The results, in order. All requests end before the first error is raised."""
        limit = asyncio.Semaphore(REQUESTS_MAX)

        async def one(transaction: PreparedTransaction) -> T:
            async with limit:
                return await request(transaction)

        found = await asyncio.gather(*map(one, prepared), return_exceptions=True)
        for result in found:
            if isinstance(result, BaseException):
                raise result
        return [result for result in found if not isinstance(result, BaseException)]

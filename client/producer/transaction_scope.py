"""`async with producer.transaction():` commits at the end of the block, and aborts when the block raises.

Laws
    After the block the transaction is committed or aborted, or the producer has failed, or an exception says that the
    outcome is not known.
    The exception of the block is raised; if the transaction had failed before, a TransactionError with it as the cause.
    A cancelled block is aborted within `CANCELLED_ABORT_MS`, or in the background.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from rota.client.errors import IllegalUse, KafkaError, TimedOut, TransactionError
from rota.client.log import logger
from rota.client.producer.transaction import TransactionState
from rota.client.producer.transactions import Transactions

CANCELLED_ABORT_MS: Final = 5_000
_log = logger("rota.client.transaction")


class TransactionScope:
    """One transaction. `timeout_ms`: of the commit or abort; None: max_block_ms."""

    def __init__(self, transactions: Transactions, timeout_ms: int | None) -> None:
        self._transactions, self._timeout_ms = transactions, timeout_ms
        self._is_used = False

    async def __aenter__(self) -> Self:
        if self._is_used:
            raise IllegalUse("a transaction is used once: call producer.transaction() again")
        self._is_used = True
        await self._transactions.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self._commit()
            return
        failure = self._transactions.machine.error
        await self._abort(error)
        if failure is not None and isinstance(error, KafkaError) and not isinstance(error, TransactionError):
            raise type(failure)(str(failure)) from error

    async def _commit(self) -> None:
        try:
            await self._transactions.commit(self._timeout_ms)
        except BaseException as why:
            if self._transactions.machine.state is not TransactionState.COMMIT_SENT:
                await self._abort(why)
            raise

    async def _abort(self, error: BaseException) -> None:
        """Abort, unless the producer has failed. A failure of the abort is added to `error` as a note."""
        if not self._transactions.machine.is_in_transaction:
            return
        is_cancelled = isinstance(error, asyncio.CancelledError)
        try:
            await self._transactions.abort(CANCELLED_ABORT_MS if is_cancelled else self._timeout_ms)
        except (TransactionError, TimedOut) as why:
            if not is_cancelled and isinstance(why, TransactionError):
                raise why from error
            error.add_note(f"and the transaction was not aborted: {why}")
            _log.warning("a transaction was not aborted", reason=str(why))

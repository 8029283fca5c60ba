"""Commit a query's progress to a consumer group, for tools that show lag; the checkpoint stays the truth.

Laws
    Committed offsets are in the checkpoint, and Spark has processed the records below them. No offset is committed
    twice.
    A commit that fails is logged and does not delay the query; it is tried again with the next micro-batch, or after
    RETRY_S.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

from rota.client.errors import KafkaError
from rota.client.log import logger
from rota.spark_connector.offsets import Offsets

RETRY_S: Final = 30.0
_log = logger("rota.spark")


class OffsetCommitter(Protocol):
    """Commits offsets; DriverClient in broker.py."""

    def commit(self, group: str, offsets: Offsets) -> None: ...


class GroupProgress:
    """The progress of one query in `group`; None: nothing is committed."""

    def __init__(self, group: str | None) -> None:
        self._group = group
        self._committed: Offsets | None = None
        self._failed: Offsets | None = None
        self._retry_at = 0.0

    def advance(self, offsets: Offsets, committer: OffsetCommitter) -> None:
        """Commit offsets that Spark has processed, unless they are committed or have just failed to be."""
        if self._group is None or offsets == self._committed:
            return
        if offsets == self._failed and time.monotonic() < self._retry_at:
            return
        try:
            committer.commit(self._group, offsets)
        except KafkaError as error:
            self._failed, self._retry_at = dict(offsets), time.monotonic() + RETRY_S
            _log.warning("The group's progress was not committed", group=self._group, reason=str(error))
        else:
            self._committed = dict(offsets)

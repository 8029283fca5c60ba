"""A query's progress in a consumer group, for tools that show lag; the checkpoint stays the truth.

Laws
    What is committed is in the checkpoint, and Spark is done with it. Nothing is committed twice.
    A commit that fails is logged and holds up no query; it is tried again with the next micro-batch, or after a while.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

from rota.client.errors import KafkaError
from rota.client.log import logger
from rota.spark_connector.offsets import Offsets

AGAIN_S: Final = 30.0
_log = logger("rota.spark")


class Told(Protocol):
    """Who is told: see broker.py."""

    def commit(self, group: str, offsets: Offsets) -> None: ...


class Progress:
    """`reached` with every offset that Spark is known to be done with; without a group there is nobody to tell."""

    def __init__(self, group: str | None) -> None:
        self._group = group
        self._committed: Offsets | None = None
        self._refused: Offsets | None = None
        self._again_at = 0.0

    def reached(self, offsets: Offsets, told: Told) -> None:
        """Commit, unless that was done, or has just failed."""
        if self._group is None or offsets == self._committed:
            return
        if offsets == self._refused and time.monotonic() < self._again_at:
            return
        try:
            told.commit(self._group, offsets)
        except KafkaError as why:
            self._refused, self._again_at = dict(offsets), time.monotonic() + AGAIN_S
            _log.warning("The group's progress was not committed", group=self._group, reason=str(why))
        else:
            self._committed = dict(offsets)

"""A DeleteRecords that waits for the logs of the followers to start where the leader's does.

Law
    RE9 A deletion of records is acknowledged when no replica has them that is live, or in the ISR or the ELR and may be
        elected when it is back: the next leader does not bring them back.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING, Final

from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition
    from rota.coordinator.scheduling.timers import Timers

_TIMER: Final = "deletion of records"


class DelayedDeletion:
    """`reply` is the error code of the deletion of the records before `offset`; REQUEST_TIMED_OUT at `deadline_ms`.

    `live` returns the brokers whose replicas count.
    """

    __slots__ = ("_live", "_offset", "_partition", "_timers", "_watch", "reply")

    def __init__(
        self,
        partition: Partition,
        offset: int,
        live: Callable[[], Container[int]],
        timers: Timers,
        deadline_ms: int,
    ) -> None:
        self.reply: DelayedReply[ErrorCode] = DelayedReply()
        self._partition, self._offset, self._live, self._timers = partition, offset, live, timers
        self._watch = partition.watch_log_starts(self._look)
        timers.at((_TIMER, id(self)), deadline_ms, partial(self._end, ErrorCode.REQUEST_TIMED_OUT))

    def _look(self) -> None:
        error = self._partition.deletion_error(self._offset, self._live())
        if error is not None:
            self._end(error)

    def _end(self, error: ErrorCode) -> None:
        self._partition.unwatch(self._watch)
        self._timers.cancel((_TIMER, id(self)))
        self.reply.answer(error)

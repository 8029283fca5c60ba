"""The exceptions of a log. `contract.py` says which method raises which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rota.protocol.errors import ErrorCode

Load = Callable[[], None]


class AppendRefused(Exception):
    """The batch is invalid and was not written; the producer is at fault. `code` is the error code of the response.

    `records` holds (index in the batch, message) of each invalid record, when records are at fault (KIP-467).
    """

    def __init__(self, code: ErrorCode, message: str, records: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.code, self.records = code, records


class OffsetOutOfRange(Exception):
    """A read outside [log_start_offset, log_end_offset]."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is outside the log, which holds {start} to {end}")


class StorageFailed(Exception):
    """The disk returned an error. The partition is offline until the log is reopened."""


class NotLeader(StorageFailed):
    """The partition is led by another broker, or by this one in another leader epoch: its log takes no write."""


class DamagedLog(StorageFailed):
    """A read met bytes that are no batch among records that were flushed. The rest of the log can be used."""


class NotCached(Exception):
    """A read with `wait=False` needs bytes that are not in the page cache. Each of `loads` brings some of them there.

    A load blocks. It may run in any thread, even after the log was truncated or closed. It raises OSError. Loads of
    the same bytes are equal.
    """

    def __init__(self, *loads: Load) -> None:
        super().__init__("the read would wait for the disk")
        self.loads = loads

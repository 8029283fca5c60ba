"""What the connector raises. Each message says what was found, what is right and what to do."""

from __future__ import annotations

from rota.client.errors import TimedOut
from rota.client.types import TopicPartition


class OptionError(ValueError):
    """An option that is not known, not of its form, or at odds with another one."""

    def __init__(self, option: str, given: object, right: str) -> None:
        super().__init__(f"option {option} is {given!r}; it must be {right}")
        self.option = option


class DataLost(RuntimeError):
    """Records that the query had still to read are gone from the log, and failOnDataLoss is true."""


class HighWatermarkBehind(TimedOut):
    """The leader's log has records that the query must read, but its high watermark stays below them."""

    def __init__(self, partition: TopicPartition, mark: int, end: int, waited_ms: int) -> None:
        super().__init__(
            f"{partition} is readable up to offset {mark} and the query must read up to offset {end}; the log of its "
            f"leader goes on, but its high watermark (for read_committed its last stable offset) has not moved there "
            f"within {waited_ms} ms. No record is lost. Start the query again when the replicas are in sync and no "
            f"transaction is open, or raise kafka.default.api.timeout.ms"
        )
        self.partition, self.mark, self.end = partition, mark, end

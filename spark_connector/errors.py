"""The exceptions of the connector. Each message has the problem, the expected value and the remedy."""

from __future__ import annotations

import re
from typing import Final

from rota.client.errors import TimedOut
from rota.client.types import TopicPartition

_SECRET: Final = re.compile(r"password|secret|jaas|token|[._a-z]key\b|key[._]pem", re.IGNORECASE)
REMEDY: Final = "Set failOnDataLoss=false to continue with the records that exist."


class OptionError(ValueError):
    """An option has an unknown name, an invalid value, or contradicts another option. The message has no value of an
    option whose name looks like one of a secret."""

    def __init__(self, option: str, value: object, expected: str) -> None:
        shown = "[hidden]" if _SECRET.search(option) and value is not None else repr(value)
        super().__init__(f"option {option} is {shown}; it must be {expected}")
        self.option = option


class DataLost(RuntimeError):
    """Records that the query still has to read are not in the log, and failOnDataLoss is true."""


class HighWatermarkBehind(TimedOut):
    """The leader's log has records that the query must read, but its high watermark stays below them."""

    def __init__(self, partition: TopicPartition, mark: int, end: int, waited_ms: int) -> None:
        super().__init__(
            f"{partition} is readable up to offset {mark} and the query must read up to offset {end}; the log of its "
            f"leader continues, but its high watermark (for read_committed its last stable offset) did not reach that "
            f"offset within {waited_ms} ms. No record is lost. Start the query again when the replicas are in sync and "
            f"no transaction is open, or raise kafka.default.api.timeout.ms"
        )
        self.partition, self.mark, self.end = partition, mark, end

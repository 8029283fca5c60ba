"""The messages and fields of a log's exceptions."""

from __future__ import annotations

from rota.coordinator.log.errors import AppendRefused, OffsetOutOfRange
from rota.protocol.errors import ErrorCode


def test_errors_have_readable_messages() -> None:
    assert str(OffsetOutOfRange(9, 2, 5)) == "offset 9 is outside the log, which holds 2 to 5"
    refused = AppendRefused(ErrorCode.CORRUPT_MESSAGE, "why")
    assert (refused.code, str(refused)) == (ErrorCode.CORRUPT_MESSAGE, "why")

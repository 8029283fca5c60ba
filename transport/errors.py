"""What a connection to a broker raises. `KafkaError` is the root of all that the client raises, too."""

from __future__ import annotations

from typing import ClassVar


class KafkaError(Exception):
    """The root of all that the client raises on purpose."""

    retriable: ClassVar[bool] = False


class Unreachable(KafkaError, ConnectionError):
    """No connection to a broker, or it broke before the answer came. What was asked may have been done or not."""

    retriable = True


class TimedOut(KafkaError, TimeoutError):
    """No answer, or no success, within the time that a setting or the caller gave."""

    retriable = True


class Unsupported(KafkaError):
    """The broker knows no version of an API that can say what was asked."""

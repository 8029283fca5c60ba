"""The exceptions of a connection to a broker. `KafkaError` is the base class of all exceptions of the client, too."""

from __future__ import annotations

from typing import ClassVar


class KafkaError(Exception):
    """The base class of the exceptions that the client raises."""

    retriable: ClassVar[bool] = False


class Unreachable(KafkaError, ConnectionError):
    """No connection to a broker, or it closed before the response. The broker may have executed the request or not."""

    retriable = True


class TimedOut(KafkaError, TimeoutError):
    """No response, or no success, within the timeout of a setting or of the caller."""

    retriable = True


class Unsupported(KafkaError):
    """The broker supports no version of the API that this request needs."""

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


class SettingRefused(KafkaError, ValueError):
    """A security setting that cannot be used: a missing file, a wrong password. `setting` is its name. The message
    contains no secret."""

    def __init__(self, setting: str, problem: str = "") -> None:
        super().__init__(f"{setting} ({setting.replace('_', '.')}) {problem}" if problem else setting)
        self.setting = setting


class AuthenticationFailed(KafkaError):
    """A broker does not accept this client, or this client does not accept the broker. It is raised at once: another
    attempt with the same settings fails again. `broker` is the broker's name, `mechanism` the SASL mechanism (empty
    for TLS), `detail` what the broker said."""

    def __init__(self, message: str, *, broker: str = "", mechanism: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.broker, self.mechanism, self.detail = broker, mechanism, detail


class TlsFailed(AuthenticationFailed):
    """TLS with a broker failed: an unknown authority, another host name, a refused client certificate, a listener
    without TLS."""

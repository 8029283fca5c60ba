"""The results of one call for many keys: pending, done and failed keys. Pure.

Laws
    A key is pending until it has a final result. A key with a final result is never requested again, so that a retry
    for other keys cannot turn its success into a failure.
    At the end each key is in `done` or in `failed`.
    A failure of the whole call is raised unchanged; a failure of some keys is raised as AdminFailed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from rota.client.errors import AdminFailed, BrokerError, KafkaError, UnknownTopic
from rota.client.network.error_actions import ErrorAction, error_action
from rota.protocol.errors import ErrorCode

K = TypeVar("K")
V = TypeVar("V")

UNKNOWN_TOPIC_CODES: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_RETRY_ACTIONS: Final = frozenset({ErrorAction.RETRY, ErrorAction.REFRESH, ErrorAction.REDISCOVER})


class ErrorContext(NamedTuple):
    """The topic, partition, group or broker that an error message names."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    broker: str | None = None


class SentRequest(NamedTuple, Generic[K]):
    """The broker that a request was sent to, and its keys."""

    node: int
    keys: tuple[K, ...]


class KeyResult(NamedTuple, Generic[K, V]):
    """The result of one key in a response. `value` is valid when `code` is 0."""

    key: K
    code: int
    value: V
    detail: str | None = None


class CallResults(Generic[K, V]):
    """`what` ("creating topics") and `context` are used in error messages; `api` (the API key) selects the error
    actions. Error codes in `final` are never retried."""

    def __init__(
        self,
        what: str,
        api: int,
        keys: Iterable[K],
        context: Callable[[K], ErrorContext],
        *,
        final: frozenset[ErrorCode] = frozenset(),
        remedies: dict[ErrorCode, str] | None = None,
    ) -> None:
        self.what = what
        self.done: dict[K, V] = {}
        self.failed: dict[K, KafkaError] = {}
        self._pending: dict[K, BrokerError | None] = dict.fromkeys(keys)
        self._order = tuple(self._pending)
        self._api, self._context, self._final, self._remedies = api, context, final, remedies or {}

    def pending(self, keys: Iterable[K] | None = None) -> tuple[K, ...]:
        """The keys without a final result: those of `keys`, or all."""
        return tuple(key for key in (self._order if keys is None else keys) if key in self._pending)

    def record(self, result: KeyResult[K, V]) -> int:
        """Record a result. Returns its error code when the key has to be requested again, else 0."""
        key, code, value, detail = result
        if key not in self._pending:
            return 0
        if code == ErrorCode.NONE:
            self.succeed(key, value)
            return 0
        error = self.error(key, code, detail)
        if self._is_final(code):
            self.fail(key, error)
            return 0
        self._pending[key] = error
        return code

    def succeed(self, key: K, value: V) -> None:
        self._pending.pop(key, None)
        self.failed.pop(key, None)
        self.done[key] = value

    def fail(self, key: K, error: KafkaError) -> None:
        """Record a failure, also for a key that was done: a later step has failed."""
        self._pending.pop(key, None)
        self.done.pop(key, None)
        self.failed[key] = error

    def fail_pending(self, cause: KafkaError | None = None, keys: Iterable[K] | None = None) -> None:
        """Fail the pending keys: each with the last error that a broker returned for it, else with `cause`."""
        for key in self.pending(keys):
            missing = KafkaError(f"{self.what}: the broker's answer says nothing of {key}")
            self.fail(key, self._pending[key] or cause or missing)

    def error(self, key: K, code: int, detail: str | None = None) -> BrokerError:
        kind = UnknownTopic if code in UNKNOWN_TOPIC_CODES else BrokerError
        remedy = self._remedies.get(ErrorCode.of(code), "")
        return kind(code, self.what, **self._context(key)._asdict(), detail=detail, remedy=remedy)

    def all_or_raise(self) -> dict[K, V]:
        """Return the values in the order of the keys. Raises AdminFailed, or the error that ended the whole call."""
        self.fail_pending()
        causes = {id(error): error for error in self.failed.values()}
        if not causes:
            return {key: self.done[key] for key in self._order}
        first = next(iter(causes.values()))
        if not self.done and len(causes) == 1 and not isinstance(first, BrokerError):
            raise first
        raise AdminFailed(self.what, self.done, self.failed) from first

    def _is_final(self, code: int) -> bool:
        return ErrorCode.of(code) in self._final or error_action(self._api, code) not in _RETRY_ACTIONS

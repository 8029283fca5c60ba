"""One call about many things: what is still to be asked, what worked, what failed. Pure.

Laws
    A thing is asked for until its own answer is final; what is final is never asked for again, so that a retry of the
    others cannot turn what worked into a failure.
    Nothing is lost: in the end each thing is in `done` or in `failed`.
    A failure of the call as a whole is raised as itself, a failure of some things as AdminFailed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from rota.client.errors import AdminFailed, BrokerError, KafkaError, UnknownTopic
from rota.client.network.error_actions import ErrorAction, error_action
from rota.protocol.errors import ErrorCode

K = TypeVar("K")
V = TypeVar("V")

UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_AGAIN: Final = frozenset({ErrorAction.RETRY, ErrorAction.REFRESH, ErrorAction.REDISCOVER})


class Place(NamedTuple):
    """What an error names."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    broker: str | None = None


class Asked(NamedTuple, Generic[K]):
    """Who was asked, and for what."""

    node: int
    keys: tuple[K, ...]


class Answer(NamedTuple, Generic[K, V]):
    """What a broker said of one thing. `value` counts when `code` is 0."""

    key: K
    code: int
    value: V
    detail: str | None = None


class Outcomes(Generic[K, V]):
    """`what` ("creating topics") and `place` are for messages, `api` for verdicts; codes in `final` are not asked
    again, whatever the verdict."""

    def __init__(
        self,
        what: str,
        api: int,
        things: Iterable[K],
        place: Callable[[K], Place],
        *,
        final: frozenset[ErrorCode] = frozenset(),
        remedies: dict[ErrorCode, str] | None = None,
    ) -> None:
        self.what = what
        self.done: dict[K, V] = {}
        self.failed: dict[K, KafkaError] = {}
        self._waiting: dict[K, BrokerError | None] = dict.fromkeys(things)
        self._order = tuple(self._waiting)
        self._api, self._place, self._final, self._remedies = api, place, final, remedies or {}

    def open(self, among: Iterable[K] | None = None) -> tuple[K, ...]:
        """What has no final answer yet."""
        return tuple(key for key in (self._order if among is None else among) if key in self._waiting)

    def take(self, answer: Answer[K, V]) -> int:
        """Notes what was said; the code when it calls for another try, 0 otherwise."""
        key, code, value, detail = answer
        if key not in self._waiting:
            return 0
        if code == ErrorCode.NONE:
            self.succeed(key, value)
            return 0
        error = self.error(key, code, detail)
        if self._is_final(code):
            self.fail(key, error)
            return 0
        self._waiting[key] = error
        return code

    def succeed(self, key: K, value: V) -> None:
        self._waiting.pop(key, None)
        self.failed.pop(key, None)
        self.done[key] = value

    def fail(self, key: K, error: KafkaError) -> None:
        """Also takes back what was done before: a later step of it failed."""
        self._waiting.pop(key, None)
        self.done.pop(key, None)
        self.failed[key] = error

    def give_up(self, why: KafkaError | None = None, among: Iterable[K] | None = None) -> None:
        """What is still open has failed: with the last code that a broker gave for it, or with `why`."""
        for key in self.open(among):
            silent = KafkaError(f"{self.what}: the broker's answer says nothing of {key}")
            self.fail(key, self._waiting[key] or why or silent)

    def error(self, key: K, code: int, detail: str | None = None) -> BrokerError:
        kind = UnknownTopic if code in UNKNOWN else BrokerError
        remedy = self._remedies.get(ErrorCode.of(code), "")
        return kind(code, self.what, **self._place(key)._asdict(), detail=detail, remedy=remedy)

    def results(self) -> dict[K, V]:
        """Everything that was asked for, in that order. Raises AdminFailed, or what ended the whole call."""
        self.give_up()
        causes = {id(error): error for error in self.failed.values()}
        if not causes:
            return {key: self.done[key] for key in self._order}
        first = next(iter(causes.values()))
        if not self.done and len(causes) == 1 and not isinstance(first, BrokerError):
            raise first
        raise AdminFailed(self.what, self.done, self.failed) from first

    def _is_final(self, code: int) -> bool:
        return ErrorCode.of(code) in self._final or error_action(self._api, code) not in _AGAIN

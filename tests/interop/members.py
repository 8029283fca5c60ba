"""A group member in a thread of its own, with one interface for confluent-kafka, kafka-python and aiokafka.

A test reads the assignment and the records of the member. `run_in_thread` calls its consumer in the member's own thread
(or loop), so that only one thread uses a client.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from tests.interop.kit import PATIENCE_S, Record, unique

LOOK_S = 0.02

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a member behaves, in the words of the Java client. Small, so that a rebalance is noticed quickly."""

    group: str | None
    topics: Sequence[str] = ()
    pattern: str | None = None
    client_id: str = field(default_factory=lambda: unique("client"))
    assignors: Sequence[str] = ("range",)
    instance: str | None = None
    session_ms: int = 6_000
    heartbeat_ms: int = 100
    poll_interval_ms: int = 30_000
    metadata_age_ms: int = 300
    reset: str = "earliest"
    auto_commit: bool = False


class Member(ABC):
    """A consumer that polls until it is closed."""

    def __init__(self, bootstrap: str, settings: Settings) -> None:
        self.bootstrap = bootstrap
        self.settings = settings
        self.records: list[Record] = []
        self.owned: frozenset[Partition] = frozenset()
        self.assigned_times = 0
        self.lost: list[frozenset[Partition]] = []  # what each revocation took
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._paused = threading.Event()
        self._calls: SimpleQueue[tuple[Callable[[Any], Any], Future[Any]]] = SimpleQueue()
        self._thread = threading.Thread(target=self._live, name=settings.client_id, daemon=True)
        self._thread.start()

    # -- what a test asks

    @property
    def partitions(self) -> set[int]:
        """Numbers of the owned partitions, for tests with one topic."""
        self.check()
        return {partition for _, partition in self.owned}

    @property
    def values(self) -> list[bytes | None]:
        self.check()
        return [record.value for record in self.records]

    def run_in_thread(self, function: Callable[[Any], Any]) -> Any:
        """What `function(consumer)` returns (a coroutine is awaited) in the member's own thread."""
        answer: Future[Any] = Future()
        self._calls.put((function, answer))
        return answer.result(PATIENCE_S)

    @abstractmethod
    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to other topics than before."""

    @abstractmethod
    def commit(self, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        """Commit one offset and wait for the answer; the client's own exception when it is refused."""

    @abstractmethod
    def committed(self, topic: str, partition: int) -> int | None:
        """The offset that the group has committed, None for none."""

    @abstractmethod
    def position(self, topic: str, partition: int) -> int | None:
        """The offset of the next record; None when there is none yet."""

    @abstractmethod
    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read on from there."""

    def stop_polling(self) -> None:
        """From now on the application is stuck: no poll, no answer, until `resume_polling`."""
        self._paused.set()

    def resume_polling(self) -> None:
        self._paused.clear()

    def stop(self) -> None:
        """Begin to close; `close` waits for it."""
        self._paused.clear()
        self._stop.set()

    def close(self) -> None:
        """Leave as a good client does, and wait for it."""
        self.stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.settings.client_id} did not close"
        self.check()

    def check(self) -> None:
        """Raise what the member's thread died of."""
        if self.failure is not None:
            raise AssertionError(f"member {self.settings.client_id} failed") from self.failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- what a client fills in

    @abstractmethod
    def _live(self) -> None:
        """Open, poll until `_stop`, close; keep what went wrong in `failure`."""

    def _gained(self, partitions: frozenset[Partition]) -> None:
        self.owned |= partitions
        self.assigned_times += 1

    def _gave_up(self, partitions: frozenset[Partition]) -> None:
        self.owned -= partitions
        self.lost.append(partitions)

    def _pending(self) -> list[tuple[Callable[[Any], Any], Future[Any]]]:
        """Questions asked since the last look."""
        pending = []
        while True:
            try:
                pending.append(self._calls.get_nowait())
            except Empty:
                return pending


class BlockingMember(Member):
    """A client whose calls block: confluent-kafka, kafka-python."""

    def _live(self) -> None:
        try:
            consumer = self._open()
            try:
                while not self._stop.is_set():
                    if self._paused.is_set():
                        self._stop.wait(LOOK_S)
                        continue
                    self._answer(consumer)
                    self.records.extend(self._poll(consumer))
            finally:
                consumer.close()
        except BaseException as failure:  # noqa: BLE001 - told to the test by check()
            self.failure = failure

    def _answer(self, consumer: Any) -> None:
        for function, answer in self._pending():
            try:
                answer.set_result(function(consumer))
            except Exception as error:  # noqa: BLE001 - raised where the question was asked
                answer.set_exception(error)

    @abstractmethod
    def _open(self) -> Any: ...

    @abstractmethod
    def _poll(self, consumer: Any) -> list[Record]: ...

"""What becomes of batches when a request is over, or when time is. Pure: what the shell has to do comes back as data.

Laws
    Every batch of a request that is over is delivered, goes out again, is split or is given up.
    `maybe_written` is told of a record exactly when an attempt may have reached the log and no answer denies it.
    More than `retries` repetitions are not made.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field

from rota.client.errors import KafkaError, TimedOut, Unreachable
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.answers import Next, doubts, judged, refusal, refused, written
from rota.client.producer.batch import Batch, Failed, Written
from rota.client.producer.sequences import Advice
from rota.protocol.messages.produce import PartitionProduceResponse


@dataclass(slots=True)
class After:
    """Batches that were given up, lines for the log; whether the metadata is out of date."""

    failed: list[Batch] = field(default_factory=list)
    notes: list[tuple[str, Batch]] = field(default_factory=list)
    stale: bool = False


class Settling:
    """`pause_ms(n)`: how long to wait after n attempts."""

    def __init__(self, accumulator: Accumulator, retries: int, pause_ms: Callable[[int], float]) -> None:
        self._accumulator, self._retries, self._pause_ms = accumulator, retries, pause_ms

    def sent(self, batches: Iterable[Batch]) -> None:
        """They are on their way, and no answer was asked for."""
        for batch in batches:
            self._accumulator.landed(batch)
            self._accumulator.deliver(batch, Written(-1))

    def unanswered(self, batches: Iterable[Batch], why: KafkaError, now_ms: float) -> After:
        """The request ended without an answer."""
        after = After(stale=True)
        for batch in batches:
            self._accumulator.landed(batch)
            batch.last_error = why
            if isinstance(why, Unreachable | TimedOut):
                batch.doubt = True
                self._again(batch, now_ms, after)
            else:  # it could not be said at all
                self._fail(batch, Failed(why, batch.doubt), after)
        return after

    def answered(
        self,
        pairs: Iterable[tuple[Batch, PartitionProduceResponse | None]],
        broker: str,
        brokers: Container[int],
        now_ms: float,
    ) -> After:
        """Each batch with its part of the answer. `brokers`: the nodes that are known."""
        after = After()
        for batch, answer in pairs:
            self._accumulator.landed(batch)
            if answer is None:
                batch.doubt = True
                batch.last_error = Unreachable(f"broker {broker} said nothing of {batch.queue.partition}")
                self._again(batch, now_ms, after)
            elif answer.error_code == 0:
                self._accumulator.deliver(batch, written(answer))
            else:
                self._refused(batch, answer, broker, brokers, now_ms, after)
        return after

    def _refused(
        self,
        batch: Batch,
        answer: PartitionProduceResponse,
        broker: str,
        brokers: Container[int],
        now_ms: float,
        after: After,
    ) -> None:
        code = answer.error_code
        batch.last_error = refusal(batch, answer, broker)
        batch.doubt = batch.doubt or doubts(code)
        advice = self._accumulator.advise(batch, code)
        if advice is Advice.GIVE_UP:
            self._fail(batch, refused(batch, answer, broker), after)
        elif advice is not None:
            after.notes.append((f"the broker minds a sequence: {advice.value}", batch))
            self._again(batch, now_ms, after, at_once=advice is Advice.RENUMBER)
        else:
            self._judged(judged(code, batch.count), batch, answer, broker, brokers, now_ms, after)

    def _judged(
        self,
        judgement: Next,
        batch: Batch,
        answer: PartitionProduceResponse,
        broker: str,
        brokers: Container[int],
        now_ms: float,
        after: After,
    ) -> None:
        match judgement:
            case Next.DELIVERED:
                self._accumulator.deliver(batch, written(answer))
            case Next.SPLIT:
                after.notes.append(("a batch is larger than the broker takes, and is split", batch))
                self._accumulator.split(batch)
            case Next.GIVE_UP:
                self._fail(batch, refused(batch, answer, broker), after)
            case Next.ELSEWHERE:
                after.stale = True
                now = answer.current_leader
                if now is not None and now.leader_id in brokers:
                    batch.queue.lead(now.leader_id, now.leader_epoch)
                self._again(batch, now_ms, after)
            case Next.AGAIN:
                self._again(batch, now_ms, after)

    def _again(self, batch: Batch, now_ms: float, after: After, *, at_once: bool = False) -> None:
        if batch.attempts > self._retries:
            assert batch.last_error is not None
            self._fail(batch, Failed(batch.last_error, batch.doubt), after)
        else:
            self._accumulator.retry(batch, now_ms if at_once else now_ms + self._pause_ms(batch.attempts))

    # ---- giving up

    def expire(self, now_ms: float) -> After:
        """What was not delivered within delivery_timeout_ms."""
        after = After()
        limit = self._accumulator.limits.delivery_ms
        for batch in self._accumulator.expired(now_ms):
            last = f"; the last failure: {batch.last_error}" if batch.last_error is not None else ""
            if not last and batch.queue.leader is None:
                last = f"; nobody leads {batch.queue.partition}"
            told = f"{batch.count} records for {batch.queue.partition} were not delivered within {limit:.0f} ms"
            late = TimedOut(f"{told} (delivery_timeout_ms){last}")
            late.__cause__ = batch.last_error
            self._fail(batch, Failed(late, batch.doubt or self._accumulator.is_on_wire(batch)), after)
        return after

    def abandon(self, why: KafkaError, *, untried: bool = False) -> After:
        """Give up everything, or only what no broker has seen yet."""
        after = After()
        for batch in list(self._accumulator.incomplete):
            if not (untried and batch.attempts):
                self._fail(batch, Failed(why, batch.doubt or self._accumulator.is_on_wire(batch)), after)
        return after

    def note(self, node: int, why: KafkaError) -> None:
        """What keeps a node's batches waiting, for when they expire."""
        for batch in self._accumulator.incomplete:
            if batch.queue.leader == node:
                batch.last_error = why

    def _fail(self, batch: Batch, failed: Failed, after: After) -> None:
        if batch.outcome is None:
            after.failed.append(batch)
        self._accumulator.fail(batch, failed)

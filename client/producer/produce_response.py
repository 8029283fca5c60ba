"""The results of Produce requests and of timeouts for batches. Pure: returns the effects that the sender performs.

Laws
    Every batch of a completed request is delivered, retried, split or given up.
    A failed record has `maybe_written` exactly when an attempt may have reached the log and no answer excludes it.
    A batch is retried at most `retries` times.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import field

from rota.client.errors import AuthenticationFailed, KafkaError, TimedOut, Unreachable
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.answers import BatchAction, batch_action, is_possibly_written, refusal, refused, written
from rota.client.producer.batch import Batch, Failed, Written
from rota.client.producer.sequences import SequenceErrorAction
from rota.protocol.dataclass import dataclass
from rota.protocol.messages.produce import PartitionProduceResponse


@dataclass(slots=True)
class Effects:
    """Batches that were given up; lines for the log; whether the metadata is out of date."""

    failed: list[Batch] = field(default_factory=list)
    notes: list[tuple[str, Batch]] = field(default_factory=list)
    stale: bool = False


class ProduceResults:
    """`pause_ms(n)`: how long to wait after n attempts."""

    def __init__(self, accumulator: Accumulator, retries: int, pause_ms: Callable[[int], float]) -> None:
        self._accumulator, self._retries, self._pause_ms = accumulator, retries, pause_ms

    def sent(self, batches: Iterable[Batch]) -> None:
        """Complete the batches of a request with acks=0."""
        for batch in batches:
            self._accumulator.request_ended(batch)
            self._accumulator.deliver(batch, Written(-1))

    def unanswered(self, batches: Iterable[Batch], why: KafkaError, now_ms: float) -> Effects:
        """Handle the batches of a request without an answer."""
        after = Effects(stale=True)
        for batch in batches:
            self._accumulator.request_ended(batch)
            batch.last_error = why
            if isinstance(why, Unreachable | TimedOut):
                batch.maybe_written = True
                self._retry(batch, now_ms, after)
            else:  # the request could not be encoded, or the session ended when the broker may have had it
                batch.maybe_written = batch.maybe_written or isinstance(why, AuthenticationFailed)
                self._fail(batch, Failed(why, batch.maybe_written), after)
        return after

    def answered(
        self,
        pairs: Iterable[tuple[Batch, PartitionProduceResponse | None]],
        broker: str,
        brokers: Container[int],
        now_ms: float,
    ) -> Effects:
        """Handle each batch with its part of the answer. `brokers`: the known nodes."""
        after = Effects()
        for batch, answer in pairs:
            self._accumulator.request_ended(batch)
            if answer is None:
                batch.maybe_written = True
                batch.last_error = Unreachable(f"broker {broker} returned no result for {batch.queue.partition}")
                self._retry(batch, now_ms, after)
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
        after: Effects,
    ) -> None:
        code = answer.error_code
        batch.last_error = refusal(batch, answer, broker)
        batch.maybe_written = batch.maybe_written or is_possibly_written(code)
        action = self._accumulator.action_after_error(batch, code)
        if action is SequenceErrorAction.GIVE_UP:
            self._fail(batch, refused(batch, answer, broker), after)
        elif action is not None:
            after.notes.append((f"the broker minds a sequence: {action.value}", batch))
            self._retry(batch, now_ms, after, at_once=action is SequenceErrorAction.RENUMBER)
        else:
            self._apply(batch_action(code, batch.count), batch, answer, broker, brokers, now_ms, after)

    def _apply(
        self,
        action: BatchAction,
        batch: Batch,
        answer: PartitionProduceResponse,
        broker: str,
        brokers: Container[int],
        now_ms: float,
        after: Effects,
    ) -> None:
        match action:
            case BatchAction.DELIVERED:
                self._accumulator.deliver(batch, written(answer))
            case BatchAction.SPLIT:
                if self._accumulator.aborting is not None:
                    self._fail(batch, Failed(self._accumulator.aborting, batch.maybe_written), after)
                    return
                after.notes.append(("a batch is larger than the broker takes, and is split", batch))
                self._accumulator.split(batch)
            case BatchAction.GIVE_UP:
                self._fail(batch, refused(batch, answer, broker), after)
            case BatchAction.REFRESH:
                after.stale = True
                now = answer.current_leader
                if now is not None and now.leader_id in brokers:
                    batch.queue.lead(now.leader_id, now.leader_epoch)
                self._retry(batch, now_ms, after)
            case BatchAction.RETRY:
                self._retry(batch, now_ms, after)

    def _retry(self, batch: Batch, now_ms: float, after: Effects, *, at_once: bool = False) -> None:
        if self._accumulator.aborting is not None:
            self._fail(batch, Failed(self._accumulator.aborting, batch.maybe_written), after)
        elif batch.attempts > self._retries:
            assert batch.last_error is not None
            self._fail(batch, Failed(batch.last_error, batch.maybe_written), after)
        else:
            self._accumulator.retry(batch, now_ms if at_once else now_ms + self._pause_ms(batch.attempts))

    # ---- giving up

    def expire(self, now_ms: float) -> Effects:
        """Fail the batches whose delivery_timeout_ms is over."""
        after = Effects()
        limit = self._accumulator.limits.delivery_ms
        for batch in self._accumulator.expired(now_ms):
            last = f"; the last failure: {batch.last_error}" if batch.last_error is not None else ""
            if not last and batch.queue.leader is None:
                last = f"; no leader is known for {batch.queue.partition}"
            text = f"{batch.count} records for {batch.queue.partition} were not delivered within {limit:.0f} ms"
            late = TimedOut(f"{text} (delivery_timeout_ms){last}")
            late.__cause__ = batch.last_error
            self._fail(batch, Failed(late, batch.maybe_written or self._accumulator.is_on_wire(batch)), after)
        return after

    def abandon(self, why: KafkaError, *, untried: bool = False) -> Effects:
        """Fail all batches; with `untried` only those that were never sent."""
        after = Effects()
        for batch in list(self._accumulator.incomplete):
            if not (untried and batch.attempts):
                self._fail(batch, Failed(why, batch.maybe_written or self._accumulator.is_on_wire(batch)), after)
        return after

    def abort(self, why: KafkaError) -> Effects:
        """Fail all batches that are not on the wire; those on the wire are not sent again (`Accumulator.aborting`)."""
        after = Effects()
        self._accumulator.aborting = why
        for batch in list(self._accumulator.incomplete):
            if not self._accumulator.is_on_wire(batch):
                self._fail(batch, Failed(why, batch.maybe_written), after)
        return after

    def note(self, node: int, why: KafkaError) -> None:
        """Remember why a node's batches wait, for the error when they expire."""
        for batch in self._accumulator.incomplete:
            if batch.queue.leader == node:
                batch.last_error = why

    def _fail(self, batch: Batch, failed: Failed, after: Effects) -> None:
        if batch.outcome is None:
            after.failed.append(batch)
        self._accumulator.fail(batch, failed)

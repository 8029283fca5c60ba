"""`Producer`: sends records and reports where they were written.

Laws
    `send` waits only for metadata and memory; otherwise it yields to the event loop once every `BATCHES_PER_TURN_MAX`
    batches.
    A cancelled `send` has taken the whole record or nothing of it.
    Every record is delivered or fails by `delivery_timeout_ms`; every failure is logged, and raised by the delivery or
    by the next `flush` or `close`.
    After `close` there is no task, timer or connection of the producer.

This file is longer than others because each public method has its documentation here. The work is in accumulator.py
(batches), sender.py (requests), transactions.py (transactions) and topics.py (metadata).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from rota.client.checks import INT32, items_of, milliseconds, offsets_to_commit, whole_number, wire_name
from rota.client.config import ProducerConfig
from rota.client.errors import (
    BufferFull,
    ConfigError,
    IllegalArgument,
    IllegalUse,
    KafkaError,
    RecordTooLarge,
    TimedOut,
)
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import Metadata
from rota.client.network.shielded_close import run_shielded
from rota.client.producer.accumulator import Accumulator, Limits
from rota.client.producer.batch import Batch, Queue, record_bytes
from rota.client.producer.delivery import Delivery, ended
from rota.client.producer.memory import Memory
from rota.client.producer.prepared import PreparedTransaction
from rota.client.producer.records import plain_bytes, plain_headers
from rota.client.producer.route import Route
from rota.client.producer.sender import Sender
from rota.client.producer.sequences import Sequences
from rota.client.producer.topics import Topics
from rota.client.producer.transaction import ABORT_PENDING, TransactionMachine, TransactionState
from rota.client.producer.transaction_scope import TransactionScope
from rota.client.producer.transactions import Transactions
from rota.client.types import GroupMetadata, Headers, OffsetAndMetadata, PartitionInfo, RecordMetadata, TopicPartition
from rota.protocol.records.batch import BATCH_HEADER_BYTES, Codec
from rota.protocol.records.produced import RECORD_OVERHEAD_BYTES_MAX, BufferMemory, partition_of
from rota.transport.connection import LINGER_SECONDS

BATCHES_PER_TURN_MAX: Final = 16
CANCELLED_FLUSH_MS: Final = 5_000  # for the delivery of buffered records when the task of `async with` is cancelled
TIMESTAMP_MAX: Final = (1 << 62) - 1


class Producer:
    """`async with Producer(ProducerConfig(bootstrap_servers=…)) as producer:`; bound to the event loop of `start`.

    Leaving the block delivers all sent records. If the task is cancelled, in the body or while leaving, records that
    are not delivered within `CANCELLED_FLUSH_MS` fail; a second cancellation fails them at once.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self._cluster = Cluster(config, auto_create=self._before_refresh)
        transactional_id = config.transactional_id
        self._machine = TransactionMachine(transactional_id) if transactional_id is not None else None
        sequences = Sequences(is_transactional=self._machine is not None) if config.is_idempotent else None
        room = min(config.max_request_size, config.buffer_memory)
        self._buffer = BufferMemory(config.buffer_memory, room - BATCH_HEADER_BYTES, time.time)
        self._accumulator = Accumulator(limits(config), sequences, self._machine, self._buffer)
        self._memory = Memory(self._fits, self._update_flushing)
        self._topics = Topics(config, self._cluster, self._accumulator)
        self._sender: Sender | None = None
        self._transactions: Transactions | None = None
        self._flushes = 0
        self._batches_since_yield = 0  # batches since this producer last yielded to the event loop
        self._closed = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Create it from Kafka's dotted names. Raises ConfigError."""
        return cls(ProducerConfig.from_properties(properties))

    async def start(self) -> Self:
        """Connect to the cluster; returns this Producer. With a transactional_id, fence the earlier producer of that id
        and abort what it left open. Raises Unreachable, TimedOut, TransactionError."""
        if self._sender is not None or self._closed:
            raise IllegalUse("a producer is started once: make another one")
        self._sender = Sender(self._config, self._cluster, self._accumulator, self._freed)
        try:
            await self._cluster.start()
        except BaseException:
            self._closed = True
            raise
        self._cluster.on_change(self._on_metadata)
        self._sender.identify()
        if self._machine is not None:
            self._transactions = self._transactions_of(self._sender)
            try:
                await self._transactions.initialize()
            except BaseException:
                self._closed = True
                await run_shielded(self._end(), "close the producer")
                raise
        return self

    def _transactions_of(self, sender: Sender) -> Transactions:
        """Return the transactions of this producer, connected to the sender."""
        transactions = Transactions(
            self._config,
            self._cluster,
            self._accumulator,
            abort_batches=sender.abort,
            flush=self._wait_for_deliveries,
            pump=sender.pump,
        )
        sender.on_failed, sender.before_send = transactions.batch_failed, transactions.add_partitions
        return transactions

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if error is None:
            await self._close(None, cancelled_flush_ms=CANCELLED_FLUSH_MS)
            return
        try:
            if isinstance(error, asyncio.CancelledError):
                await self._close(CANCELLED_FLUSH_MS)
            else:
                await self._close(None, cancelled_flush_ms=CANCELLED_FLUSH_MS)
        except KafkaError as unreported:
            error.add_note(f"and, while the producer was closed: {unreported}")

    # ---- sending

    async def send(
        self,
        topic: str,
        value: bytes | bytearray | memoryview | None,
        key: bytes | bytearray | memoryview | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> Delivery:
        """Buffer a record for sending; await the returned Delivery to learn where it was written.

        `timestamp_ms` None: now. `partition` None: by the key, or in turns. Waits for the topic's partitions and for
        room in `buffer_memory`, `max_block_ms` at most. Raises RecordTooLarge, BufferFull, TimedOut (no such topic or
        partition), BrokerError (invalid topic name), IllegalUse (closed; text instead of bytes), IllegalArgument.
        """
        route = self._topics.routes.get(topic) if type(topic) is str else None
        if (
            route is not None
            and timestamp_ms is None
            and partition is None
            and not headers
            and (key is None or type(key) is bytes)
            and not route.is_custom
        ):  # the usual record, into a batch that is open
            queues = route.keyed_queues  # without `choose`, since this is most of what a record costs
            batch = (queues[partition_of(key, len(queues))] if queues and key is not None else route.queue).open
            if batch is not None:
                buffer = self._buffer
                index = buffer.take(batch.records, key, value)
                if index >= 0:
                    return Delivery(batch, index, buffer.taken_ms)
        return await self._send_any(route, topic, value, key, partition, timestamp_ms, headers)

    async def _send_any(
        self,
        route: Route | None,
        topic: str,
        value: bytes | bytearray | memoryview | None,
        key: bytes | bytearray | memoryview | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Iterable[tuple[str, bytes | None]],
    ) -> Delivery:
        """Handle a `send` that is not the usual one, or begins a batch."""
        content = value if type(value) is bytes else plain_bytes("value", value)
        name = key if type(key) is bytes else plain_bytes("key", key)
        fields = plain_headers(headers) if headers else ()
        if timestamp_ms is None:
            timestamp_ms = int(time.time() * 1000)
        size = RECORD_OVERHEAD_BYTES_MAX + (len(content) if content else 0) + (len(name) if name else 0)
        if fields:
            size = record_bytes(name, content, fields)
        if (
            route is None
            or size > self._buffer.record_bytes_max
            or not self._fits(size)
            or self._memory.waits
            or self._batches_since_yield > BATCHES_PER_TURN_MAX
            or not (type(timestamp_ms) is int and 0 <= timestamp_ms <= TIMESTAMP_MAX)
            or not (partition is None or (type(partition) is int and 0 <= partition < len(route.queues)))
        ):
            return await self._send_slowly(topic, partition, timestamp_ms, name, content, fields, size)
        queue = route.choose(name, content, partition)
        batch = self._accumulator.append(queue, timestamp_ms, name, content, fields, size)
        if batch is None:
            batch = self._begin(route, queue, timestamp_ms, name, content, fields, size, is_free=partition is None)
        return Delivery(batch, batch.count - 1, timestamp_ms)

    async def send_rows(
        self, topic: str, values: Iterable[bytes | None], keys: Iterable[bytes | None] | None = None
    ) -> Delivery | None:
        """Buffer records of now for sending, in order; faster than `send` for each. `keys` None: no record has a key.

        Return the Delivery of the last record, None if there is none; `flush` raises the failures of the others. Waits
        and raises as `send` does; the records before the one that raised are buffered. Raises IllegalArgument.
        """
        contents = list(items_of("values", values, "values"))
        names = None if keys is None else list(items_of("keys", keys, "keys"))
        if names is not None and len(names) != len(contents):
            raise IllegalArgument(
                f"{len(contents)} values with {len(names)} keys: give one key for each value, or None"
            )
        last = None
        at = 0
        while at < len(contents):
            route = self._topics.routes.get(topic) if type(topic) is str else None
            if route is not None:  # as many as fit into open batches; the last one gives the Delivery
                buffers = route.open_records(is_keyed=names is not None)
                at = self._buffer.take_rows(buffers, names, contents, at, len(contents) - 1)
            last = await self.send(topic, contents[at], None if names is None else names[at])
            at += 1
        return last

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | bytearray | memoryview | None,
        key: bytes | bytearray | memoryview | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> RecordMetadata:
        """`send`, then wait for the delivery. Raises what `send` raises, and DeliveryFailed."""
        return await (
            await self.send(topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)
        )

    def _begin(
        self,
        route: Route,
        queue: Queue,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
        *,
        is_free: bool,
    ) -> Batch:
        """Begin a batch with a record that fits no open one. `is_free`: the caller gave no partition."""
        assert self._sender is not None
        now_ms = self._sender.now_ms()
        batch = None
        sticky = is_free and queue is route.queue and route.is_sticky(key)
        if sticky:
            queue = route.next_queue(now_ms)
            batch = self._accumulator.append(queue, timestamp_ms, key, value, headers, size)
        if batch is None:
            batch = self._accumulator.begin(queue, timestamp_ms, key, value, headers, size, now_ms)
        if sticky:
            route.batch = batch
        route.used_ms = now_ms
        self._batches_since_yield += 1
        if self._accumulator.due_ms < self._sender.next_pump_ms:
            self._sender.look()
        return batch

    async def _send_slowly(
        self,
        topic: str,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
    ) -> Delivery:
        """Handle a `send` that must wait, is refused, or has arguments of other types than str and int."""
        timestamp_ms = whole_number("timestamp_ms", timestamp_ms)
        partition = None if partition is None else whole_number("partition", partition, INT32)
        self._check(timestamp_ms, size)
        deadline = asyncio.get_running_loop().time() + self._config.max_block_ms / 1000
        number = self._machine.number if self._machine is not None else None
        if self._machine is not None:
            self._machine.check_send()
        if self._batches_since_yield > BATCHES_PER_TURN_MAX:  # so that an endless loop of sends lets other tasks run
            self._batches_since_yield = 0
            await asyncio.sleep(0)
        with self._topics.waiting(topic):
            return await self._send_waiting(topic, partition, timestamp_ms, key, value, headers, size, deadline, number)

    async def _send_waiting(
        self,
        topic: str,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
        deadline: float,
        number: int | None,
    ) -> Delivery:
        """Wait for the topic's partitions, then for memory. `number`: the transaction of the record."""
        route = await self._topics.find(topic, partition)
        self._check_open()

        def take() -> Delivery:
            if self._machine is not None:
                self._machine.check_send(number)
            queue = route.choose(key, value, partition)
            batch = self._accumulator.append(queue, timestamp_ms, key, value, headers, size)
            is_free = partition is None
            batch = batch or self._begin(route, queue, timestamp_ms, key, value, headers, size, is_free=is_free)
            return Delivery(batch, batch.count - 1, timestamp_ms)

        if self._fits(size) and not self._memory.waits:
            return take()
        try:
            return await self._memory.enter(size, take, deadline - asyncio.get_running_loop().time())
        except TimeoutError as late:
            raise BufferFull(
                f"no room for {size} bytes within {self._config.max_block_ms} ms (max_block_ms): "
                f"{self._buffer.used_bytes} of {self._buffer.bytes_max} bytes (buffer_memory) wait for their "
                "delivery; send less, or raise buffer_memory"
            ) from late

    def _check(self, timestamp_ms: int, size: int) -> None:
        self._check_open()
        if not 0 <= timestamp_ms <= TIMESTAMP_MAX:
            raise IllegalUse(f"timestamp_ms is {timestamp_ms}: milliseconds since the epoch, or None for now")
        if size > self._buffer.record_bytes_max:
            raise self._too_large(size)

    def _too_large(self, size: int) -> RecordTooLarge:
        size += BATCH_HEADER_BYTES
        if size > self._config.max_request_size:
            return RecordTooLarge(
                f"a record of {size} bytes, with what is written around it, is larger than max_request_size "
                f"({self._config.max_request_size}); the topic's max.message.bytes must allow it too"
            )
        return RecordTooLarge(
            f"a record of {size} bytes is larger than the whole buffer_memory ({self._buffer.bytes_max})"
        )

    def _fits(self, size: int) -> bool:
        return self._buffer.used_bytes + size <= self._buffer.bytes_max

    def _freed(self) -> None:
        if self._memory.waits:
            self._memory.freed()

    def _update_flushing(self) -> None:
        """Stop lingering while a caller waits for memory or for a flush."""
        accumulator = self._accumulator
        self._buffer.is_open = not self._memory.waits
        flushing = self._flushes > 0 or self._memory.waits
        if flushing and not accumulator.flushing and self._sender is not None:
            accumulator.due_ms = 0
            accumulator.flushing = True
            self._sender.look()
        accumulator.flushing = flushing

    def _before_refresh(self) -> set[str]:
        return self._topics.before_refresh()

    def _on_metadata(self, known: Metadata) -> None:
        """Handle new metadata."""
        self._topics.update(known)
        if self._sender is not None:
            self._sender.pump()

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The topic's partitions with leaders and replicas. Raises TimedOut, BrokerError, IllegalUse."""
        self._check_open()
        await self._topics.find(topic, None)
        known = (await self._topics.look(topic)).partitions
        return tuple(known[number] for number in sorted(known))

    # ---- transactions

    def transaction(self, *, timeout_ms: int | None = None) -> TransactionScope:
        """`async with producer.transaction():` commits the records of the block, and aborts when the block raises.

        `timeout_ms` is for the commit or abort; None: `max_block_ms`. Raises TransactionAbortable (aborted: the block
        can be repeated in another transaction), TransactionFailed and ProducerFenced (close the producer), TimedOut
        (aborted: records were not delivered in time), CommitOutcomeUnknown (await `commit_transaction()`), IllegalUse.
        """
        timeout_ms = milliseconds("timeout_ms", timeout_ms)
        return TransactionScope(self._transactional(), timeout_ms)

    async def begin_transaction(self) -> None:
        """Open a transaction, after a commit or abort that is under way. Raises IllegalUse, TransactionFailed."""
        await self._transactional().begin()

    async def commit_transaction(self, *, timeout_ms: int | None = None) -> None:
        """Deliver the sent records, then commit. Raises as `transaction` does, but does not abort: await
        `abort_transaction()` after TransactionAbortable; this again after TimedOut and CommitOutcomeUnknown."""
        timeout_ms = milliseconds("timeout_ms", timeout_ms)
        await self._transactional().commit(timeout_ms)

    async def abort_transaction(self, *, timeout_ms: int | None = None) -> None:
        """Drop the records that were not delivered, then abort. Raises TransactionFailed, TimedOut (call it again),
        IllegalUse."""
        timeout_ms = milliseconds("timeout_ms", timeout_ms)
        await self._transactional().abort(timeout_ms)

    async def prepare_transaction(self, *, timeout_ms: int | None = None) -> PreparedTransaction | None:
        """Deliver the sent records and leave the transaction open; another process ends it (prepared.py), also after
        this one has ended. None: nothing was sent. Close the producer then: it does not abort.

        The broker aborts it after `transaction_timeout_ms`. Raises TransactionError, TimedOut (abort it), IllegalUse.
        """
        timeout_ms = milliseconds("timeout_ms", timeout_ms)
        return await self._transactional().prepare(timeout_ms)

    @property
    def is_abort_pending(self) -> bool:
        """Whether the open transaction can only be aborted: it has failed, or an abort of it did not succeed. The next
        call is `abort_transaction()`."""
        return self._machine is not None and self._machine.state in ABORT_PENDING

    @property
    def is_commit_pending(self) -> bool:
        """Whether a commit was sent and its outcome is not known. The next call is `commit_transaction()`."""
        return self._machine is not None and self._machine.state is TransactionState.COMMIT_SENT

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: GroupMetadata | str,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit these offsets, each the next one to read, with the transaction. `group`: `consumer.group`, with which
        a member that is not in the group's generation any more is refused (KIP-447); a name skips that check.

        Raises TransactionError, TimedOut, IllegalUse, IllegalArgument.
        """
        metadata = GroupMetadata(group) if isinstance(group, str) else group
        wire_name("group", metadata.group_id)
        whole_number("the generation of the group", metadata.generation_id, INT32)
        offsets, timeout_ms = offsets_to_commit(offsets), milliseconds("timeout_ms", timeout_ms)
        await self._transactional().send_offsets(metadata, offsets, timeout_ms)

    def _transactional(self) -> Transactions:
        self._check_open()
        if self._transactions is None:
            raise ConfigError("this producer has no transactions: set transactional_id (transactional.id)")
        return self._transactions

    # ---- flush and close

    async def flush(self, timeout_ms: int | None = None) -> None:
        """Wait until all records sent before are delivered or have failed; batches do not linger meanwhile.

        Raises the first DeliveryFailed that was not reported (its delivery was not awaited and has no callback);
        TimedOut after `timeout_ms`, with the other records still being sent.
        """
        self._check_open()
        await self._wait_for_deliveries(milliseconds("timeout_ms", timeout_ms))
        self._raise_unreported()

    async def _wait_for_deliveries(self, timeout_ms: int | None) -> None:
        batches = list(self._accumulator.incomplete)
        self._flushes += 1
        self._update_flushing()
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                for batch in batches:
                    await ended(batch)
        except TimeoutError as late:
            undelivered = sum(batch.count for batch in self._accumulator.incomplete)
            raise TimedOut(f"{undelivered} records were not delivered within {timeout_ms} ms") from late
        finally:
            self._flushes -= 1
            self._update_flushing()

    def _raise_unreported(self) -> None:
        failure = self._sender.take_unreported() if self._sender is not None else None
        if failure is not None:
            raise failure

    async def close(self, timeout_ms: int | None = None) -> None:
        """Deliver the sent records for at most `timeout_ms` (None: `delivery_timeout_ms`), fail the others, close the
        connections. An open transaction is aborted. Raises as `flush` does, after everything is closed. A second call
        does nothing. A cancellation fails the undelivered records at once. With acks=0 what was written to a connection
        and not sent yet has the rest of `timeout_ms`, five seconds at most."""
        await self._close(milliseconds("timeout_ms", timeout_ms))

    async def _close(self, timeout_ms: int | None, *, cancelled_flush_ms: int = 0) -> None:
        """`cancelled_flush_ms`: the time for deliveries after a cancellation."""
        if self._closed:
            return
        self._closed = True
        self._topics.close()
        self._memory.end(IllegalUse("the producer was closed while send() waited for memory"))
        flush_ms, begun = 0, asyncio.get_running_loop().time()
        try:
            if self._transactions is not None and self._transactions.machine.is_in_transaction:
                await self._transactions.close(timeout_ms)
            elif self._sender is not None and timeout_ms != 0:
                await self._wait_for_deliveries(timeout_ms)
        except TimedOut:
            pass  # the other records fail, which is logged
        except asyncio.CancelledError:
            flush_ms = cancelled_flush_ms
            raise
        finally:
            await self._finish(flush_ms, math.inf if timeout_ms is None else begun + timeout_ms / 1000)
        self._raise_unreported()

    async def _finish(self, flush_ms: int, ends: float) -> None:
        """Deliver for up to `flush_ms`, then end everything; a cancellation ends only the delivery. `ends`: the time of
        the loop by which the producer is to be closed."""
        try:
            if flush_ms:
                with suppress(TimedOut):
                    await self._wait_for_deliveries(flush_ms)
        finally:
            await run_shielded(self._end(ends), "close the producer")

    async def _end(self, ends: float = math.inf) -> None:
        """Fail the undelivered records; end all tasks, timers and connections."""
        if self._sender is not None:
            await self._sender.stop(TimedOut("the producer was closed before an answer came"))
        left = ends - asyncio.get_running_loop().time()
        await self._cluster.close(min(max(left, 0.0), LINGER_SECONDS))

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalUse("the producer is closed")
        if self._sender is None:
            raise IllegalUse("the producer was not started: `async with Producer(…) as producer`, or await start()")

    def __repr__(self) -> str:
        config = self._config
        state = "closed" if self._closed else "open" if self._sender is not None else "not started"
        records = sum(batch.count for batch in self._accumulator.incomplete)
        return (
            f"<Producer {config.client_id} at {config.bootstrap_servers}, {state}, {len(self._topics.routes)} topics, "
            f"{records} records in {self._accumulator.used_bytes} bytes under way>"
        )


def limits(config: ProducerConfig) -> Limits:
    """The accumulator's limits."""
    return Limits(
        batch_bytes=config.batch_size,
        linger_ms=config.linger_ms,
        request_bytes=config.max_request_size,
        delivery_ms=config.delivery_timeout_ms,
        codec=Codec[config.compression_type.upper()],
        level=config.compression_level,
    )

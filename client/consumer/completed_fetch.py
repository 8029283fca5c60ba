"""The data of one partition in a FetchResponse, decoded batch by batch as records are taken. Pure.

Laws
    Records are returned in the order of their offsets, from the position on, each once.
    Control batches, and with read_committed the records of aborted transactions, are skipped; the position advances
    past them, and past offsets that compaction removed.
    At most one batch is decoded ahead of the records that were taken.
"""

from __future__ import annotations

from typing import Final

from rota.client.consumer.aborted import Aborted
from rota.client.errors import CorruptRecords
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.messages.fetch import AbortedTransaction
from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CODEC_BITS,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    check_batch,
    fields,
    read_header,
)
from rota.protocol.records.codecs import decompress
from rota.protocol.records.consumed import decode_consumed
from rota.protocol.records.errors import CorruptBatch

_OUTLINE: Final = fields("base_offset", "last_offset_delta", skipped=("crc", "attributes"))


class CompletedFetch:
    """Call `take` until `is_done`. `next_offset` is the position: the offset after the last record that was returned or
    skipped; `leader_epoch` is that of the batch before it, -1 before the first one.

    `end`: (offset, leader epoch) at which the next response begins, None if that is not known. `aborted` None:
    read_uncommitted. `answer` is the same for all fetches of one frame.
    """

    __slots__ = (
        "_aborted",
        "_at",
        "_check_crcs",
        "_data",
        "_header",
        "_position",
        "_records",
        "_size",
        "answer",
        "end",
        "leader_epoch",
        "next_offset",
        "node",
        "partition",
        "position_epoch",
    )

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        data: memoryview | bytes,
        *,
        aborted: tuple[AbortedTransaction, ...] | None = None,
        check_crcs: bool = True,
        node: int = -1,
        answer: int = 0,
        position_epoch: int = 0,
    ) -> None:
        self.partition, self.next_offset, self.leader_epoch = partition, offset, -1
        self.node, self.answer, self.position_epoch = node, answer, position_epoch
        complete_bytes, self.end = outline(data, offset)
        # the last batch may be incomplete and is fetched again; a malformed batch is found when it is reached
        self._data, self._size, self._position = data, len(data) if self.end is None else complete_bytes, 0
        self._aborted = None if aborted is None else Aborted(aborted)
        self._check_crcs = check_crcs
        self._records: list[ConsumerRecord] = []
        self._at = 0
        self._header: BatchHeader | None = None  # of the batch that `_records` are of

    @property
    def is_done(self) -> bool:
        """Whether all data was read."""
        return self._header is None and self._position >= self._size

    @property
    def held(self) -> bytes | bytearray | memoryview:
        """The buffer that it keeps in memory: usually the whole frame, which several fetches may share."""
        data = self._data
        return data.obj if isinstance(data, memoryview) else data  # type: ignore[return-value]

    def copy_rest(self) -> None:
        """Copy the unread bytes, so that the frame can be freed."""
        if self._position or isinstance(self._data, memoryview):
            self._data = bytes(self._data[self._position : self._size])
            self._size, self._position = len(self._data), 0

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Return up to `records_max` records; fewer only at the end. Raises CorruptRecords, again at each call."""
        if records_max <= 0:
            return []
        records = self._take_from_batch(records_max)
        while len(records) < records_max:
            try:
                more = self._take_from_batch(records_max - len(records))
            except CorruptRecords:
                if records:
                    return records
                raise
            if not more:
                break
            records += more
        return records

    def _take_from_batch(self, records_max: int) -> list[ConsumerRecord]:
        """Return records of the current batch; empty at its end."""
        while self._header is None:
            if self._position >= self._size:
                return []
            self._read()
        records, at = self._records, self._at
        end = at + records_max
        if end < len(records):
            self._at = end
            self.next_offset = records[end - 1].offset + 1
            self.leader_epoch = self._header.leader_epoch
            return records[at:end]
        self._finish_batch(self._header)
        return records[at:] if at else records

    def _finish_batch(self, header: BatchHeader) -> None:
        """Advance past the batch."""
        self._header, self._records, self._at = None, [], 0
        self.next_offset, self.leader_epoch = header.next_offset, header.leader_epoch

    def _read(self) -> None:
        """Read the next batch: decode its records, or skip it."""
        position = self._position
        try:
            header = read_header(self._data, position)
            end = position + header.size_bytes
            if end > self._size:
                raise CorruptBatch(f"{self._size - position} bytes that are not a whole batch")
            if header.next_offset > self.next_offset:
                self._open(header, bytes(self._data[position:end]))
        except CorruptBatch as wrong:
            raise self._corrupt(str(wrong)) from wrong
        self._position = end

    def _open(self, header: BatchHeader, raw: bytes) -> None:
        if self._check_crcs:
            check_batch(raw, 0, header, compacted=True)
        if header.is_control:
            if self._aborted is not None:
                self._aborted.marked(header, raw)
            self._finish_batch(header)
        elif self._aborted is not None and self._aborted.is_aborted(header):
            self._finish_batch(header)
        else:
            self._decode(header, raw)

    def _decode(self, header: BatchHeader, raw: bytes) -> None:
        start = BATCH_HEADER_BYTES
        if header.attributes & CODEC_BITS and header.count:
            raw = _decompressed(header, raw)
            start = 0
        topic, partition = self.partition
        self._records = decode_consumed(
            raw,
            start,
            len(raw),
            header.count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if header.is_log_append_time else None,
            topic,
            partition,
            header.leader_epoch,
            self.next_offset,
        )
        if self._records:
            self._header = header
        else:
            self._finish_batch(header)

    def _corrupt(self, why: str) -> CorruptRecords:
        at = self.next_offset
        return CorruptRecords(
            f"{self.partition} at offset {at}: {why}; to go on without it, seek past it", self.partition, at
        )


def outline(data: memoryview | bytes, offset: int) -> tuple[int, tuple[int, int] | None]:
    """Return the number of bytes of complete batches, and (the offset after them, the leader epoch of the last one), or
    None if no valid batch ends after `offset`."""
    at, behind, last_epoch = 0, -1, -1
    while at <= len(data) - BATCH_HEADER_BYTES:
        base, size, epoch, magic, delta = _OUTLINE.unpack_from(data, at)
        after = at + size + LOG_OVERHEAD
        if after > len(data):
            break
        if magic != MAGIC or size < BATCH_HEADER_BYTES - LOG_OVERHEAD or base + delta < behind:
            return at, None
        at, behind, last_epoch = after, base + delta + 1, epoch
    return at, (behind, last_epoch) if behind > offset else None


def _decompressed(header: BatchHeader, raw: bytes) -> bytes:
    try:
        codec = header.codec
    except ValueError:
        raise CorruptBatch(f"unknown codec {header.attributes & CODEC_BITS}") from None
    with memoryview(raw) as view:
        return decompress(codec, view[BATCH_HEADER_BYTES:])

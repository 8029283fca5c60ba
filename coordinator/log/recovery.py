"""Recovery of a log after an unclean stop: it finds the valid batches and rebuilds the state from them.

Laws
    L2  The log ends after the last batch that is whole, has a good checksum and follows the one before.
    XL1  Indexes, epochs, producer state and aborted transactions are rebuilt from the batches and equal those before.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.producers import Producers
from rota.coordinator.log.segment import Segment
from rota.coordinator.log.snapshots import BadSnapshot, Snapshots, read_snapshot
from rota.protocol.records.batch import check_batch
from rota.protocol.records.control import read_marker
from rota.protocol.records.errors import CorruptBatch


def recover(segment: Segment, next_offset: int, epochs: LeaderEpochs) -> int:
    """Check every batch, rebuild the indexes, cut off invalid bytes; return the number of bytes cut.

    `next_offset` is where the segment before ended. Raises StorageFailed.
    """
    size_bytes, whole_bytes = segment.size_bytes, 0
    segment.active = True
    segment.forget()
    segment.forget_aborted()
    next_offset = max(next_offset, segment.base_offset)
    try:
        for position, header, batch in segment.scan():
            check_batch(batch, 0, header, compacted=True)
            if header.base_offset < next_offset or not segment.can_hold(header.last_offset):
                raise CorruptBatch(f"offset {header.base_offset} after {next_offset - 1}")
            segment.note(position, header)
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
            whole_bytes, next_offset = position + header.size_bytes, header.next_offset
    except CorruptBatch:
        segment.store.truncate(whole_bytes)
    return size_bytes - whole_bytes


def restore_producers(
    producers: Producers,
    snapshots: Snapshots,
    segments: Sequence[Segment],
    end: int,
    high_watermark: int | None = None,
) -> None:
    """Restore the producer state at offset `end`: the last good snapshot, and the batches after it.

    The indexes of aborted transactions that recovery or damage has emptied are filled again. A snapshot does not have
    the transactions whose marker is above the high watermark: it is taken below that, if that is known.
    Raises StorageFailed, and CorruptBatch when the segments were not recovered first.
    """
    unknown = [segment.base_offset for segment in segments if not segment.has_aborted]
    start = _load_last(
        producers, snapshots, min([end, *unknown, *([] if high_watermark is None else [high_watermark])])
    )
    for segment in segments:
        if segment.next_offset > start and segment.size_bytes:
            _replay(producers, segment, start, end)
        segment.aborted_restored()


def _replay(producers: Producers, segment: Segment, start: int, end: int) -> None:
    for position, header in segment.walk(segment.position_of(start)):
        if header.base_offset >= end:
            return
        if header.producer_id < 0 or header.base_offset < start:
            continue
        marker = read_marker(segment.store.read(position, header.size_bytes)) if header.is_control else None
        aborted = producers.record(header, marker)
        if aborted is not None and not segment.has_aborted:
            segment.aborted.append(aborted)


def _load_last(producers: Producers, snapshots: Snapshots, latest: int) -> int:
    """Load the last good snapshot up to offset `latest` and return its offset; bad ones are removed."""
    producers.clear()
    for offset in reversed(snapshots.offsets()):
        if offset > latest:
            continue
        try:
            producers.load(read_snapshot(snapshots.load(offset)))
        except BadSnapshot:
            snapshots.remove(offset)
        else:
            return offset
    return 0

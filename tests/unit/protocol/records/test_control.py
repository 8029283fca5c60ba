"""Control batches: the bytes of Kafka's, and what is no marker."""

from __future__ import annotations

import pytest

from rota.protocol.records.batch import Codec, read_header, with_payload
from rota.protocol.records.control import Marker, read_marker, write_marker
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.fast import Record
from rota.protocol.records.record import read_records, rewrite_batch, write_batch


@pytest.mark.parametrize("marker", [Marker(True, 3), Marker(False, 70_000)])
def test_a_marker_is_read_as_it_was_written(marker: Marker) -> None:
    batch = write_marker(marker, producer_id=7, producer_epoch=2, timestamp=1000)
    header = read_header(batch)
    assert (header.is_control, header.is_transactional, header.count, header.base_sequence) == (True, True, 1, -1)
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (7, 2, 1000)
    assert read_marker(b"x" + batch, 1) == marker
    (record,) = read_records(batch)
    assert (record.key or b"").hex() == f"0000000{int(marker.is_commit)}"
    assert (record.value or b"").hex() == f"0000{marker.coordinator_epoch:08x}"


def test_an_emptied_control_batch_and_one_of_another_kind_are_no_markers() -> None:
    batch = write_marker(Marker(True, 3), producer_id=7, producer_epoch=2, timestamp=1000)
    assert read_marker(rewrite_batch(read_header(batch), ())) is None
    assert read_marker(write_batch([Record(0, 1, b"\0\0\0\2", b"")], is_control=True)) is None


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (None, None), (b"\0\0\0\1", b"\0\0")])
def test_a_short_control_record_is_no_marker_and_one_with_a_wrong_checksum_is_corrupt(
    key: bytes | None, value: bytes | None
) -> None:
    batch = write_batch([Record(0, 1, key, value)], is_control=True)
    assert read_marker(batch) is None
    assert read_marker(with_payload(batch, Codec.ZSTD, b"rubbish")) is None
    with pytest.raises(CorruptBatch):
        read_marker(batch[:-1] + b"\xff")

"""What the compiled readers do beyond giving the right values, which tests/property/test_wire.py checks."""

from __future__ import annotations

import pytest

from rota.protocol.compiler import codec, source
from rota.protocol.messages.fetch import FetchResponse
from rota.protocol.messages.heartbeat import HeartbeatResponse
from rota.protocol.messages.metadata import MetadataResponse
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rota.protocol.wire import DecodeError


def produce(records: bytes) -> bytes:
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),))
    return codec(ProduceRequest, 9).encode(ProduceRequest(acks=1, timeout_ms=1, topic_data=(data,)))


def test_records_are_a_view_of_the_frame_and_not_a_copy() -> None:
    frame = produce(b"r" * 5000)
    records = codec(ProduceRequest, 9).decode(frame)[0].topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert records == b"r" * 5000


def test_fields_of_fixed_size_that_stand_together_are_read_together() -> None:
    reads = [line for line in source(HeartbeatResponse, 4).splitlines() if "(b, p); p +=" in line]
    assert len(reads) == 1, "throttle time, error code and the count of tags"
    assert "p += 7" in reads[0]


def test_an_array_longer_than_the_frame_could_hold_is_refused_at_once() -> None:
    with pytest.raises(DecodeError, match="limits"):
        codec(MetadataResponse, 0).decode(b"\x00\x00\x00\x40" + bytes(100))


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x00\x00\x00\x00"])
def test_a_truncated_frame_raises_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError, match="longer than its frame"):
        codec(FetchResponse, 12).decode(frame)

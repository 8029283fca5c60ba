"""What the compiled writers do beyond giving the right bytes, which tests/property/test_wire.py checks."""

from __future__ import annotations

import struct

import pytest

from rota.protocol.compiler import codec
from rota.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.source import RECORDS_COPIED_BYTES_MAX


def fetched(*records: bytes | memoryview | None) -> FetchResponse:
    partitions = tuple(PartitionData(partition_index=i, records=item) for i, item in enumerate(records))
    return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=partitions),))


def test_large_record_sets_are_handed_on_as_they_are() -> None:
    large, view = b"a" * (RECORDS_COPIED_BYTES_MAX + 1), memoryview(b"b" * 5000)
    parts = codec(FetchResponse, 12).parts(fetched(large, b"small", view, None))
    assert any(part is large for part in parts)
    assert any(part is view for part in parts)
    assert len(parts) == 5, "what stands between the record sets is joined"
    assert b"".join(parts) == codec(FetchResponse, 12).encode(fetched(large, b"small", view, None))


def test_a_message_without_records_is_one_part() -> None:
    assert codec(HeartbeatResponse, 4).parts(HeartbeatResponse()) == [b"\0\0\0\0\0\0\0"]


def test_a_tagged_struct_is_written_if_it_is_set() -> None:
    answer = fetched(b"")
    silent = codec(FetchResponse, 12).encode(answer)
    answer.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    reply = codec(FetchResponse, 12).encode(answer)
    assert len(reply) == len(silent) + 2 + 4 + 4 + 1
    assert codec(FetchResponse, 12).decode(reply)[0] == answer


def test_a_value_that_the_wire_cannot_hold_is_our_mistake() -> None:
    with pytest.raises(struct.error):
        codec(HeartbeatResponse, 0).encode(HeartbeatResponse(error_code=1 << 15))
    with pytest.raises(struct.error):
        codec(HeartbeatRequest, 0).encode(HeartbeatRequest(group_id="x" * (1 << 15), generation_id=0, member_id=""))

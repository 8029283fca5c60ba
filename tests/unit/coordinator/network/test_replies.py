"""The bytes of a reply."""

from __future__ import annotations

import struct

from rota.coordinator.network.call import Route
from rota.coordinator.network.dispatch import ApiHandler, Dispatcher
from rota.coordinator.network.replies import Slot, framed
from rota.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def known(version: int) -> ApiHandler:
    route = Route(12, "Heartbeat", range(5), 4, HeartbeatRequest, HeartbeatResponse, lambda node, call, request: None)
    return Dispatcher({12: route}).handler_of(12 << 16 | version)


def test_an_old_header_is_the_correlation_id_and_a_new_one_has_tags() -> None:
    response = HeartbeatResponse(error_code=27, throttle_time_ms=1)
    assert b"".join(framed(known(0), 7, response)) == struct.pack(">iih", 6, 7, 27)
    assert b"".join(framed(known(4), 7, response)) == struct.pack(">iibihb", 12, 7, 0, 1, 27, 0)


def test_record_batches_are_not_copied() -> None:
    route = Route(1, "Fetch", range(4, 12), 12, FetchRequest, FetchResponse, lambda node, call, request: None)
    fetch, records = Dispatcher({1: route}).handler_of(1 << 16 | 4), bytes(100_000)
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=0, records=memoryview(records))
    pieces = framed(fetch, 7, FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])]))
    size = sum(map(len, pieces))
    assert pieces[0] == struct.pack(">ii", size - 4, 7)
    assert any(isinstance(piece, memoryview) and piece.obj is records for piece in pieces)


def test_fill_returns_the_size_of_the_reply() -> None:
    slot = Slot(known(0), 7, 30)
    assert slot.pieces is None
    assert slot.fill(HeartbeatResponse(error_code=0)) == 10
    assert slot.size == 40
    silent = Slot(known(0), 7, 30)
    assert silent.fill(None) == 0
    assert (silent.size, silent.pieces) == (30, [])

"""The events of a group: from this broker's memory when it coordinates the group, else from their topic.

Law
    WB34 They are decoded in a thread: those of a group with a hundred members take 0.1 s.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from rota.coordinator.observe.timeline import decoded
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.web.broker_requests import BrokerRequests, check
from rota.protocol.constructs import DecodeError
from rota.protocol.group_timeline import TOPIC, GroupEvent, decode_key, decode_value
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rota.protocol.records.batch import headers
from rota.protocol.records.record import read_records

FETCH_VERSION: Final = 12
FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
FETCHES_MAX: Final = 64  # of one partition: its compacted size is bounded far below that


async def events_of(requests: BrokerRequests, group_id: str) -> tuple[GroupEvent, ...]:
    """Return the events of a group, oldest first; none for an unknown one. Raises ApiError."""
    if requests.coordinator(group_id) == requests.own_id:
        return await asyncio.to_thread(decoded, requests.node.groups.encoded_events_of(group_id))
    topic = requests.node.topics.get(TOPIC)
    if topic is None:
        return ()
    state = topic.partitions[shard_of(group_id, len(topic.partitions))]
    slots: dict[int, GroupEvent] = {}
    offset = 0
    for _ in range(FETCHES_MAX):
        partition = FetchPartition(partition=state.index, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),))
        answer = await requests.send_request(state.leader, request, FETCH_VERSION)
        (response,) = answer.responses[0].partitions
        check(response.error_code, f"{TOPIC}-{state.index}")
        read_to = await asyncio.to_thread(replay, slots, group_id, bytes(response.records or b""))
        offset = max(read_to, offset, response.log_start_offset)
        if offset >= response.high_watermark:
            break
    return tuple(sorted(slots.values(), key=lambda event: event.sequence))


def replay(slots: dict[int, GroupEvent], group_id: str, data: bytes) -> int:
    """Take the records of one group in; return the offset behind the batches, 0 when there are none."""
    offset = 0
    for position, header in headers(data, cut=True):
        for record in read_records(data, position):
            with suppress(DecodeError):  # of a newer broker, or damaged: the others can be shown
                key = decode_key(record.key or b"")
                if key is None or key.group != group_id:
                    continue
                slots.pop(key.slot, None)
                if record.value is not None:
                    slots[key.slot] = decode_value(record.value)
        offset = header.next_offset
    return offset

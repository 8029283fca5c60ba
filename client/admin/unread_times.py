"""When the oldest unread records were written: a Fetch of the record at each offset.

Laws
    A time is that of a record that a leader returned (GL1). A partition without one (its leader does not answer, the
    client may not read the topic, the offset is out of range, the record has no timestamp) is left out.
    Each leader receives one request for all of its partitions, and one for each of the first ALONE_MAX partitions whose
    batch did not fit into the response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from rota.client.admin.call_results import CallResults, ErrorContext
from rota.client.admin.partition_lookup import find_leaders
from rota.client.admin.requests import Deadline, run_concurrently
from rota.client.errors import KafkaError
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from rota.protocol.records.unread import has_batch, unread_time_ms

PARTITIONS_MAX: Final = 256  # of one call
ALONE_MAX: Final = 32  # of each leader: a batch that comes alone may have megabytes
PARTITION_BYTES_MAX: Final = 32 * 1024  # Kafka returns a larger batch whole for one partition, and nothing for others
NAMES_UNTIL: Final = 12  # the last version that names topics by their names
LANE: Final = "fetch"


async def unread_times(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Return the timestamps of the first records at these offsets or after them, in ms since the epoch; of at most
    PARTITIONS_MAX partitions, the first ones. Raises nothing for a partition that is not known."""
    wanted = dict(list(offsets.items())[:PARTITIONS_MAX])
    found: dict[TopicPartition, int] = {}
    results = CallResults[TopicPartition, int]("fetching unread records", 1, wanted, lambda key: ErrorContext(*key))
    leaders = await find_leaders(cluster, results, deadline) if wanted else {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for key in results.pending():
        if key in leaders:
            by_leader.setdefault(leaders[key], []).append(key)

    async def fetch(leader: int, keys: Sequence[TopicPartition]) -> None:
        try:
            response = await cluster.send_request_within(
                deadline.broker_timeout_ms,
                leader,
                _request({key: wanted[key] for key in keys}),
                version_max=NAMES_UNTIL,
                lane=LANE,
            )
        except KafkaError:
            return
        cut = _take(response, wanted, found)
        if len(keys) > 1:
            for key in cut[:ALONE_MAX]:
                await fetch(leader, (key,))

    await run_concurrently(partial(fetch, leader, keys) for leader, keys in by_leader.items())
    return found


def _request(offsets: Mapping[TopicPartition, int]) -> FetchRequest:
    topics: dict[str, list[FetchPartition]] = {}
    for key, offset in offsets.items():
        item = FetchPartition(partition=key.partition, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX)
        topics.setdefault(key.topic, []).append(item)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=PARTITION_BYTES_MAX * len(offsets),
        session_epoch=-1,
        topics=tuple(FetchTopic(topic=topic, partitions=tuple(items)) for topic, items in topics.items()),
    )


def _take(
    response: FetchResponse, offsets: Mapping[TopicPartition, int], found: dict[TopicPartition, int]
) -> list[TopicPartition]:
    """Put the times of a response into `found`; return the partitions whose batch did not fit into the response."""
    cut = []
    for topic in response.responses:
        for data in topic.partitions:
            key = TopicPartition(topic.topic, data.partition_index)
            if data.error_code != ErrorCode.NONE or key not in offsets:
                continue
            time_ms = unread_time_ms(data.records or b"", offsets[key])
            if time_ms is not None:
                found[key] = time_ms
            elif not has_batch(data.records or b"") and data.high_watermark > offsets[key]:
                cut.append(key)
    return cut

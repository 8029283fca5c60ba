"""A micro-batch as one line of the driver's log: how far each partition is, those furthest behind first. Pure.

Spark's progress of a query has the offsets as JSON and no metrics of Python sources; this line has the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rota.client.types import TopicPartition
from rota.spark_connector.offsets import OffsetRange

PARTITIONS_SHOWN_MAX: Final = 20


def batch_progress(ranges: Sequence[OffsetRange], latest: Mapping[TopicPartition, int]) -> dict[str, object]:
    """The fields of the line; `latest` are the ends of the logs."""
    behind = {each: max(0, latest.get(each.topic_partition, each.end) - each.end) for each in ranges}
    ordered = sorted(ranges, key=lambda each: (-behind[each], each.topic, each.partition))
    shown = [
        f"{each.topic}-{each.partition} {each.start} to {each.end} ({behind[each]} behind)"
        for each in ordered[:PARTITIONS_SHOWN_MAX]
    ]
    if len(ordered) > PARTITIONS_SHOWN_MAX:
        shown.append(f"{len(ordered) - PARTITIONS_SHOWN_MAX} more")
    return {
        "offsets": sum(each.length for each in ranges),
        "behind": sum(behind.values()),
        "partitions": "; ".join(shown),
    }

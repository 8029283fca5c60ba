"""Assertions about consumed records, of any client: confluent-kafka, kafka-python, aiokafka and rota.client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

SHOWN_MAX = 10

Position = tuple[str, int, int]  # topic, partition, offset


def no_duplicates(records: Iterable[Any]) -> None:
    """Raise AssertionError when a record (topic, partition, offset) was delivered twice."""
    counts = Counter(map(position, records))
    twice = [f"{topic}-{partition}@{offset}" for (topic, partition, offset), count in counts.items() if count > 1]
    assert not twice, f"{len(twice)} records were delivered more than once: {', '.join(twice[:SHOWN_MAX])}"


def no_gaps(records: Iterable[Any]) -> None:
    """Raise AssertionError when an offset between the first and the last of a partition is missing."""
    by_partition: dict[tuple[str, int], set[int]] = {}
    for topic, partition, offset in map(position, records):
        by_partition.setdefault((topic, partition), set()).add(offset)
    missing = [
        f"{topic}-{partition}@{offset}"
        for (topic, partition), offsets in by_partition.items()
        for offset in range(min(offsets), max(offsets))
        if offset not in offsets
    ]
    assert not missing, f"{len(missing)} records were not delivered: {', '.join(missing[:SHOWN_MAX])}"


def position(record: Any) -> Position:
    """Return topic, partition and offset of a record; confluent-kafka has methods where others have attributes."""
    if isinstance(record, tuple) and len(record) == 3 and isinstance(record[0], str):
        return record
    topic, partition, offset = (_value(record, name) for name in ("topic", "partition", "offset"))
    return topic, partition, offset


def _value(record: Any, name: str) -> Any:
    value = getattr(record, name)
    return value() if callable(value) else value

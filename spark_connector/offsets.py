"""Offsets of many partitions: as Spark's Kafka source writes them in JSON, as a query plans with them. Pure.

Laws
    JSON in, JSON out, the same: {"topic": {"0": 12}}; -2 is the earliest offset and -1 the latest, in options alone.
    A range is start (included) to end (excluded); it never has end < start.
    What a limit gives out together is at most the limit, every partition that has records gets at least one of them
    as long as it reaches, and the same input gives the same output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from rota.client.types import TopicPartition
from rota.spark_connector.errors import OptionError

EARLIEST: Final = -2
LATEST: Final = -1
INT32_MAX: Final = (1 << 31) - 1
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1

Offsets = dict[TopicPartition, int]


class OffsetRange(NamedTuple):
    """The offsets `start` … `end`-1 of one partition; picklable, it travels to the executors."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def of(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def length(self) -> int:
        """Offsets, not records: compaction and transactions leave gaps."""
        return self.end - self.start


def read_offsets(text: str, option: str) -> Offsets:
    """{"topic": {"0": 12, "1": -2}}. Raises OptionError, which names the option."""
    return {
        partition: _number(value, option, partition)
        for partition, value in _partitions(_object(text, option), option).items()
    }


def read_times(text: str, option: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": 1700000000000}}, milliseconds; below 0: before 1970. Raises OptionError."""
    times = _partitions(_object(text, option), option)
    for partition, value in times.items():
        if not isinstance(value, int) or isinstance(value, bool) or not INT64_MIN <= value <= INT64_MAX:
            raise OptionError(option, repr(value), f"milliseconds since the epoch for {partition}")
    return times


def read_assignment(text: str, option: str) -> tuple[TopicPartition, ...]:
    """{"topic": [0, 1]}. Raises OptionError."""
    found: list[TopicPartition] = []
    for topic, numbers in _object(text, option).items():
        if not isinstance(numbers, list) or not numbers:
            raise OptionError(option, text, 'a list of partitions for each topic, as in {"topic": [0, 1]}')
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= INT32_MAX:
                raise OptionError(option, text, f"partition numbers; {number!r} of {topic} is none")
            found.append(TopicPartition(topic, number))
    if not found:
        raise OptionError(option, text, 'at least one topic, as in {"topic": [0, 1]}')
    return tuple(sorted(set(found)))


def to_tree(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As it stands in a checkpoint, topics and partitions in order."""
    tree: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        tree.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return tree


def from_tree(tree: Mapping[str, Mapping[str, int]]) -> Offsets:
    """The other way; a checkpoint is trusted to be ours."""
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, numbers in tree.items()
        for number, offset in numbers.items()
    }


def ranges(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> tuple[OffsetRange, ...]:
    """What lies between, partition after partition; a partition that is on one side alone gives nothing."""
    return tuple(
        OffsetRange(partition.topic, partition.partition, start[partition], end[partition])
        for partition in sorted(start.keys() & end.keys())
        if start[partition] < end[partition]
    )


def limited(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], records_max: int) -> Offsets:
    """Where a micro-batch of at most `records_max` offsets ends: each partition moves on in proportion to what it has.

    As Spark's own source does it, but that no partition with records is left out while the limit reaches.
    """
    waiting = {partition: latest[partition] - start.get(partition, latest[partition]) for partition in latest}
    waiting = {partition: count for partition, count in waiting.items() if count > 0}
    total = sum(waiting.values())
    if total <= records_max:
        return {**start, **latest}
    first = 1 if records_max >= len(waiting) else 0  # so that nobody is left out
    rest, pool = records_max - first * len(waiting), total - first * len(waiting)
    shares = {partition: first + (count - first) * rest // pool for partition, count in waiting.items()}
    left = records_max - sum(shares.values())
    # what rounding left over goes to those from whom it took most
    order = sorted(waiting, key=lambda one: (-((waiting[one] - first) * rest % pool), one))
    for partition in order[:left]:
        shares[partition] += 1
    ends = {**start}
    for partition, offset in latest.items():
        begin = start.get(partition, offset)
        ends[partition] = begin + shares[partition] if partition in shares else max(begin, offset)
    return ends


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError as wrong:
        raise OptionError(option, text, f'JSON as in {{"topic": {{"0": 12}}}} ({wrong})') from None
    if not isinstance(tree, dict):
        raise OptionError(option, text, "a JSON object of topics")
    return tree


def _partitions(tree: Mapping[str, Any], option: str) -> dict[TopicPartition, Any]:
    found: dict[TopicPartition, Any] = {}
    for topic, numbers in tree.items():
        if not isinstance(numbers, dict):
            raise OptionError(option, json.dumps(tree), 'partitions for each topic, as in {"topic": {"0": 12}}')
        for number, value in numbers.items():
            if not (number.isascii() and number.isdigit() and int(number) <= INT32_MAX):
                raise OptionError(option, json.dumps(tree), f"partition numbers; {number!r} of {topic} is none")
            found[TopicPartition(topic, int(number))] = value
    return found


def _number(value: Any, option: str, partition: TopicPartition) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not EARLIEST <= value <= INT64_MAX:
        raise OptionError(option, repr(value), f"an offset, -2 (earliest) or -1 (latest) for {partition}")
    return value


def named(partitions: Iterable[TopicPartition], shown_max: int = 10) -> str:
    """For messages: the first of them, and how many more."""
    ordered = sorted(partitions)
    more = len(ordered) - shown_max
    return ", ".join(map(str, ordered[:shown_max])) + (f" and {more} more" if more > 0 else "")

"""Offsets of many partitions: in Spark's JSON, as ranges, and shared out under a limit. Pure.

Laws
    JSON in, JSON out, the same: {"topic": {"0": 12}}. In options -2 is the earliest offset and -1 the latest.
    A range goes from start (included) to end (excluded) and never has end < start.
    The parts of a limit sum up to at most the limit. Each partition with records gets at least one of them when the
    limit allows it. The same input gives the same output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from rota.client.types import TopicPartition
from rota.spark_connector.errors import OptionError

EARLIEST: Final = -2
LATEST: Final = -1
INT32_MAX: Final = (1 << 31) - 1
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
_PARTITION: Final = re.compile(r"0|[1-9][0-9]{0,9}")

Offsets = dict[TopicPartition, int]


class OffsetRange(NamedTuple):
    """The offsets `start` to `end` - 1 of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def length(self) -> int:
        """The number of offsets; compaction and transactions leave fewer records."""
        return self.end - self.start


def parse_offsets(text: str, option: str) -> Offsets:
    """{"topic": {"0": 12, "1": -2}}. Raises OptionError, which names the option."""
    return {
        partition: _offset(value, option, partition)
        for partition, value in _by_partition(_object(text, option), option).items()
    }


def parse_times(text: str, option: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": 1700000000000}} in ms since the epoch; negative times are before 1970. Raises OptionError."""
    times = _by_partition(_object(text, option), option)
    for partition, value in times.items():
        if not isinstance(value, int) or isinstance(value, bool) or not INT64_MIN <= value <= INT64_MAX:
            raise OptionError(option, repr(value), f"milliseconds since the epoch for {partition}")
    return times


def parse_assignment(text: str, option: str) -> tuple[TopicPartition, ...]:
    """{"topic": [0, 1]}. Raises OptionError."""
    partitions: list[TopicPartition] = []
    for topic, numbers in _object(text, option).items():
        if not isinstance(numbers, list) or not numbers:
            raise OptionError(option, text, 'a list of partitions for each topic, as in {"topic": [0, 1]}')
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= INT32_MAX:
                raise OptionError(option, text, f"partition numbers; {number!r} of {topic} is not one")
            partitions.append(TopicPartition(topic, number))
    if not partitions:
        raise OptionError(option, text, 'at least one topic, as in {"topic": [0, 1]}')
    return tuple(sorted(set(partitions)))


def to_json_tree(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """The form of a checkpoint, topics and partitions in order."""
    tree: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        tree.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return tree


def from_json_tree(tree: Mapping[str, Mapping[str, int]]) -> Offsets:
    """The inverse of `to_json_tree`; the checkpoint's content is not validated."""
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, numbers in tree.items()
        for number, offset in numbers.items()
    }


def offset_ranges(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> tuple[OffsetRange, ...]:
    """The ranges from `start` to `end`, ordered by partition; a partition that one of them lacks has no range."""
    return tuple(
        OffsetRange(partition.topic, partition.partition, start[partition], end[partition])
        for partition in sorted(start.keys() & end.keys())
        if start[partition] < end[partition]
    )


def limit_offsets(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], records_max: int
) -> Offsets:
    """The end of a micro-batch of at most `records_max` offsets: each partition advances in proportion to its backlog.

    As in Spark's own source, except that no partition with records is left out when the limit allows it.
    """
    backlog = {partition: latest[partition] - start.get(partition, latest[partition]) for partition in latest}
    backlog = {partition: count for partition, count in backlog.items() if count > 0}
    total = sum(backlog.values())
    if total <= records_max:
        return {**start, **latest}
    guaranteed = 1 if records_max >= len(backlog) else 0
    rest, pool = records_max - guaranteed * len(backlog), total - guaranteed * len(backlog)
    shares = {partition: guaranteed + (count - guaranteed) * rest // pool for partition, count in backlog.items()}
    remainder = records_max - sum(shares.values())
    # the remainder goes to the partitions that lost most by rounding down
    order = sorted(backlog, key=lambda partition: (-((backlog[partition] - guaranteed) * rest % pool), partition))
    for partition in order[:remainder]:
        shares[partition] += 1
    ends = {**start}
    for partition, offset in latest.items():
        begin = start.get(partition, offset)
        ends[partition] = begin + shares[partition] if partition in shares else max(begin, offset)
    return ends


def format_partitions(partitions: Iterable[TopicPartition], shown_max: int = 10) -> str:
    """For messages: the first `shown_max` partitions and the number of the others."""
    ordered = sorted(partitions)
    more = len(ordered) - shown_max
    return ", ".join(map(str, ordered[:shown_max])) + (f" and {more} more" if more > 0 else "")


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        tree = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise OptionError(option, text, f'JSON as in {{"topic": {{"0": 12}}}} ({error})') from None
    if not isinstance(tree, dict):
        raise OptionError(option, text, "a JSON object of topics")
    return tree


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values. Raises ValueError for a name that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _by_partition(tree: Mapping[str, Any], option: str) -> dict[TopicPartition, Any]:
    values: dict[TopicPartition, Any] = {}
    for topic, numbers in tree.items():
        if not isinstance(numbers, dict):
            raise OptionError(option, json.dumps(tree), 'partitions for each topic, as in {"topic": {"0": 12}}')
        for number, value in numbers.items():
            if not _PARTITION.fullmatch(number) or int(number) > INT32_MAX:
                raise OptionError(option, json.dumps(tree), f"partition numbers; {number!r} of {topic} is not one")
            values[TopicPartition(topic, int(number))] = value
    return values


def _offset(value: Any, option: str, partition: TopicPartition) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not EARLIEST <= value <= INT64_MAX:
        raise OptionError(option, repr(value), f"an offset, -2 (earliest) or -1 (latest) for {partition}")
    return value

"""Kafka's text files at the root of a log directory: one number for each partition. Pure.

Form: the version 0, the count, and for each partition a line "topic partition offset".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.coordinator.log.epochs import BadCheckpoint

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
DELETE_SUFFIX: Final = "-delete"

TopicPartition = tuple[str, int]


def write_checkpoint(offsets: Mapping[TopicPartition, int]) -> str:
    lines = (f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items())
    return f"0\n{len(offsets)}\n" + "".join(lines)


def read_checkpoint(text: str) -> dict[TopicPartition, int]:
    """Raises BadCheckpoint."""
    offsets: dict[TopicPartition, int] = {}
    try:
        version, count, *lines = text.splitlines()
        for line in lines:
            topic, partition, offset = line.split(" ")
            offsets[topic, int(partition)] = int(offset)
        if int(version) != 0 or int(count) != len(offsets):
            raise BadCheckpoint("version or count is wrong")
    except ValueError as error:
        raise BadCheckpoint(str(error)) from error
    return offsets


def partition_of(folder_name: str) -> TopicPartition | None:
    """Return the topic and partition of a folder's name; None for other folders."""
    topic, dash, number = folder_name.rpartition("-")
    if not (topic and dash and number.isdecimal()) or folder_name.endswith(DELETE_SUFFIX):
        return None
    return topic, int(number)

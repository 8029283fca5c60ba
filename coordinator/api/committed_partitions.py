"""The order in which partitions are answered whose offsets are committed or deleted; the length of their metadata.

Laws
    O6 As in Kafka the topics and partitions that do not exist are answered first, without the group; then the others.
        Each in the order of the request, and a topic once.
    O7  As in Kafka the length of metadata is that of Java: a character above U+FFFF counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from rota.protocol.errors import ErrorCode

WHOLE_TOPIC: Final = -1  # instead of a partition's index: the topic does not exist
MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

UNITS_MAX: Final = 2  # of UTF-16 that one character has

Topic = TypeVar("Topic")  # name or id
Refused = dict[tuple[int, int], ErrorCode]  # by (position of the topic in the request, partition index)
Answers = dict[Topic, list[tuple[int, ErrorCode]]]  # (partition index, code) by topic


def answered(
    requested: Sequence[tuple[Topic, Sequence[int]]], refused: Mapping[tuple[int, int], ErrorCode], code: ErrorCode
) -> Answers[Topic]:
    """Return the answers to a commit; `code` is the group's."""
    answers: Answers[Topic] = {}
    for position, (topic, indexes) in enumerate(requested):
        if (position, WHOLE_TOPIC) in refused:
            answers.setdefault(topic, [])
        missing = [index for index in indexes if refused.get((position, index)) in MISSING]
        _add(answers, topic, [(index, refused[position, index]) for index in missing])
    for position, (topic, indexes) in enumerate(requested):
        others = [index for index in indexes if refused.get((position, index)) not in MISSING]
        _add(answers, topic, [(index, _code(refused.get((position, index)), code)) for index in others])
    return answers


def by_topic(answers: Iterable[tuple[Topic, int, ErrorCode]]) -> Answers[Topic]:
    """Return answers that are in their order."""
    found: Answers[Topic] = {}
    for topic, index, code in answers:
        found.setdefault(topic, []).append((index, code))
    return found


def is_metadata_too_long(metadata: str, units_max: int) -> bool:
    """O7. Return whether the metadata has more units of UTF-16 than that."""
    if len(metadata) * UNITS_MAX <= units_max:
        return False
    return len(metadata) + sum(char > "\uffff" for char in metadata) > units_max


def _add(answers: Answers[Topic], topic: Topic, more: list[tuple[int, ErrorCode]]) -> None:
    if more:
        answers.setdefault(topic, []).extend(more)


def _code(refusal: ErrorCode | None, code: ErrorCode) -> ErrorCode:
    """Return the code of a partition: as in Kafka its metadata is measured after the group was asked."""
    is_late = refusal is ErrorCode.OFFSET_METADATA_TOO_LARGE and code is not ErrorCode.NONE
    return code if refusal is None or is_late else refusal

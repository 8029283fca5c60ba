"""O6, O7."""

from __future__ import annotations

import pytest

from rota.coordinator.api.committed_partitions import WHOLE_TOPIC, answered, by_topic, is_metadata_too_long
from rota.protocol.errors import ErrorCode

E = ErrorCode
MISSING, LARGE = E.UNKNOWN_TOPIC_OR_PARTITION, E.OFFSET_METADATA_TOO_LARGE


def test_what_does_not_exist_is_answered_first_and_a_topic_once() -> None:
    requested = [("t", [0, 99]), ("u", [0]), ("nope", [1]), ("u", [98, 1]), ("t", [1])]
    refused = {(0, 99): MISSING, (2, WHOLE_TOPIC): MISSING, (2, 1): MISSING, (3, 98): MISSING}
    assert list(answered(requested, refused, E.NONE).items()) == [
        ("t", [(99, MISSING), (0, E.NONE), (1, E.NONE)]),
        ("nope", [(1, MISSING)]),
        ("u", [(98, MISSING), (0, E.NONE), (1, E.NONE)]),
    ]


def test_a_topic_without_partitions_is_answered_if_it_does_not_exist() -> None:
    requested: list[tuple[str, list[int]]] = [("t", []), ("nope", [])]
    assert answered(requested, {(1, WHOLE_TOPIC): MISSING}, E.NONE) == {"nope": []}


def test_the_error_of_the_group_precedes_that_of_the_metadata() -> None:
    requested = [("t", [0, 1])]
    assert answered(requested, {(0, 0): LARGE}, E.NONE) == {"t": [(0, LARGE), (1, E.NONE)]}
    assert answered(requested, {(0, 0): LARGE}, E.UNKNOWN_MEMBER_ID) == {
        "t": [(0, E.UNKNOWN_MEMBER_ID), (1, E.UNKNOWN_MEMBER_ID)]
    }


def test_answers_in_their_order() -> None:
    answers = [("u", 1, MISSING), ("t", 0, E.NONE), ("u", 0, E.NONE)]
    assert list(by_topic(answers).items()) == [("u", [(1, MISSING), (0, E.NONE)]), ("t", [(0, E.NONE)])]


@pytest.mark.parametrize(
    ("metadata", "is_too_long"),
    [
        ("x" * 4096, False),
        ("x" * 4097, True),
        ("\u20ac" * 4096, False),
        ("\U0001f600" * 2048, False),
        ("\U0001f600" * 2049, True),
    ],
)
def test_o7_metadata_has_the_length_of_java(metadata: str, is_too_long: bool) -> None:
    assert is_metadata_too_long(metadata, 4096) is is_too_long

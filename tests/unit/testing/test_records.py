"""Assertions about consumed records."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rota.testing.records import no_duplicates, no_gaps


@dataclass
class Attributes:  # as kafka-python, aiokafka and rota.client have them
    topic: str
    partition: int
    offset: int


class Methods:  # as confluent-kafka has them
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


def test_a_record_that_was_delivered_twice_is_named() -> None:
    with pytest.raises(AssertionError, match="1 records were delivered more than once: t-0@3"):
        no_duplicates([Attributes("t", 0, 3), Methods(3), Attributes("t", 1, 3)])
    no_duplicates([Attributes("t", 0, 3), Methods(4), ("t", 1, 3)])


def test_an_offset_that_was_left_out_is_named() -> None:
    with pytest.raises(AssertionError, match="t-0@4, t-0@5"):
        no_gaps([Methods(3), Methods(6), ("u", 0, 1)])
    no_gaps([Methods(4), Methods(3)])

"""What a group is told, and what happens when it cannot be told."""

from __future__ import annotations

import logging

import pytest

from rota.client.errors import TimedOut
from rota.client.types import TopicPartition
from rota.spark_connector import progress
from rota.spark_connector.offsets import Offsets
from rota.spark_connector.progress import Progress

T0 = TopicPartition("t", 0)


class Group:
    """Remembers what it is told; refuses while `is_busy`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Offsets]] = []
        self.is_busy = False

    def commit(self, group: str, offsets: Offsets) -> None:
        self.told.append((group, offsets))
        if self.is_busy:
            raise TimedOut("the group has members")


def test_each_offset_is_told_once() -> None:
    group, told = Group(), Progress("g")
    for offset in (3, 3, 5, 5):
        told.reached({T0: offset}, group)
    assert group.told == [("g", {T0: 3}), ("g", {T0: 5})]


def test_without_a_group_there_is_nobody_to_tell() -> None:
    group = Group()
    Progress(None).reached({T0: 3}, group)
    assert group.told == []


def test_what_was_refused_is_logged_and_not_asked_at_every_turn(caplog: pytest.LogCaptureFixture) -> None:
    group, told = Group(), Progress("g")
    group.is_busy = True
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            told.reached({T0: 3}, group)
    assert caplog.text.count("The group's progress was not committed") == len(group.told) == 1
    assert "the group has members" in caplog.text
    group.is_busy = False
    told.reached({T0: 4}, group)
    assert group.told[-1] == ("g", {T0: 4}), "the next micro-batch makes up for it"


def test_or_time_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AGAIN_S", 0.0)
    group, told = Group(), Progress("g")
    group.is_busy = True
    told.reached({T0: 3}, group)
    group.is_busy = False
    told.reached({T0: 3}, group)
    told.reached({T0: 3}, group)
    assert len(group.told) == 2

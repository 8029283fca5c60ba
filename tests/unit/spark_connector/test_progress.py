"""The progress of a query is committed to its group, and a commit that fails stops nothing."""

from __future__ import annotations

import logging

import pytest

from rota.client.errors import TimedOut
from rota.client.types import TopicPartition
from rota.spark_connector import progress
from rota.spark_connector.offsets import Offsets
from rota.spark_connector.progress import GroupProgress

T0 = TopicPartition("t", 0)


class Group:
    """Records the commits; refuses them while `is_busy`."""

    def __init__(self) -> None:
        self.commits: list[tuple[str, Offsets]] = []
        self.is_busy = False

    def commit(self, group: str, offsets: Offsets) -> None:
        self.commits.append((group, offsets))
        if self.is_busy:
            raise TimedOut("the group has members")


def test_each_offset_is_committed_once() -> None:
    group, progressed = Group(), GroupProgress("g")
    for offset in (3, 3, 5, 5):
        progressed.advance({T0: offset}, group)
    assert group.commits == [("g", {T0: 3}), ("g", {T0: 5})]


def test_without_a_group_nothing_is_committed() -> None:
    group = Group()
    GroupProgress(None).advance({T0: 3}, group)
    assert group.commits == []


def test_a_commit_that_fails_is_logged_once_and_retried_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group, progressed = Group(), GroupProgress("g")
    group.is_busy = True
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            progressed.advance({T0: 3}, group)
    assert caplog.text.count("The group's progress was not committed") == len(group.commits) == 1
    assert "the group has members" in caplog.text
    group.is_busy = False
    progressed.advance({T0: 4}, group)
    assert group.commits[-1] == ("g", {T0: 4}), "the next micro-batch commits it too"


def test_or_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "RETRY_S", 0.0)
    group, progressed = Group(), GroupProgress("g")
    group.is_busy = True
    progressed.advance({T0: 3}, group)
    group.is_busy = False
    progressed.advance({T0: 3}, group)
    progressed.advance({T0: 3}, group)
    assert len(group.commits) == 2

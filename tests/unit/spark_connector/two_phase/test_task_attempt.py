"""Which attempt a process runs, by Spark's own TaskContext."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark import TaskContext

from rota.spark_connector.errors import OptionError
from rota.spark_connector.two_phase.task_attempt import BATCH, QUERY, RUN, TaskAttempt, query_prefix

ATTEMPT = TaskAttempt("query", "run", 7, 3, 1, 19)


def context(properties: dict[str, str]) -> TaskContext:
    return TaskContext(partitionId=3, attemptNumber=1, taskAttemptId=19, localProperties=properties)


def test_it_is_read_from_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {QUERY: "query", RUN: "run", BATCH: "7"}
    monkeypatch.setattr(TaskContext, "_taskContext", context(given))
    assert TaskAttempt.of_stream() == ATTEMPT
    for name in given:
        left = {key: value for key, value in given.items() if key != name}
        monkeypatch.setattr(TaskContext, "_taskContext", context(left))
        with pytest.raises(OptionError, match=name):
            TaskAttempt.of_stream()
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    with pytest.raises(OptionError, match=RUN):
        TaskAttempt.of_stream()


def test_attempts_that_can_run_at_one_time_have_different_ids() -> None:
    others = [replace(ATTEMPT, query="other"), replace(ATTEMPT, run="other")]
    others += [replace(ATTEMPT, partition=4), replace(ATTEMPT, attempt=0)]
    ids = {attempt.transactional_ids("prefix")[0] for attempt in [ATTEMPT, *others]}
    assert len(ids) == 5
    assert (
        replace(ATTEMPT, batch=8).transactional_ids("prefix")[0] in ids
    )  # used again, as micro-batches follow each other
    assert sum(name.startswith(query_prefix("prefix", "query")) for name in ids) == 4
    retried = replace(ATTEMPT, task=20).transactional_ids("prefix")  # of the same stage, run again
    assert retried[0] in ids
    assert retried[1] not in {*ids, ATTEMPT.transactional_ids("prefix")[1]}

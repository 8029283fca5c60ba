"""The sink, in Python processes that are killed (SIGKILL) at a chosen step of a micro-batch's two phases.

`kill` is a step of STEPS; the option `victim` is `process` (the Python worker, or the driver's Python process for
commits) or `driver` (with the JVM above it). A step kills once: `once` is the file that says that it has.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType
from tests.spark.table import ENDS_S

from rota.spark_connector.source import RotaDataSource

Options = dict[str, str]
OWN: Final = ("kill", "victim", "once")
# the step, and what is wrapped: module, attribute of it, whether before or after which call
STEPS: Final = {
    "task begun": ("task_write", "last_decision", "after", 1),
    "records written": ("task_write", "Producer.prepare_transaction", "before", 1),
    "prepared": ("task_write", "Producer.prepare_transaction", "after", 1),
    "fenced": ("committer", "DecisionTopic.last", "before", 1),
    "checked": ("committer", "DecisionTopic.write", "before", 1),
    "decided": ("committer", "DecisionTopic.write", "after", 1),
    "one committed": ("committer", "commit_prepared", "after", 1),
    "all committed": ("committer", "DecisionTopic.write", "before", 2),
    "completed": ("committer", "DecisionTopic.write", "after", 2),
}


def parents() -> list[int]:
    """The processes above this one that belong to the driver: its JVM, and the Python that has started it."""
    found, process = [], os.getppid()
    while process > 1:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        if b"java" in command.split(b"\0")[0] or b"pyspark.daemon" in command:
            found.append(process)
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def die(victim: str, once: str) -> None:
    """Kill this process, and with `driver` those above it, unless that was done before."""
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    for process in reversed(parents() if victim == "driver" else []):
        os.kill(process, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str, victim: str, once: str) -> None:
    """Wrap the function of the step in this process."""
    module, path, when, at = STEPS[step]
    owner: Any = __import__(f"rota.spark_connector.two_phase.{module}", fromlist=["x"])
    *names, name = path.split(".")
    for part in names:
        owner = getattr(owner, part)
    inner: Callable[..., Awaitable[Any]] = getattr(owner, name)
    calls = 0

    async def wrapped(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        call = calls
        if when == "before" and call == at:
            die(victim, once)
        result = await inner(*args, **more)
        if when == "after" and call == at:
            die(victim, once)
        return result

    if getattr(inner, "once", "") != once:  # a worker runs one task after the other
        setattr(wrapped, "once", once)  # noqa: B010 - a function has no such attribute for mypy
        setattr(owner, name, wrapped)


class KilledWriter(DataSourceStreamArrowWriter):
    def __init__(self, inner: Any, kill: dict[str, str]) -> None:
        self.inner, self.kill = inner, kill

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        arm(**self.kill)
        return self.inner.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        arm(**self.kill)
        self.inner.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.inner.abort(messages, batchId)


class KilledSource(RotaDataSource):
    @classmethod
    def name(cls) -> str:
        return "rota-killed"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        options = {name: value for name, value in dict(self.options).items() if name not in OWN}
        kill = {"step": self.options["kill"], "victim": self.options["victim"], "once": self.options["once"]}
        return KilledWriter(RotaDataSource(options).streamWriter(schema, overwrite), kill)


def copy(
    spark: SparkSession, source: dict[str, str], sink: dict[str, str], checkpoint: Path, kind: str = "rota-killed"
) -> None:
    """Three records of each partition in a micro-batch, to the end of the source; raises what ends the query."""
    frame = spark.readStream.format("rota").options(**source, maxOffsetsPerTrigger="6").load()
    writer = frame.select("key", "value").writeStream.format(kind).options(**sink)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(ENDS_S)


cloudpickle.register_pickle_by_value(sys.modules[__name__])

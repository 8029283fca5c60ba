"""A high watermark that is behind a planned end: no row is skipped and no loss is reported; a truncated log is loss."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import GreaterThanOrEqual, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.unit.spark_connector.conftest import Write, create
from tests.unit.spark_connector.lagging import Lag, lagging

from rota.client import Admin, AdminConfig
from rota.protocol.messages.list_offsets import ListOffsetsRequest
from rota.spark_connector.batch import RotaReader
from rota.spark_connector.errors import DataLost, HighWatermarkBehind
from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.options import batch_options, stream_options
from rota.spark_connector.plan import KafkaInputPartition
from rota.spark_connector.read import read
from rota.spark_connector.stream import RotaStreamReader

ALL = ReadAllAvailable()
LOSSY = pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])


@pytest.fixture
def leader(bootstrap: str) -> Iterator[tuple[str, Lag]]:
    with lagging(bootstrap) as found:
        yield found


@pytest.fixture
def lag(leader: tuple[str, Lag]) -> Lag:
    return leader[1]


@pytest.fixture
def full(topic: str, write: Write) -> str:
    """Ten records in partition 0, each in a batch of its own, with timestamps 1000, 2000, …"""
    write(topic, 0, [(None, b"x" * 500)] * 10, batch_size=1)
    return topic


@pytest.fixture
def given(leader: tuple[str, Lag], full: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": leader[0], "subscribe": full, "fetchOffset.retryIntervalMs": "1"}


def rows(reader: RotaReader | RotaStreamReader, pieces: list[InputPartition]) -> list[int]:
    return sorted(row["offset"] for item in pieces for batch in reader.read(item) for row in batch.to_pylist())


@LOSSY
def test_a_task_waits_for_the_high_watermark(
    given: dict[str, str], full: str, lag: Lag, fail_on_data_loss: str
) -> None:
    options = batch_options({**given, "failOnDataLoss": fail_on_data_loss})
    lag.behind({0: 4}, answers=4)
    found = [
        row["offset"]
        for batch in read(KafkaInputPartition(OffsetRange(full, 0, 0, 10)), options)
        for row in batch.to_pylist()
    ]
    assert found == list(range(10))
    assert lag.shown == 4


def test_a_task_does_not_wait_for_ever(given: dict[str, str], full: str, lag: Lag) -> None:
    short = {"kafka.default.api.timeout.ms": "300", "kafka.request.timeout.ms": "300", "failOnDataLoss": "false"}
    lag.behind({0: 4}, answers=None)
    with pytest.raises(
        HighWatermarkBehind, match=rf"{full}-0 .*offset 4.*offset 10.*300 ms.*kafka.default.api.timeout.ms"
    ):
        list(read(KafkaInputPartition(OffsetRange(full, 0, 0, 10)), batch_options({**given, **short})))


def test_a_task_of_a_truncated_log_raises_data_lost_without_waiting(given: dict[str, str], full: str) -> None:
    with pytest.raises(DataLost, match=rf"offsets 10-11 of {full}-0; its log has 0-9"):
        list(read(KafkaInputPartition(OffsetRange(full, 0, 0, 12)), batch_options(given)))
    lossy = batch_options({**given, "failOnDataLoss": "false"})
    found = [
        row["offset"]
        for batch in read(KafkaInputPartition(OffsetRange(full, 0, 0, 12)), lossy)
        for row in batch.to_pylist()
    ]
    assert found == list(range(10))


@LOSSY
def test_a_batch_with_given_offsets_waits(given: dict[str, str], full: str, lag: Lag, fail_on_data_loss: str) -> None:
    offsets = {name: f'{{"{full}": {{"0": {at}, "1": {end}}}}}' for name, at, end in (("startingOffsets", 6, 0),)}
    reader = RotaReader(batch_options({**given, **offsets, "failOnDataLoss": fail_on_data_loss}))
    lag.behind({0: 4}, answers=3)
    assert rows(reader, list(reader.partitions())) == [6, 7, 8, 9]


def test_a_batch_waits_for_an_end_offset_at_or_after_its_start(given: dict[str, str], full: str, lag: Lag) -> None:
    """The leader changes between the two questions: the start is in the log, the end is the new leader's."""
    starting = f'{{"{full}": {{"0": 6, "1": 0}}}}'
    reader = RotaReader(batch_options({**given, "startingOffsets": starting}))
    real = lag.change

    def change(request: object, answer: object) -> None:
        lists_latest = [p for t in getattr(answer, "topics", ()) for p in t.partitions if getattr(p, "offset", 0) == 10]
        seen.extend(lists_latest)
        if len(seen) == 2:
            lag.behind({0: 4}, answers=2)
            seen.append(None)
        real(request, answer)

    seen: list[object] = []
    lag.change = change  # type: ignore[method-assign]
    assert rows(reader, list(reader.partitions())) == [6, 7, 8, 9]
    assert lag.shown == 2


def test_a_time_that_the_new_leader_does_not_show_yet_is_looked_up_again(given: dict[str, str], lag: Lag) -> None:
    reader = RotaReader(batch_options(given))
    reader.pushFilters([GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(8, UTC))])
    real = lag.change

    def change(request: object, answer: object) -> None:
        if (
            isinstance(request, ListOffsetsRequest)
            and request.topics[0].partitions[0].timestamp == 8000
            and not lag.marks
        ):
            lag.behind({0: 4}, answers=3)
        real(request, answer)

    lag.change = change  # type: ignore[method-assign]
    assert rows(reader, list(reader.partitions())) == [7, 8, 9]


@LOSSY
def test_the_plan_of_a_micro_batch_waits(given: dict[str, str], full: str, lag: Lag, fail_on_data_loss: str) -> None:
    reader = RotaStreamReader(stream_options({**given, "failOnDataLoss": fail_on_data_loss}))
    lag.behind({0: 4}, answers=3)
    try:
        pieces = list(reader.partitions({full: {"0": 2, "1": 0}}, {full: {"0": 10, "1": 0}}))
        assert rows(reader, pieces) == list(range(2, 10))
    finally:
        reader.stop()


def test_of_a_truncated_log_the_rows_that_exist_are_read(given: dict[str, str], full: str, lag: Lag) -> None:
    """The new leader's log ends before the planned end, and its high watermark is behind as well."""
    lossy = {**given, "failOnDataLoss": "false"}
    reader = RotaStreamReader(stream_options(lossy))
    try:
        lag.behind({0: 4}, answers=3)
        pieces = list(reader.partitions({full: {"0": 2, "1": 0}}, {full: {"0": 12, "1": 0}}))
        assert rows(reader, pieces) == list(range(2, 10))
        lag.behind({0: 4}, answers=3)
        batches = list(read(KafkaInputPartition(OffsetRange(full, 0, 2, 12)), batch_options(lossy)))
        assert [row["offset"] for batch in batches for row in batch.to_pylist()] == list(range(2, 10))
    finally:
        reader.stop()


@LOSSY
@pytest.mark.parametrize("available_now", [False, True])
def test_a_stream_that_has_read_further_waits_and_does_not_go_back(
    given: dict[str, str], full: str, lag: Lag, write: Write, fail_on_data_loss: str, available_now: bool
) -> None:
    options = {**given, "failOnDataLoss": fail_on_data_loss, "fetchOffset.numRetries": "0"}
    reader = RotaStreamReader(stream_options(options))
    lag.behind({0: 4}, answers=5)
    try:
        if available_now:
            reader.prepareForTriggerAvailableNow()
        at = {full: {"0": 10, "1": 0}}
        assert reader.latestOffset(at, ALL) == at
        assert lag.shown == 5
    finally:
        reader.stop()


def test_the_driver_does_not_wait_for_ever_and_a_truncated_log_is_loss_at_once(
    given: dict[str, str], full: str, lag: Lag
) -> None:
    short = {"kafka.default.api.timeout.ms": "300", "kafka.request.timeout.ms": "300"}
    lag.behind({0: 4}, answers=None)
    late = RotaStreamReader(stream_options({**given, **short, "failOnDataLoss": "false"}))
    strict = RotaStreamReader(stream_options({**given, "fetchOffset.numRetries": "0"}))
    try:
        with pytest.raises(HighWatermarkBehind, match=rf"{full}-0 .*offset 4.*offset 10"):
            late.partitions({full: {"0": 2, "1": 0}}, {full: {"0": 10, "1": 0}})
        lag.behind({}, answers=0)
        with pytest.raises(DataLost, match=f"{full}-0 was read up to offset 11"):
            strict.latestOffset({full: {"0": 11, "1": 0}}, ALL)
        with pytest.raises(DataLost, match=f"{full}-0 lacks offsets 10 to 10"):
            strict.partitions({full: {"0": 2, "1": 0}}, {full: {"0": 11, "1": 0}})
    finally:
        late.stop()
        strict.stop()


@LOSSY
def test_a_shorter_log_that_grows_is_loss_and_no_late_mark(
    given: dict[str, str], full: str, lag: Lag, write: Write, fail_on_data_loss: str
) -> None:
    """As that of a topic that was created again: between two questions there is always another record."""
    short = {"kafka.default.api.timeout.ms": "1000", "kafka.request.timeout.ms": "1000"}
    options = {**given, **short, "failOnDataLoss": fail_on_data_loss, "fetchOffset.numRetries": "0"}
    reader = RotaStreamReader(stream_options(options))

    def grow(request: object, answer: object) -> None:
        if isinstance(request, ListOffsetsRequest):
            writer = threading.Thread(target=write, args=(full, 0, [(None, b"y")]))
            writer.start()
            writer.join()

    lag.change = grow  # type: ignore[method-assign]
    at = {full: {"0": 1000, "1": 0}}
    try:
        if fail_on_data_loss == "true":
            with pytest.raises(DataLost, match=f"{full}-0 was read up to offset 1000"):
                reader.latestOffset(at, ALL)
        else:
            assert reader.latestOffset(at, ALL) != at
    finally:
        reader.stop()


def test_a_topic_that_is_deleted_while_the_mark_is_waited_for_is_loss(
    bootstrap: str, given: dict[str, str], full: str, lag: Lag
) -> None:
    async def delete() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            await admin.delete_topics([full])

    reader = RotaStreamReader(stream_options({**given, "fetchOffset.numRetries": "0"}))
    try:
        asyncio.run(delete())
        create(bootstrap, full)
        with pytest.raises(DataLost):
            reader.latestOffset({full: {"0": 10, "1": 0}}, ALL)
    finally:
        reader.stop()

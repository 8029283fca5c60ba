"""The line of a micro-batch."""

from __future__ import annotations

from rota.spark_connector.pipelines.progress_lines import lag, progress_line


def test_a_line_has_records_rate_and_lag() -> None:
    progress = {
        "batchId": 3,
        "processedRowsPerSecond": 1234.5,
        "observedMetrics": {"ingest read": {"records": 1000, "dead": 10}, "ingest written": {"written": 990}},
        "stateOperators": [{"numRowsDroppedByWatermark": 4}],
        "sources": [{"endOffset": '{"t": {"0": 5}}', "latestOffset": '{"t": {"0": 1005, "1": 7}}'}],
    }
    assert progress_line(progress) == (
        "batch 3  1,000 records  1,234/s  written 980  dead 10  duplicates 6  late 4  lag 1,007"
    )


def test_without_the_latest_offset_the_lag_is_zero() -> None:
    assert lag({"sources": [{"endOffset": {"t": {"0": 5}}, "latestOffset": None}]}) == 0

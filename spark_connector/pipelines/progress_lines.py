"""The progress of a micro-batch as a line for a terminal. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

METRICS: Final = "ingest"  # the name of the observed metrics: records, dead, written


def progress_line(progress: dict[str, Any]) -> str:
    """The line of a micro-batch; `progress` is Spark's StreamingQueryProgress as JSON."""
    counts = {name: value for each in progress.get("observedMetrics", {}).values() for name, value in each.items()}
    records, dead, written = (int(counts.get(name, 0)) for name in ("records", "dead", "written"))
    late = sum(state.get("numRowsDroppedByWatermark", 0) for state in progress.get("stateOperators", ()))
    parts = [
        f"batch {progress['batchId']}",
        f"{records:,} records",
        f"{progress.get('processedRowsPerSecond') or 0:,.0f}/s",
        f"written {written - dead:,}",
        f"dead {dead:,}",
        f"duplicates {max(0, records - written - late):,}",
        f"late {late:,}",
        f"lag {lag(progress):,}",
    ]
    return "  ".join(parts)


def lag(progress: dict[str, Any]) -> int:
    """The records that the query has not read yet, as of the planning of the micro-batch."""
    return sum(
        _behind(_offsets(source.get("latestOffset")), _offsets(source.get("endOffset")))
        for source in progress["sources"]
    )


def _behind(latest: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> int:
    return sum(
        max(0, offset - end.get(topic, {}).get(partition, 0))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def _offsets(value: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = (json.loads(value) if isinstance(value, str) else value) or {}
    return found

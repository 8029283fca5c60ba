"""Which days are too old; compaction is in tests/spark/test_ingest.py."""

from __future__ import annotations

from rota.spark_connector.pipelines.maintenance import expired

DAYS = ["day=2026-01-01", "day=2026-01-02", "day=2026-01-09", "day=__HIVE_DEFAULT_PARTITION__"]


def test_days_expire_by_the_newest_day_of_the_table() -> None:
    assert expired(DAYS, 7) == ["day=2026-01-01"]
    assert expired(DAYS, 8) == []
    assert expired(DAYS, 0) == []
    assert expired([], 1) == []

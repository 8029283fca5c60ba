"""Which days are too old; compaction is in tests/spark/test_ingest.py."""

from __future__ import annotations

from datetime import date

from rota.spark_connector.pipelines.maintenance import expired, expired_dates

DAYS = ["day=2026-01-01", "day=2026-01-02", "day=2026-01-09", "day=__HIVE_DEFAULT_PARTITION__"]
NOW = date(2026, 6, 1)


def test_days_expire_by_the_newest_day_of_the_table() -> None:
    assert expired(DAYS, 7, NOW) == ["day=2026-01-01"]
    assert expired(DAYS, 8, NOW) == []
    assert expired(DAYS, 0, NOW) == []
    assert expired([], 1, NOW) == []


def test_a_number_of_days_that_no_calendar_has_expires_nothing() -> None:
    """-1 is Kafka's value for no retention."""
    for keep_days in (-1, -400, 10**7, 10**12):
        assert expired(DAYS, keep_days, NOW) == []


def test_a_day_of_the_future_expires_no_other_day() -> None:
    """One producer with a wrong clock would empty the table."""
    assert expired([*DAYS, "day=9999-12-31"], 7, NOW) == ["day=2026-01-01"]
    assert expired(["day=9999-12-31", "day=2026-06-02"], 1, NOW) == []


def test_folders_whose_name_is_no_day_are_left_alone() -> None:
    """Years beyond four digits and before Christ are days of Spark, and not of Python."""
    others = ["day=+10000-01-01", "day=12026-01-01", "day=-0001-01-01", "day=x", "day="]
    assert expired([*others, *DAYS], 7, NOW) == ["day=2026-01-01"]


def test_days_expire_as_folders_do() -> None:
    days = [date(2026, 1, 9), None, date(2026, 1, 1), date(9999, 1, 1)]
    assert expired_dates(days, 5, date(2026, 2, 1)) == [date(2026, 1, 1)]
    assert expired_dates(days, 0, date(2026, 2, 1)) == expired_dates([None], 1, date(2026, 2, 1)) == []

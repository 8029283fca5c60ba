"""Which tables there are; what is in them is in tests/spark/test_pipeline.py."""

from __future__ import annotations

from unittest.mock import sentinel

import pytest

from rota.spark_connector.pipelines.reading import TABLES, read


def test_another_table_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=", ".join(TABLES)):
        read(sentinel.spark, "out", "lags")

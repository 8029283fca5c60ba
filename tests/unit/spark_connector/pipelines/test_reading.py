"""Which tables there are; what is in them is in tests/spark/test_pipeline.py."""

from __future__ import annotations

from unittest.mock import sentinel

import pytest

from rota.spark_connector.pipelines.reading import TABLES, read


def test_an_unknown_table_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=", ".join(TABLES)):
        read(sentinel.spark, "out", "lags")

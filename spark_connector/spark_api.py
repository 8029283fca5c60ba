"""What PySpark 4.0 and 4.1 do not have of the API for data sources, and the same names for it on all versions.

| since | |
|---|---|
| 4.1 | filters are pushed to a batch query; a stream is written as Arrow batches; `arrow_udf` |
| 4.2 | a stream is asked for its end with its start and a limit; Trigger.AvailableNow in several micro-batches |
"""

# ruff: noqa: PLC0414 - so mypy knows that these names are for other files
from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.pandas import types
from pyspark.sql.types import DataType, StructType

VERSION: Final = pyspark.__version__
STREAM_LIMITS: Final = "4.2"
HAS_STREAM_ARROW_WRITER: Final = hasattr(datasource, "DataSourceStreamArrowWriter")

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceStreamArrowWriter as DataSourceStreamArrowWriter,
    )
    from pyspark.sql.datasource import (
        EqualNullSafe as EqualNullSafe,
    )
    from pyspark.sql.datasource import (
        EqualTo as EqualTo,
    )
    from pyspark.sql.datasource import (
        Filter as Filter,
    )
    from pyspark.sql.datasource import (
        GreaterThan as GreaterThan,
    )
    from pyspark.sql.datasource import (
        GreaterThanOrEqual as GreaterThanOrEqual,
    )
    from pyspark.sql.datasource import (
        In as In,
    )
    from pyspark.sql.datasource import (
        IsNotNull as IsNotNull,
    )
    from pyspark.sql.datasource import (
        LessThan as LessThan,
    )
    from pyspark.sql.datasource import (
        LessThanOrEqual as LessThanOrEqual,
    )
    from pyspark.sql.datasource import (
        Not as Not,
    )
    from pyspark.sql.datasource import (
        StringContains as StringContains,
    )
    from pyspark.sql.datasource import (
        StringEndsWith as StringEndsWith,
    )
    from pyspark.sql.datasource import (
        StringStartsWith as StringStartsWith,
    )
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable as ReadAllAvailable,
    )
    from pyspark.sql.streaming.datasource import (
        ReadLimit as ReadLimit,
    )
    from pyspark.sql.streaming.datasource import (
        ReadMaxRows as ReadMaxRows,
    )
    from pyspark.sql.streaming.datasource import (
        ReadMinRows as ReadMinRows,
    )
    from pyspark.sql.streaming.datasource import (
        SupportsTriggerAvailableNow as SupportsTriggerAvailableNow,
    )

    HAS_STREAM_LIMITS: bool
else:

    class Absent:
        """Takes the place of a class that this PySpark does not have, and of which there are no instances."""

    DataSourceStreamArrowWriter = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)
    for _name in (
        "EqualNullSafe",
        "EqualTo",
        "Filter",
        "GreaterThan",
        "GreaterThanOrEqual",
        "In",
        "IsNotNull",
        "LessThan",
        "LessThanOrEqual",
        "Not",
        "StringContains",
        "StringEndsWith",
        "StringStartsWith",
    ):
        globals()[_name] = getattr(datasource, _name, Absent)
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable as ReadAllAvailable,
        )
        from pyspark.sql.streaming.datasource import (
            ReadLimit as ReadLimit,
        )
        from pyspark.sql.streaming.datasource import (
            ReadMaxRows as ReadMaxRows,
        )
        from pyspark.sql.streaming.datasource import (
            ReadMinRows as ReadMinRows,
        )
        from pyspark.sql.streaming.datasource import (
            SupportsTriggerAvailableNow as SupportsTriggerAvailableNow,
        )

        HAS_STREAM_LIMITS = True
    except ImportError:
        HAS_STREAM_LIMITS = False

        class ReadLimit:
            """The limit of a micro-batch: none."""

        class ReadAllAvailable(ReadLimit):
            """The only limit that this PySpark has."""

        ReadMaxRows = ReadMinRows = SupportsTriggerAvailableNow = Absent

try:
    from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper

    ROWS_WITH_PLAN: type[Any] | None = _SimpleStreamReaderWrapper if HAS_STREAM_LIMITS else None
except ImportError:  # it is Spark's own
    ROWS_WITH_PLAN = None


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's own conversion, with timestamps in UTC."""
    return types.to_arrow_schema(schema, **_utc(types.to_arrow_schema))


def to_arrow_type(kind: DataType) -> pa.DataType:
    """Spark's own conversion, with timestamps in UTC."""
    return types.to_arrow_type(kind, **_utc(types.to_arrow_type))


def _utc(convert: Any) -> dict[str, Any]:
    """The argument for UTC; it is the default where there is none with this name."""
    return {"timezone": "UTC"} if "timezone" in inspect.signature(convert).parameters else {}

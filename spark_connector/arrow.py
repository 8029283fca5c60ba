"""Columns of records as an Arrow record batch in Spark's schema: the buffers are handed over as they are.

Laws
    A row is a record: key, value, topic, partition, offset, time, whose time, headers; null where the record has null.
    A header's name that is no UTF-8 is replaced, never an error. Records without headers have null there, as in Spark's
    own source.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rota.protocol.records.columns import BinaryColumn, Columns

_TIME: Final = pa.timestamp("us", tz="UTC")


def record_batch(topic: str, partition: int, columns: Columns, schema: pa.Schema) -> pa.RecordBatch:
    """What `columns` hold, all of one partition; `schema` is schema.py's, with headers or without."""
    rows = int(columns.count)
    arrays = [
        binary(columns.keys, pa.binary()),
        binary(columns.values, pa.binary()),
        pa.repeat(pa.scalar(topic, pa.string()), rows),
        pa.repeat(pa.scalar(partition, pa.int32()), rows),
        _fixed(columns.offsets.getvalue(), pa.int64(), rows),
        _fixed(columns.timestamps_us.getvalue(), _TIME, rows),
        _fixed(columns.types.getvalue(), pa.int32(), rows),
    ]
    if columns.with_headers:
        arrays.append(_headers(columns, schema.field("headers").type, rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def binary(column: BinaryColumn, kind: pa.DataType) -> pa.Array:
    """One column of bytes or text, with its nulls."""
    nulls = int(column.nulls)
    validity = pa.py_buffer(column.validity.getvalue()) if nulls else None
    data = [validity, pa.py_buffer(column.offsets.getvalue()), pa.py_buffer(column.data.getvalue())]
    return pa.Array.from_buffers(kind, int(column.count), data, null_count=nulls)


def _fixed(data: bytes, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data)], null_count=0)


def _headers(columns: Columns, kind: pa.ListType, rows: int) -> pa.Array:
    names, values = binary(columns.header_names, pa.string()), binary(columns.header_values, pa.binary())
    pairs = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
    offsets = pa.py_buffer(columns.header_offsets.getvalue())
    validity = pa.py_buffer(columns.header_validity.getvalue())
    return pa.Array.from_buffers(kind, rows, [validity, offsets], children=[pairs])

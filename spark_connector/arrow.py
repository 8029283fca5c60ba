"""Columns of records as an Arrow record batch in Spark's schema.

Laws
    A row is a record: key, value, topic, partition, offset, timestamp, timestamp type, headers; null where the record
    has null.
    Keys and values are copied once, by Arrow, from the fetched bytes.
    Invalid UTF-8 in a header's name is replaced and is no error. Records without headers have null there, as in Spark's
    own source.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa

from rota.protocol.records.columns import BinaryColumn, Columns, Validity

_TIME: Final = pa.timestamp("us", tz="UTC")
_ROWS_MIN: Final = 1 << 12  # constant columns are built once for at least so many rows, and sliced


def record_batch(topic: str, partition: int, columns: Columns, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in `columns`, all of one partition. `schema` is that of schema.py, with or without headers."""
    rows = int(columns.count)
    arrays = [
        *_keys_and_values(columns, rows),
        _constant(topic, pa.string(), _capacity(rows)).slice(0, rows),
        _constant(partition, pa.int32(), _capacity(rows)).slice(0, rows),
        _fixed(columns.offsets.getvalue(), pa.int64(), rows),
        _fixed(columns.timestamps_us.getvalue(), _TIME, rows),
        _fixed(columns.types.getvalue(), pa.int32(), rows),
    ]
    if columns.with_headers:
        arrays.append(_headers(columns, schema.field("headers").type, rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _keys_and_values(columns: Columns, rows: int) -> tuple[pa.Array, pa.Array]:
    """Keys and values. `places` are the offsets of an array in which they alternate with the bytes between them."""
    if not rows:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    buffers = [None, pa.py_buffer(columns.places.getvalue()), pa.py_buffer(columns.source())]
    alternating = pa.Array.from_buffers(pa.binary(), 4 * rows - 1, buffers, null_count=0)
    keys, values = (alternating.take(_every_fourth(first, _capacity(rows)).slice(0, rows)) for first in (0, 2))
    return _with_nulls(keys, columns.keys, rows), _with_nulls(values, columns.values, rows)


def _with_nulls(array: pa.Array, validity: Validity, rows: int) -> pa.Array:
    nulls = int(validity.nulls)
    if not nulls:
        return array
    buffers = [pa.py_buffer(validity.getvalue(rows)), *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, rows, buffers, null_count=nulls)


def _capacity(rows: int) -> int:
    """The smallest power of two, from _ROWS_MIN on, that holds so many rows."""
    return max(_ROWS_MIN, 1 << (rows - 1).bit_length())


@lru_cache(maxsize=4)
def _every_fourth(first: int, rows: int) -> pa.Array:
    return pa.array(range(first, first + 4 * rows, 4), pa.int32())


@lru_cache(maxsize=16)
def _constant(value: str | int, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)


def binary(column: BinaryColumn, kind: pa.DataType) -> pa.Array:
    """One column of bytes or strings, with its nulls."""
    rows, nulls = int(column.count), int(column.validity.nulls)
    validity = pa.py_buffer(column.validity.getvalue(rows)) if nulls else None
    data = [validity, pa.py_buffer(column.offsets.getvalue()), pa.py_buffer(column.data.getvalue())]
    return pa.Array.from_buffers(kind, rows, data, null_count=nulls)


def _fixed(data: bytes, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data)], null_count=0)


def _headers(columns: Columns, kind: pa.ListType, rows: int) -> pa.Array:
    names, values = binary(columns.header_names, pa.string()), binary(columns.header_values, pa.binary())
    pairs = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
    offsets = pa.py_buffer(columns.header_offsets.getvalue())
    validity = pa.py_buffer(columns.header_validity.getvalue(rows))
    nulls = int(columns.header_validity.nulls)
    return pa.Array.from_buffers(kind, rows, [validity, offsets], null_count=nulls, children=[pairs])

"""Messages of Protobuf as rows: the schema of a message type in a descriptor set, and its decoder. Pure.

Spark's `from_protobuf` needs a package of Spark's own release; this needs Python's `protobuf` (the extra
`rota[protobuf]`), on the driver and on executors.

Laws
    Bytes that are not the message give a reason and no row. A field with presence that is not set is null; a field
    without presence has its default. A nested message without fields is true: no table has a struct without fields.
    A message of a schema that nests types over and over is refused before it is expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from rota.spark_connector.errors import OptionError

FRAME_BYTES: Final = 5  # a zero, and the id of the schema in a registry; the path of the message's type follows
INDEXES_MAX: Final = 32
COLUMNS_MAX: Final = 10_000  # of a message, those in nested messages too
DEPTH_MAX: Final = 100
UNKNOWN_SCHEMA: Final = "the registry has no Protobuf schema with id "  # and the id
TIMESTAMP: Final = "google.protobuf.Timestamp"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BYTES: Final = 12  # google.protobuf.FieldDescriptor.TYPE_BYTES
_UINT64: Final = DecimalType(20, 0)
_SCALARS: Final[dict[int, DataType]] = {  # by FieldDescriptor's cpp_type
    1: IntegerType(),
    2: LongType(),
    3: LongType(),  # uint32
    4: _UINT64,
    5: DoubleType(),
    6: FloatType(),
    7: BooleanType(),
    8: StringType(),  # an enum: the name of its value
    9: StringType(),
}
_MESSAGE: Final = 10
_ENUM: Final = 8
_STRING: Final = 9  # and bytes
Value = Callable[[Any], Any]
Writers = tuple[tuple[int, tuple[int, ...] | str], ...]
"""By the id of a schema: the path of the message's type in it, or why its values cannot be decoded."""


class InvalidSchema(ValueError):
    """A schema of a registry is no set of descriptors."""


class ProtobufMessage:
    """A message type of a FileDescriptorSet, as `protoc --include_imports --descriptor_set_out` writes it. Raises
    OptionError."""

    def __init__(self, descriptors: bytes, name: str, writers: Writers = ()) -> None:
        descriptor = message_type(descriptors, name)
        _check_size(descriptor)
        self._writers = dict(writers)
        self._make, self._decode_error = _message_class(descriptor)
        self._path = type_path(descriptor)
        self.schema = _struct(descriptor)
        self._row = _row_of(descriptor)

    def decode(self, value: bytes | None, *, is_framed: bool) -> tuple[dict[str, Any] | None, str | None]:
        """The fields and None, or None and the reason. With `is_framed` a producer with a schema registry wrote it."""
        if value is None:
            return None, "value is null"
        start = 0
        if is_framed:
            try:
                path, start = frame_path(value)
            except ValueError as error:
                return None, str(error)
            if reason := self._refusal(value, path):
                return None, reason
        try:
            message = self._make()
            message.ParseFromString(value[start:])
            if not message.IsInitialized():
                return None, "a required field is missing"
            return self._row(message), None
        except self._decode_error:
            return None, "value is not Protobuf of the message"
        except UnicodeError:
            return None, "value has a text that is not UTF-8"
        except OverflowError:
            return None, "value has a time that no table can have"

    def _refusal(self, value: bytes, path: list[int]) -> str | None:
        """Why a value of this frame is not decoded; None: it is."""
        wanted: list[int] | str | None = self._path
        if self._writers:
            schema_id = int.from_bytes(value[1:FRAME_BYTES], "big")
            known = self._writers.get(schema_id)
            if known is None:
                return f"{UNKNOWN_SCHEMA}{schema_id}"
            if isinstance(known, str):
                return f"the schema {schema_id} {known}"
            wanted = list(known)
        return None if path == wanted else f"value is the message {path} of its schema, not {wanted}"


@lru_cache(maxsize=8)
def protobuf_message(descriptors: bytes, name: str, writers: Writers = ()) -> ProtobufMessage:
    """The same, once for each Python worker."""
    return ProtobufMessage(descriptors, name, writers)


def frame_path(value: bytes) -> tuple[list[int], int]:
    """The path of the message's type in the file of its schema, and the length of the frame. Raises ValueError."""
    if len(value) <= FRAME_BYTES or value[0] != 0:
        raise ValueError("value does not begin with the id of a schema")
    numbers = _varints(value, FRAME_BYTES)
    count, end = next(numbers)
    if not 0 <= count <= INDEXES_MAX:
        raise ValueError("value does not begin with the id of a schema and the path of a message")
    path = []
    for _ in range(count):
        index, end = next(numbers)
        path.append(index)
    return path or [0], end  # the first message of a file, the usual one, is written as an empty path


def _varints(value: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Zigzag varints and their ends."""
    while True:
        number = shift = 0
        while True:
            if position == len(value) or shift > INDEXES_MAX:
                raise ValueError("value does not begin with the id of a schema and the path of a message")
            byte, position = value[position], position + 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1), position


def message_type(descriptors: bytes, name: str, option: str = "--schema") -> Any:
    """The descriptor of a message. Raises OptionError; without `option`, of a registry's schema, InvalidSchema, and
    None for a name that the descriptors do not have."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError
    except ImportError:
        raise OptionError("--value-format", "protobuf", 'used with Protobuf: pip install "rota[protobuf]"') from None
    files, pool = descriptor_pb2.FileDescriptorSet(), descriptor_pool.DescriptorPool()
    try:
        files.ParseFromString(descriptors)
        for file in files.file:
            pool.AddSerializedFile(file.SerializeToString())
    except (DecodeError, TypeError) as error:
        detail = str(error)[:200]
        if not option:
            raise InvalidSchema(detail) from None
        expected = f"a file of protoc --include_imports --descriptor_set_out ({detail})"
        raise OptionError(option, None, expected) from None
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        if not option:
            return None
        known = [f"{file.package}.{each.name}".strip(".") for file in files.file for each in file.message_type]
        raise OptionError("--message", name, f"a message of the descriptors: {', '.join(known[:20])}") from None


def _message_class(descriptor: Any) -> tuple[Any, type[Exception]]:
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor), DecodeError


def type_path(descriptor: Any) -> list[int]:
    """The index of the message in its file or in the message around it, from the outside."""
    around = descriptor.containing_type
    siblings = list(descriptor.file.message_types_by_name.values()) if around is None else list(around.nested_types)
    names = [each.full_name for each in siblings]
    return [*(type_path(around) if around is not None else ()), names.index(descriptor.full_name)]


def _is_map(field: Any) -> bool:
    return field.cpp_type == _MESSAGE and bool(field.message_type.GetOptions().map_entry)


def _check_size(descriptor: Any) -> None:
    """Raises OptionError for a message that contains itself, or has more columns or levels than any table."""
    columns, depth = _size(descriptor, (), {})
    if columns > COLUMNS_MAX or depth > DEPTH_MAX:
        expected = f"a message with at most {COLUMNS_MAX} fields and {DEPTH_MAX} levels, nested ones counted"
        raise OptionError("--message", descriptor.full_name, expected)


def _size(descriptor: Any, around: tuple[str, ...], known: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """The number of columns and of levels, at most DEPTH_MAX + 1 of them."""
    name = descriptor.full_name
    if name in around:
        raise OptionError("--message", name, "a message that does not contain itself")
    if len(around) > DEPTH_MAX:
        return 0, 1
    if name not in known:
        nested = [field.message_type for field in descriptor.fields if field.cpp_type == _MESSAGE]
        sizes = [_size(each, (*around, name), known) for each in nested if each.full_name != TIMESTAMP]
        columns = len(descriptor.fields) + sum(columns for columns, _ in sizes)
        known[name] = columns, 1 + max((depth for _, depth in sizes), default=0)
    return known[name]


def _struct(descriptor: Any) -> StructType:
    found = StructType()
    for field in descriptor.fields:
        found.add(field.name, _field_type(field))
    return found


def _field_type(field: Any) -> DataType:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return MapType(_single_type(key), _single_type(value))
    single = _single_type(field)
    return ArrayType(single) if field.is_repeated else single


def _single_type(field: Any) -> DataType:
    if field.cpp_type == _MESSAGE:
        if not field.message_type.fields:
            return BooleanType()
        is_time = field.message_type.full_name == TIMESTAMP
        return TimestampType() if is_time else _struct(field.message_type)
    return BinaryType() if field.type == _BYTES else _SCALARS[field.cpp_type]


def _row_of(descriptor: Any) -> Value:
    """Converts a message of this type into a dict."""
    fields = [(field.name, field.has_presence, _field_value(field)) for field in descriptor.fields]

    def row(message: Any) -> dict[str, Any]:
        return {
            name: None if has_presence and not message.HasField(name) else convert(getattr(message, name))
            for name, has_presence, convert in fields
        }

    return row


def _field_value(field: Any) -> Value:
    if _is_map(field):
        convert = _single_value(field.message_type.fields_by_name["value"])
        return lambda found: {key: convert(value) for key, value in found.items()}
    single = _single_value(field)
    return (lambda found: [single(each) for each in found]) if field.is_repeated else single


def _single_value(field: Any) -> Value:
    if field.cpp_type == _MESSAGE:
        if not field.message_type.fields:
            return lambda _: True
        return _time if field.message_type.full_name == TIMESTAMP else _row_of(field.message_type)
    if field.cpp_type == _ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.cpp_type == _STRING and field.type != _BYTES:
        return _text
    return Decimal if _SCALARS[field.cpp_type] == _UINT64 else _same


def _time(message: Any) -> datetime:
    """Raises OverflowError for a year that Python's calendar does not have."""
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _text(value: str | bytes) -> str:
    """Raises UnicodeError. Python's library gives bytes for a string of proto2 that is not UTF-8."""
    return value.decode() if isinstance(value, bytes) else value


def _same(value: Any) -> Any:
    return value

"""Protobuf schemas of a registry: their files as a set of descriptors, and which messages are read as another. Pure.

Laws
    A set has each file after those that it imports. An import that nobody has is an error with its name.
    A writer's message is read as the reader's when each field with the same number loses nothing by that: neither its
    value, nor what a oneof or a closed enum of the reader cannot have.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from rota.spark_connector.pipelines.protobuf_messages import InvalidSchema, message_type, type_path

ROOT: Final = ""  # the name of the file that is no import
FILES_MAX: Final = 200  # of a schema, with all imports
OPTIONS_ONLY: Final = "confluent/meta.proto"  # Confluent's registry does not list it as a reference
_OF_GOOGLE: Final = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
KNOWN: Final = {f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _OF_GOOGLE.split()}
_WIDER: Final = {  # types of FieldDescriptor: what else a value of the writer's type can be read as
    5: {3},  # int32: int64
    13: {3, 4},  # uint32: int64, uint64
    17: {18},  # sint32: sint64
    8: {3, 4, 5, 13},  # bool: integers
    14: {3, 5},  # enum: int64, int32
    9: {12},  # string: bytes
    12: {9},  # bytes: string, which is checked
}


def file_set(files: Mapping[str, bytes]) -> bytes:
    """A FileDescriptorSet of FileDescriptorProtos by the names that they are imported by; ROOT is the schema. Raises
    InvalidSchema."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    found, added = descriptor_pb2.FileDescriptorSet(), set[str]()

    def add(name: str) -> None:
        if name in added:
            return
        if len(added) == FILES_MAX:
            raise InvalidSchema(f"more than {FILES_MAX} files")
        added.add(name)
        file = descriptor_pb2.FileDescriptorProto()
        if name != OPTIONS_ONLY or name in files:
            file.ParseFromString(_content(files, name))
        file.name = name or "the schema of the registry"
        for each in file.dependency:
            add(each)
        found.file.append(file)

    try:
        add(ROOT)
    except DecodeError as error:
        raise InvalidSchema(f"not a FileDescriptorProto: {error}") from None
    return bytes(found.SerializeToString())


def _content(files: Mapping[str, bytes], name: str) -> bytes:
    if name in files:
        return files[name]
    if name not in KNOWN:
        raise InvalidSchema(f"it imports {name[:200]}, which is not among its references")
    known: bytes = import_module(KNOWN[name]).DESCRIPTOR.serialized_pb
    return known


def writer(descriptors: bytes, name: str, reader: bytes) -> tuple[int, ...] | str:
    """The path of the message `name` in a writer's schema, or why it is not read as that of `reader`. Raises
    InvalidSchema, and OptionError for the reader's."""
    own, wanted = message_type(descriptors, name, ""), message_type(reader, name)
    if own is None:
        return f"has no message {name}"
    return _difference(own, wanted, set()) or tuple(type_path(own))


def _difference(own: Any, wanted: Any, seen: set[tuple[str, str]]) -> str:
    """Why the message `own` cannot be read as `wanted`; "": it can."""
    if (own.full_name, wanted.full_name) in seen:
        return ""
    seen.add((own.full_name, wanted.full_name))
    for number, field in wanted.fields_by_number.items():
        other = own.fields_by_number.get(number)
        if other is not None and (reason := _field_difference(other, field, seen)):
            return reason
    for choice in wanted.oneofs:
        found = [own.fields_by_number.get(field.number) for field in choice.fields]
        around = [field.containing_oneof and field.containing_oneof.full_name for field in found if field is not None]
        if len(around) > 1 and (around[0] is None or len(set(around)) > 1):
            return f"may have several fields of {choice.full_name}"
    return ""


def _field_difference(other: Any, field: Any, seen: set[tuple[str, str]]) -> str:
    if other.type != field.type and field.type not in _WIDER.get(other.type, ()):
        return f"has another type in {other.full_name}"
    if other.is_repeated and not field.is_repeated:
        return f"has another type in {other.full_name}"
    if field.message_type is not None:
        return _difference(other.message_type, field.message_type, seen)
    if field.enum_type is not None and field.enum_type.is_closed:
        numbers = set(other.enum_type.values_by_number) - set(field.enum_type.values_by_number)
        return f"has unknown values in {other.full_name}" if numbers else ""
    return ""

"""Files of a registry as a set of descriptors, and which writers' messages can be read."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.protobuf_messages import ProtobufMessage
from rota.spark_connector.pipelines.protobuf_schemas import FILES_MAX, OPTIONS_ONLY, ROOT, file_set, writer

TYPE = descriptor_pb2.FieldDescriptorProto


def file(*imports: str, before: int = 0, message: str = "Order", label: int = 1, **fields: int | str) -> bytes:
    """A file of the package shop with `message`, behind others; fields are types, or names of messages."""
    found = descriptor_pb2.FileDescriptorProto(name="default", package="shop", syntax="proto3")
    found.dependency.extend(imports)
    for number in range(before):
        found.message_type.add(name=f"Before{number}")
    of = found.message_type.add(name=message)
    for number, (name, kind) in enumerate(fields.items(), 1):
        if isinstance(kind, str):
            of.field.add(name=name, number=number, type=TYPE.TYPE_MESSAGE, label=label, type_name=kind)  # type: ignore[arg-type]
        else:
            of.field.add(name=name, number=number, type=kind, label=label)  # type: ignore[arg-type]
    return found.SerializeToString()


def one(**fields: int | str) -> bytes:
    return file_set({ROOT: file(**fields)})  # type: ignore[arg-type]


def test_files_come_after_those_that_they_import() -> None:
    time, line = "google/protobuf/timestamp.proto", "line.proto"
    files = {
        ROOT: file(line, OPTIONS_ONLY, line=".shop.Line"),
        line: file(time, message="Line", at=".google.protobuf.Timestamp"),
    }
    descriptors = file_set(files)
    names = [each.name for each in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file]
    assert names == [time, line, OPTIONS_ONLY, "the schema of the registry"]
    assert ProtobufMessage(descriptors, "shop.Order").schema.simpleString() == "struct<line:struct<at:timestamp>>"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({ROOT: file("gone.proto")}, "it imports gone.proto, which is not among its references"),
        ({ROOT: file("a"), "a": file("google/type/date.proto", message="A")}, "it imports google/type/date.proto"),
        ({ROOT: b"\xff"}, "not a FileDescriptorProto"),
        (
            {ROOT: file("1")} | {str(each): file(str(each + 1)) for each in range(1, FILES_MAX + 2)},
            "more than 200 files",
        ),
    ],
)
def test_what_is_no_set_is_refused(files: dict[str, bytes], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        file_set(files)


def test_files_that_import_each_other_are_refused() -> None:
    circle = file_set({ROOT: file("a"), "a": file("b", message="A"), "b": file("a", message="B")})
    with pytest.raises(OptionError, match="--schema-registry"):
        writer(circle, "shop.Order", circle)


def test_a_writer_that_loses_nothing_has_its_path() -> None:
    reader = one(id=TYPE.TYPE_INT64, name=TYPE.TYPE_STRING)
    assert writer(reader, "shop.Order", reader) == (0,)
    assert writer(one(before=2, number=TYPE.TYPE_INT32), "shop.Order", reader) == (2,)
    assert writer(one(id=TYPE.TYPE_UINT32, name=TYPE.TYPE_BYTES, new=TYPE.TYPE_DOUBLE), "shop.Order", reader) == (0,)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"message": "Other"}, "has no message shop.Order"),
        ({"id": TYPE.TYPE_STRING}, "has another type in shop.Order.id"),
        ({"id": TYPE.TYPE_UINT64}, "has another type in shop.Order.id"),  # above 2**63 it would be negative
        ({"id": TYPE.TYPE_SINT64}, "has another type in shop.Order.id"),
        ({"id": TYPE.TYPE_INT64, "label": 3}, "has another type in shop.Order.id"),  # all but the last would be lost
    ],
)
def test_a_writer_that_loses_something_has_a_reason(own: dict[str, int | str], reason: str) -> None:
    assert writer(one(**own), "shop.Order", one(id=TYPE.TYPE_INT64)) == reason


def test_messages_in_messages_are_compared_also_those_that_contain_themselves() -> None:
    tree = one(child=".shop.Order", id=TYPE.TYPE_INT64)
    assert writer(tree, "shop.Order", tree) == (0,)
    assert writer(one(child=".shop.Order", id=TYPE.TYPE_BOOL), "shop.Order", tree) == (0,)
    assert (
        writer(one(child=".shop.Order", id=TYPE.TYPE_FIXED64), "shop.Order", tree)
        == "has another type in shop.Order.id"
    )

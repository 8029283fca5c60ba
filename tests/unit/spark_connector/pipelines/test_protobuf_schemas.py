"""Files of a registry as a set of descriptors, and which writers' messages can be read."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from rota.spark_connector.pipelines.protobuf_messages import InvalidSchema, ProtobufMessage
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
    with pytest.raises(InvalidSchema, match=reason):
        file_set(files)


def test_files_that_import_each_other_are_refused() -> None:
    circle = file_set({ROOT: file("a"), "a": file("b", message="A"), "b": file("a", message="B")})
    with pytest.raises(InvalidSchema):
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


def with_oneofs(*names: str) -> bytes:
    """A message of the fields 1, 2, ..., each in the oneof of that name; "": in none."""
    found = descriptor_pb2.FileDescriptorProto(package="shop", syntax="proto3")
    of = found.message_type.add(name="Order")
    known = sorted({name for name in names if name})
    for name in known:
        of.oneof_decl.add(name=name)
    for number, name in enumerate(names, 1):
        field = of.field.add(name=f"f{number}", number=number, type=TYPE.TYPE_INT64, label=1)
        if name:
            field.oneof_index = known.index(name)
    return file_set({ROOT: found.SerializeToString()})


def test_a_oneof_of_the_latest_version_does_not_drop_a_field_of_another() -> None:
    reader = with_oneofs("choice", "choice", "")
    for same in (reader, with_oneofs("other", "other", "other"), with_oneofs("", "choice"), with_oneofs("")):
        expected = (0,) if same != with_oneofs("", "choice") else "may have several fields of shop.Order.choice"
        assert writer(same, "shop.Order", reader) == expected
    for lost in (with_oneofs("", ""), with_oneofs("a", "b")):
        assert writer(lost, "shop.Order", reader) == "may have several fields of shop.Order.choice"


def with_enum(*numbers: int, syntax: str = "proto2") -> bytes:
    found = descriptor_pb2.FileDescriptorProto(package="shop", syntax=syntax)
    of = found.message_type.add(name="Order")
    kind = of.enum_type.add(name="Kind")
    for number in numbers:
        kind.value.add(name=f"K{number}", number=number)
    of.field.add(name="kind", number=1, type=TYPE.TYPE_ENUM, label=1, type_name=".shop.Order.Kind")
    return file_set({ROOT: found.SerializeToString()})


def test_a_closed_enum_of_the_latest_version_has_all_values_of_the_writer() -> None:
    """Python's library keeps another number as an unknown field; an open enum has it as a number."""
    assert writer(with_enum(0, 1), "shop.Order", with_enum(0, 1, 2)) == (0,)
    assert writer(with_enum(0, 2), "shop.Order", with_enum(0, 1)) == "has unknown values in shop.Order.kind"
    assert writer(with_enum(0, 2), "shop.Order", with_enum(0, 1, syntax="proto3")) == (0,)


def with_group(kind: int) -> bytes:
    found = descriptor_pb2.FileDescriptorProto(package="shop", syntax="proto2")
    of = found.message_type.add(name="Order")
    of.nested_type.add(name="Line").field.add(name="sku", number=1, type=kind, label=1)  # type: ignore[arg-type]
    of.field.add(name="line", number=1, type=TYPE.TYPE_GROUP, label=1, type_name=".shop.Order.Line")
    return file_set({ROOT: found.SerializeToString()})


def test_groups_are_compared_as_messages_are() -> None:
    own, reader = with_group(TYPE.TYPE_INT64), with_group(TYPE.TYPE_STRING)
    assert writer(own, "shop.Order", reader) == "has another type in shop.Order.Line.sku"

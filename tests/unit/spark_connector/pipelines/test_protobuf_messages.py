"""Message types of a descriptor set as rows, and the frame of a schema registry."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.protobuf_messages import DEPTH_MAX, ProtobufMessage, frame_path

TYPE = descriptor_pb2.FieldDescriptorProto
SIMPLE = "id:bigint,ratio:double,small:float,count:bigint,big:decimal(20,0),ok:boolean,name:string,raw:binary"


def descriptor_set(*, with_imports: bool = True) -> bytes:
    """shop.Order with a nested Line, and shop.Tree, which contains itself."""
    found = descriptor_pb2.FileDescriptorSet()
    if with_imports:
        timestamp_pb2.DESCRIPTOR.CopyToProto(found.file.add())
    file = found.file.add(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="First")
    order = file.message_type.add(name="Order")
    kind = order.enum_type.add(name="Kind")
    kind.value.add(name="NEW", number=0)
    kind.value.add(name="PAID", number=1)
    line = order.nested_type.add(name="Line")
    line.field.add(name="sku", number=1, type=TYPE.TYPE_STRING, label=1)
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=TYPE.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=TYPE.TYPE_INT32, label=1)
    simple = (TYPE.TYPE_INT64, TYPE.TYPE_DOUBLE, TYPE.TYPE_FLOAT, TYPE.TYPE_UINT32, TYPE.TYPE_UINT64, TYPE.TYPE_BOOL)
    names = ("id", "ratio", "small", "count", "big", "ok", "name", "raw")
    for number, (name, each) in enumerate(zip(names, (*simple, TYPE.TYPE_STRING, TYPE.TYPE_BYTES), strict=True), 1):
        order.field.add(name=name, number=number, type=each, label=1)
    order.field.add(name="kind", number=9, type=TYPE.TYPE_ENUM, label=1, type_name=".shop.Order.Kind")
    order.field.add(name="lines", number=10, type=TYPE.TYPE_MESSAGE, label=3, type_name=".shop.Order.Line")
    order.field.add(name="tags", number=11, type=TYPE.TYPE_MESSAGE, label=3, type_name=".shop.Order.TagsEntry")
    order.field.add(name="at", number=12, type=TYPE.TYPE_MESSAGE, label=1, type_name=".google.protobuf.Timestamp")
    order.field.add(name="note", number=13, type=TYPE.TYPE_STRING, label=1, proto3_optional=True, oneof_index=0)
    order.oneof_decl.add(name="_note")
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="child", number=1, type=TYPE.TYPE_MESSAGE, label=1, type_name=".shop.Tree")
    return found.SerializeToString()


@pytest.fixture(scope="module")
def order() -> ProtobufMessage:
    return ProtobufMessage(descriptor_set(), "shop.Order")


def encoded(order: ProtobufMessage, **fields: Any) -> bytes:
    raw: bytes = order._make(**fields).SerializeToString()
    return raw


def test_the_schema_of_a_message(order: ProtobufMessage) -> None:
    more = "kind:string,lines:array<struct<sku:string>>,tags:map<string,int>,at:timestamp,note:string"
    assert order.schema.simpleString() == f"struct<{SIMPLE},{more}>"


def test_every_kind_of_field_is_decoded(order: ProtobufMessage) -> None:
    time = timestamp_pb2.Timestamp(seconds=1_767_225_600, nanos=5_000)
    fields = {"id": -3, "ratio": 0.5, "small": 0.25, "count": 4_000_000_000, "big": (1 << 64) - 1, "ok": True}
    fields |= {"name": "é", "raw": b"\xff", "tags": {"a": 1}, "note": ""}
    raw = encoded(order, **fields, kind=1, lines=[{"sku": "s"}], at={"seconds": time.seconds, "nanos": time.nanos})
    found, reason = order.decode(raw, is_framed=False)
    assert reason is None
    assert found == {
        **fields,
        "big": Decimal((1 << 64) - 1),
        "kind": "PAID",
        "lines": [{"sku": "s"}],
        "at": datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
    }


def test_a_field_that_is_not_set_is_null_or_has_its_default(order: ProtobufMessage) -> None:
    found, reason = order.decode(b"", is_framed=False)
    assert reason is None
    assert found is not None
    assert (found["id"], found["name"], found["kind"], found["lines"], found["tags"]) == (0, "", "NEW", [], {})
    assert (found["at"], found["note"]) == (None, None)
    raw = encoded(order, kind=7)
    assert order.decode(raw, is_framed=False)[0]["kind"] == "7"  # type: ignore[index] # a value of a newer schema


def test_other_bytes_have_a_reason(order: ProtobufMessage) -> None:
    far = encoded(order, at={"seconds": 300_000_000_000})
    cases = {b"\xff": "not Protobuf of the message", far: "a time that no table can have", None: "value is null"}
    for value, expected in cases.items():
        record, reason = order.decode(value, is_framed=False)
        assert record is None
        assert expected in str(reason)


@given(st.binary(max_size=40))
def test_no_bytes_raise(raw: bytes) -> None:
    order = ProtobufMessage(descriptor_set(), "shop.Order")
    for is_framed in (False, True):
        record, reason = order.decode(raw, is_framed=is_framed)
        assert (record is None) == (reason is not None)


def test_a_message_without_fields_is_whether_it_is_there() -> None:
    """As google.protobuf.Empty in a oneof. Parquet has no column of a struct without fields."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="e.proto", package="e", syntax="proto3")
    file.message_type.add(name="Empty")
    message = file.message_type.add(name="M")
    message.field.add(name="one", number=1, type=TYPE.TYPE_MESSAGE, label=1, type_name=".e.Empty")
    message.field.add(name="many", number=2, type=TYPE.TYPE_MESSAGE, label=3, type_name=".e.Empty")
    found = ProtobufMessage(files.SerializeToString(), "e.M")
    assert found.schema.simpleString() == "struct<one:boolean,many:array<boolean>>"
    assert found.decode(b"", is_framed=False)[0] == {"one": None, "many": []}
    assert found.decode(b"\x0a\x00\x12\x00\x12\x00", is_framed=False)[0] == {"one": True, "many": [True, True]}
    assert ProtobufMessage(files.SerializeToString(), "e.Empty").schema.simpleString() == "struct<>"


def test_a_text_of_proto2_that_is_not_utf8_has_a_reason() -> None:
    """proto3 refuses it when it parses; of proto2, Python's library returns bytes, which no column of strings takes."""
    files = descriptor_pb2.FileDescriptorSet()
    message = files.file.add(name="old.proto", package="old", syntax="proto2").message_type.add(name="M")
    message.field.add(name="one", number=1, type=TYPE.TYPE_STRING, label=1)
    message.field.add(name="many", number=2, type=TYPE.TYPE_STRING, label=3)
    entry = message.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=TYPE.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=TYPE.TYPE_STRING, label=1)
    message.field.add(name="tags", number=3, type=TYPE.TYPE_MESSAGE, label=3, type_name=".old.M.TagsEntry")
    found = ProtobufMessage(files.SerializeToString(), "old.M")
    in_tags = (b"\x1a\x06\x0a\x01\xff\x12\x01a", b"\x1a\x06\x0a\x01a\x12\x01\xff")
    for raw in (b"\x0a\x01\xff", b"\x12\x01\xff", *in_tags):
        assert found.decode(raw, is_framed=False) == (None, "value has a text that is not UTF-8")
    assert found.decode(b"\x0a\x01a", is_framed=False)[0] == {"one": "a", "many": [], "tags": {}}


def test_the_frame_of_a_registry_names_the_message(order: ProtobufMessage) -> None:
    raw = encoded(order, id=5)
    head = b"\0\0\0\0\x07"
    found, reason = order.decode(head + b"\x02\x02" + raw, is_framed=True)  # a path of one index, 1: Order
    assert (reason, found and found["id"]) == (None, 5)
    assert "not [1]" in str(order.decode(head + b"\0" + raw, is_framed=True)[1])  # the first message
    assert ProtobufMessage(descriptor_set(), "shop.First").decode(head + b"\0", is_framed=True)[1] is None
    line = ProtobufMessage(descriptor_set(), "shop.Order.Line")
    assert line.decode(head + b"\x04\x02\x00", is_framed=True)[1] is None  # 1, then 0
    assert frame_path(head + b"\x02\x80\x01") == ([64], 8)
    for broken in (b"", head, b"\x01" + head, head + b"\x01", head + b"\x02", head + b"\x02" + b"\xff" * 9):
        assert "does not begin with the id" in str(order.decode(broken, is_framed=True)[1])


def levels(depth: int, width: int) -> bytes:
    """M0 has fields of M1, which has fields of M2, and so on."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="m.proto", package="m", syntax="proto3")
    for level in range(depth):
        message = file.message_type.add(name=f"M{level}")
        for number in range(1, width + 1):
            if level + 1 < depth:
                kind = {"type": TYPE.TYPE_MESSAGE, "type_name": f".m.M{level + 1}"}
            else:
                kind = {"type": TYPE.TYPE_INT32}
            message.field.add(name=f"f{number}", number=number, label=1, **kind)  # type: ignore[arg-type]
    return files.SerializeToString()


def test_a_schema_that_nests_types_over_and_over_is_refused_before_it_is_expanded() -> None:
    """A few lines of schema are 2**40 columns, or more levels than Python's stack has."""
    assert len(ProtobufMessage(levels(DEPTH_MAX, 1), "m.M0").schema) == 1
    assert len(ProtobufMessage(levels(10, 2), "m.M0").schema) == 2
    for depth, width in ((40, 2), (DEPTH_MAX + 1, 1), (3_000, 1)):
        with pytest.raises(OptionError, match="at most 10000 fields and 100 levels"):
            ProtobufMessage(levels(depth, width), "m.M0")


def test_descriptors_that_cannot_be_used_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for descriptors, name, reason in (
        (b"\xff", "shop.Order", "--include_imports"),
        (descriptor_set(with_imports=False), "shop.Order", "--include_imports"),
        (descriptor_set(), "shop.Other", "shop.First, shop.Order, shop.Tree"),
        (descriptor_set(), "shop.Tree", "does not contain itself"),
    ):
        with pytest.raises(OptionError, match=reason):
            ProtobufMessage(descriptors, name)
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(OptionError, match=r"rota\[protobuf\]"):
        ProtobufMessage(descriptor_set(), "shop.Order")

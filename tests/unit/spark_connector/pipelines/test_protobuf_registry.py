"""The Protobuf schemas of a registry over HTTP, and values of several of its schemas."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.unit.spark_connector.pipelines.test_protobuf_schemas import TYPE, file

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.protobuf_messages import ProtobufMessage
from rota.spark_connector.pipelines.protobuf_registry import protobuf_subject
from rota.spark_connector.pipelines.schema_registry import Registry

LINE = [{"name": "line.proto", "subject": "line", "version": 1}]
SCHEMAS: dict[int, tuple[bytes, list[dict[str, object]]]] = {
    1: (file(id=TYPE.TYPE_INT32), []),
    2: (file("line.proto", before=1, id=TYPE.TYPE_INT64, line=".shop.Line"), LINE),
    3: (file(message="Line", sku=TYPE.TYPE_STRING), []),
    4: (file(id=TYPE.TYPE_STRING), []),  # of another subject
    6: (file("gone.proto"), []),
    7: (b"\xff", []),
    10: (file("line.proto", id=TYPE.TYPE_INT64), [{"name": "line.proto", "subject": "lost", "version": 1}]),
    11: (file(id=".shop.Missing"), []),
}
VERSIONS = {"t-value": {1: 1, 2: 2}, "line": {1: 3}, "gone": {1: 6}, "broken": {1: 7}, "text": {1: 8}, "avro": {1: 9}}
VERSIONS |= {"lost": {1: 12}, "unlinked": {1: 11}}  # the registry does not have 12 by its id


def answers() -> dict[str, object]:
    found: dict[str, object] = {}
    for number, (raw, references) in SCHEMAS.items():
        text = {"schemaType": "PROTOBUF", "references": references, "schema": base64.b64encode(raw).decode()}
        found[f"/schemas/ids/{number}?format=serialized"] = text
    found["/schemas/ids/8?format=serialized"] = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3";'}
    found["/schemas/ids/9?format=serialized"] = {"schema": '"long"'}
    for subject, versions in VERSIONS.items():
        kind = {} if subject == "avro" else {"schemaType": "PROTOBUF"}
        base = f"/subjects/{subject}/versions"
        for each in (base, f"{base}?deleted=true"):
            found[each] = list(versions)
        for version, number in versions.items():
            for each in (f"{base}/{version}", f"{base}/{version}?deleted=true"):
                found[each] = {"id": number, "schema": "syntax", **kind}
    return found


ANSWERS = answers()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path in ANSWERS else 404)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS.get(self.path)).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Registry(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def test_values_of_each_schema_are_decoded_as_the_latest_version(registry: Registry) -> None:
    """Schema 2 has its message at the index 1 and an import; 1 is older; 4 and 5 come with the records."""
    subject = protobuf_subject(registry, "t-value", "shop.Order", (4, 5))
    assert subject.writers == ((1, (0,)), (2, (1,)), (4, "has another type in shop.Order.id"))
    order = ProtobufMessage(subject.descriptors, "shop.Order", subject.writers)
    assert order.schema.simpleString() == "struct<id:bigint,line:struct<sku:string>>"
    for value, record, reason in (
        (b"\0\0\0\0\x02\x02\x02\x08\x05\x12\x03\x0a\x01s", {"id": 5, "line": {"sku": "s"}}, None),
        (b"\0\0\0\0\x01\0\x08\x07", {"id": 7, "line": None}, None),
        (b"\0\0\0\0\x01\x02\x02\x08\x07", None, "value is the message [1] of its schema, not [0]"),
        (b"\0\0\0\0\x02\0\x08\x07", None, "value is the message [0] of its schema, not [1]"),
        (b"\0\0\0\0\x04\0\x08\x07", None, "the schema 4 has another type in shop.Order.id"),
        (b"\0\0\0\0\x05\0\x08\x07", None, "the registry has no Protobuf schema with id 5"),
        (b"\0\xff\xff\xff\xff\0\x08\x07", None, "the registry has no Protobuf schema with id 4294967295"),
        (
            b"\0\0\0\0\x02\x42" + b"\x02" * 40,
            None,
            "value does not begin with the id of a schema and the path of a message",
        ),
    ):
        assert order.decode(value, is_framed=True) == (record, reason)


def test_a_schema_of_another_subject_that_is_not_valid_is_a_reason(registry: Registry) -> None:
    """Whoever writes to the topic chooses its id: it must not stop the job."""
    subject = protobuf_subject(registry, "t-value", "shop.Order", (6, 7, 8, 10, 11))
    reasons = {schema_id: found for schema_id, found in subject.writers if isinstance(found, str)}
    for schema_id, reason in (
        (6, "is not valid: it imports gone.proto"),
        (7, "is not valid: not a FileDescriptorProto"),
        (8, "is not valid: no descriptor"),
        (10, "is not valid: its reference line.proto is not there"),
        (11, "Missing"),
    ):
        assert reason in reasons[schema_id]


@pytest.mark.parametrize(
    ("subject", "message", "reason"),
    [
        ("gone", "shop.Order", "imports gone.proto, which is not among its references"),
        ("broken", "shop.Order", "not a FileDescriptorProto"),
        ("text", "shop.Order", "has to answer GET /schemas/ids/ID.format=serialized"),
        ("lost", "shop.Order", "valid in its schema 12 .it is not there"),
        ("unlinked", "shop.Order", "valid in its schema 11 .*Missing"),
        ("avro", "shop.Order", "PROTOBUF for avro, not AVRO"),
        ("t-value", "shop.Other", "shop.Before0, shop.Order"),
        ("missing", "shop.Order", "HTTP status 404"),
    ],
)
def test_refusals_have_the_reason(registry: Registry, subject: str, message: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        protobuf_subject(registry, subject, message)

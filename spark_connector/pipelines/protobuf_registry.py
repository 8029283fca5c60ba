"""The Protobuf schemas of a registry: the latest version of a subject, and what each other schema is to it.

Laws
    Values are decoded with the latest version. A value of another schema is decoded when its message has the same name
    and loses nothing by that, whatever the subject of its schema; else there is a reason.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.protobuf_messages import Writers
from rota.spark_connector.pipelines.protobuf_schemas import ROOT, file_set, writer
from rota.spark_connector.pipelines.schema_registry import Registry

PROTOBUF: Final = "PROTOBUF"
SERIALIZED: Final = "?format=serialized"  # a FileDescriptorProto in Base64 in place of the text


class ProtobufSubject(NamedTuple):
    """The descriptors of the latest version, and the writers by the ids of their schemas."""

    descriptors: bytes
    writers: Writers


def protobuf_subject(registry: Registry, subject: str, message: str, more: Iterable[int] = ()) -> ProtobufSubject:
    """All versions of `subject`, and the schemas with the ids `more`. Raises OptionError."""
    with registry.checked():
        found = registry.versions(subject, PROTOBUF)
        by_id = {each["id"]: _descriptors(registry, each["id"]) for each in found}
        others = {schema_id: _descriptors(registry, schema_id) for schema_id in more if schema_id not in by_id}
        latest = by_id[found[-1]["id"]]
        assert latest is not None, "its version was found"
        known = {schema_id: each for schema_id, each in {**by_id, **others}.items() if each is not None}
        writers = {schema_id: writer(each, message, latest) for schema_id, each in sorted(known.items())}
        return ProtobufSubject(latest, tuple(writers.items()))


def _descriptors(registry: Registry, schema_id: int) -> bytes | None:
    """The files of a schema; None: there is no Protobuf schema with this id."""
    found = registry.schema(schema_id, PROTOBUF, SERIALIZED)
    if found is None:
        return None
    files = {ROOT: _file(registry, found)}
    for name, referred in registry.references(found).items():
        file = registry.schema(referred["id"], PROTOBUF, SERIALIZED)
        if file is None:
            raise TypeError(f"the reference {name} is not there")
        files[name] = _file(registry, file)
    try:
        return file_set(files)
    except ValueError as error:
        raise OptionError("--schema-registry", registry.url, f"valid in its schema {schema_id} ({error})") from None


def _file(registry: Registry, found: Any) -> bytes:
    try:
        return base64.b64decode(found["schema"], validate=True)
    except (binascii.Error, ValueError):
        expected = f"a registry that has descriptors of its Protobuf schemas (GET /schemas/ids/ID{SERIALIZED})"
        raise OptionError("--schema-registry", registry.url, expected) from None

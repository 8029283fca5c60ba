"""The Protobuf schemas of a registry: the latest version of a subject, and what each other schema is to it.

Laws
    Values are decoded with the latest version. A value of another schema is decoded when its message has the same name
    and loses nothing by that, whatever the subject of its schema; else there is a reason. A schema of the subject
    that is not valid is an error, one of another subject a reason: anybody may have registered it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.protobuf_messages import InvalidSchema, Writers
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
        ids = [each["id"] for each in registry.versions(subject, PROTOBUF)]
        latest = _latest(registry, ids[-1])
        writers: dict[int, tuple[int, ...] | str] = {}
        for schema_id in sorted({*ids, *more}):
            try:
                found = _descriptors(registry, schema_id)
                if found is not None:
                    writers[schema_id] = writer(found, message, latest)
            except InvalidSchema as error:
                if schema_id in ids:
                    raise _invalid(registry, schema_id, str(error)) from None
                writers[schema_id] = f"is not valid: {error}"
        return ProtobufSubject(latest, tuple(writers.items()))


def _latest(registry: Registry, schema_id: int) -> bytes:
    try:
        found = _descriptors(registry, schema_id)
    except InvalidSchema as error:
        raise _invalid(registry, schema_id, str(error)) from None
    if found is None:
        raise _invalid(registry, schema_id, "it is not there")
    return found


def _invalid(registry: Registry, schema_id: int, reason: str) -> OptionError:
    return OptionError("--schema-registry", registry.url, f"valid in its schema {schema_id} ({reason})")


def _descriptors(registry: Registry, schema_id: int) -> bytes | None:
    """The files of a schema; None: there is no Protobuf schema with this id. Raises InvalidSchema, OptionError."""
    found = registry.schema(schema_id, PROTOBUF, SERIALIZED)
    if found is None:
        return None
    files = {ROOT: _file(found)}
    for name, referred in registry.references(found).items():
        file = registry.schema(referred["id"], PROTOBUF, SERIALIZED)
        if file is None:
            raise InvalidSchema(f"its reference {name} is not there")
        files[name] = _file(file)
    return file_set(files)


def _file(found: Any) -> bytes:
    try:
        return base64.b64decode(found["schema"], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSchema(f"no descriptor: the registry has to answer GET /schemas/ids/ID{SERIALIZED}") from None

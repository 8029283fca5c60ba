"""`ingest` with Protobuf values of a registry: versions of a subject, an import, a schema of another subject."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.interop.kit import create_topic
from tests.soak import soak_only
from tests.spark.conftest import written
from tests.spark.test_ingest import run
from tests.unit.spark_connector.pipelines.test_protobuf_registry import LINE, answers
from tests.unit.spark_connector.pipelines.test_protobuf_schemas import TYPE, file

from rota.spark_connector.pipelines.ingest import DAY, DEAD, RECORDS, Job

SUBJECT = "t-value"  # of the answers: here it is that of any topic
NEW = 20  # the id of a version that is registered between two runs
pytestmark = pytest.mark.timeout(600)


@dataclass
class Schemas:
    """A registry. Its answers by path."""

    url: str = ""
    answers: dict[str, object] = field(default_factory=answers)

    def register(self) -> None:
        """A third version, with the new field `count`."""
        raw = file("line.proto", before=1, id=TYPE.TYPE_INT64, line=".shop.Line", count=TYPE.TYPE_INT32)
        text = {"schemaType": "PROTOBUF", "references": LINE, "schema": base64.b64encode(raw).decode()}
        self.answers[f"/schemas/ids/{NEW}?format=serialized"] = text
        base = f"/subjects/{SUBJECT}/versions"
        for end in ("", "?deleted=true"):
            self.answers[f"{base}{end}"] = [1, 2, 3]
            self.answers[f"{base}/3{end}"] = {"id": NEW, "schema": "syntax", "schemaType": "PROTOBUF"}


@pytest.fixture
def registry() -> Iterator[Schemas]:
    schemas = Schemas()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, _, rest = self.path.partition("-value")
            path = f"/subjects/{SUBJECT}{rest}" if rest else self.path
            # without the query a registry answers with the text, and whether there is such a schema
            found = schemas.answers.get(path) or schemas.answers.get(f"{path}?format=serialized")
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        schemas.url = f"http://127.0.0.1:{server.server_port}"
        yield schemas
        server.shutdown()
        thread.join()


def framed(schema_id: int, path: bytes, value: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + path + value


@soak_only
def test_protobuf_values_of_each_schema_of_a_registry(
    spark: SparkSession, rota: str, tmp_path: Path, registry: Schemas
) -> None:
    """Those of an older version and of a new one are rows, also of a version that is registered between two runs; the
    schema of another subject, which the job asks for when it reads it, has the reason."""
    topic, out = create_topic(rota, 1), tmp_path / "out"
    second = framed(2, b"\x02\x02", b"\x08\x05\x12\x03\x0a\x01s")
    first, other, unknown = (framed(schema_id, b"\0", b"\x08\x07") for schema_id in (1, 4, 5))
    written(rota, topic, [second, first, other, unknown, b"\x08\x07", None])
    job = Job(rota, topic, str(out), "protobuf", schema_registry=registry.url, message="shop.Order")
    (line,) = run(spark, job)
    assert "written 2  dead 4" in line
    rows = spark.read.parquet(f"{out}/{RECORDS}").orderBy("id").collect()
    assert [(row.id, row.line and row.line.sku) for row in rows] == [(5, "s"), (7, None)]
    dead = spark.read.parquet(f"{out}/{DEAD}").orderBy("_offset").collect()
    assert [row.reason for row in dead] == [
        "the schema 4 has another type in shop.Order.id",
        "the registry has no Protobuf schema with id 5",
        "value does not begin with the id of a schema",
        "value is null",
    ]

    registry.register()
    written(rota, topic, [framed(NEW, b"\x02\x02", b"\x08\x09\x18\x08"), second])
    (line,) = run(spark, job)
    assert "written 2  dead 0" in line
    table = spark.read.option("mergeSchema", "true").parquet(f"{out}/{RECORDS}").orderBy("_offset")
    assert [(row.id, row["count"]) for row in table.collect()] == [(5, None), (7, None), (9, 8), (5, 0)]
    assert len(list((out / DEAD).glob(f"{DAY}=*/*"))) == 1

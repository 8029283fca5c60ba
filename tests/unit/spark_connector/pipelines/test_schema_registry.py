"""A registry over HTTP: all versions of a subject, credentials, refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.schema_registry import Registry, Subject

MONEY = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "price", "type": "Money"}]}
REFERENCES = [{"name": "Money", "subject": "money", "version": 3}]
ANSWERS: dict[str, object] = {
    "/subjects/a%2Fb-value/versions": [2, 1],
    "/subjects/a%2Fb-value/versions?deleted=true": [1, 2, 3],
    "/subjects/a%2Fb-value/versions/3?deleted=true": {"id": 11, "schema": '"int"'},
    "/subjects/r/versions": [1],
    "/subjects/r/versions?deleted=true": [1],
    "/subjects/r/versions/1": {"id": 12, "schema": json.dumps(ORDER), "references": REFERENCES},
    "/subjects/money/versions/3?deleted=true": {"id": 13, "schema": json.dumps(MONEY)},
    "/schemas/ids/14": {"schema": '"bytes"'},
    "/schemas/ids/15": {"schema": "syntax", "schemaType": "PROTOBUF"},
    "/subjects/p/versions?deleted=true": [1],
    "/subjects/a%2Fb-value/versions/1": {"id": 7, "schema": '"long"'},
    "/subjects/a%2Fb-value/versions/2": {"id": 9, "schema": '"string"', "schemaType": "AVRO"},
    "/subjects/p/versions": [1],
    "/subjects/p/versions/1": {"id": 1, "schema": "syntax", "schemaType": "PROTOBUF"},
    "/subjects/none/versions": [],
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_allowed = self.headers["Authorization"] in (None, "Basic dTpw")  # u:p
        status = 401 if not is_allowed else 200 if self.path in ANSWERS else 404
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS.get(self.path)).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_the_latest_version_and_all_schemas_by_id(url: str) -> None:
    """Version 3 is deleted: it is not the latest, and records have its id."""
    expected = Subject('"string"', {11: '"int"', 7: '"long"', 9: '"string"'})
    assert Registry(url).avro_subject("a/b-value") == expected
    assert Registry(url, "u:p").avro_subject("a/b-value") == expected


def test_schemas_of_other_subjects_are_found_by_their_ids(url: str) -> None:
    assert [Registry(url).avro_schema(schema_id) for schema_id in (14, 15, 16)] == ['"bytes"', None, None]
    found = Registry(url).avro_subject("a/b-value", (7, 14, 15))
    assert (found.by_id[14], 15 in found.by_id) == ('"bytes"', False)


def test_a_schema_has_the_types_that_it_refers_to(url: str) -> None:
    expected = {**ORDER, "fields": [{"name": "price", "type": {"namespace": "", **MONEY}}]}
    assert json.loads(Registry(url).avro_subject("r").latest) == expected


@pytest.mark.parametrize(
    ("subject", "credentials", "reason"),
    [
        ("missing", "", "HTTP status 404"),
        ("none", "", "has the subject none"),
        ("p", "", "not PROTOBUF"),
        ("a/b-value", "u:planted", "HTTP status 401"),
    ],
)
def test_refusals_have_the_reason_and_no_credentials(url: str, subject: str, credentials: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as refused:
        Registry(url, credentials).avro_subject(subject)
    assert "planted" not in str(refused.value)


def test_other_urls_and_silent_registries_are_refused() -> None:
    with pytest.raises(OptionError, match="a URL"):
        Registry("file:///etc")
    with pytest.raises(OptionError, match="answers"):
        Registry("http://127.0.0.1:1").avro_subject("t")

"""A registry over HTTP: all versions of a subject, credentials, refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.schema_registry import Subject, avro_subject

ANSWERS: dict[str, object] = {
    "/subjects/a%2Fb-value/versions": [2, 1],
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
    expected = Subject('"string"', {7: '"long"', 9: '"string"'})
    assert avro_subject(url, "a/b-value") == expected
    assert avro_subject(url, "a/b-value", "u:p") == expected


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
        avro_subject(url, subject, credentials)
    assert "planted" not in str(refused.value)


def test_other_urls_and_silent_registries_are_refused() -> None:
    with pytest.raises(OptionError, match="a URL"):
        avro_subject("file:///etc", "t")
    with pytest.raises(OptionError, match="answers"):
        avro_subject("http://127.0.0.1:1", "t")

"""A registry over HTTP: all versions of a subject, credentials, refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.schema_registry import VERSIONS_MAX, Registry, Subject

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
    "/subjects/text/versions": [1],
    "/subjects/text/versions?deleted=true": [],
    "/subjects/text/versions/1": {"id": "7 or more", "schema": '"long"'},
    "/subjects/zero/versions": [1],
    "/subjects/zero/versions?deleted=true": [],
    "/subjects/zero/versions/1": {"id": 0, "schema": '"long"'},
    "/subjects/many/versions": list(range(1, VERSIONS_MAX + 2)),
    "/subjects/many/versions?deleted=true": [],
}


RAW: dict[str, bytes] = {  # answers of something else, or of a hostile registry
    "/schemas/ids/20": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
    "/schemas/ids/21": b"planted garbage\r\n\r\n",
    "/schemas/ids/22": b"HTTP/1.1 200 OK\r\n\r\n[1]",
    "/schemas/ids/23": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "/schemas/ids/24": b'HTTP/1.1 200 OK\r\n\r\n{"schema": "1", "references": [{}]}',
    "/schemas/ids/25": b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    "/schemas/ids/26": b'HTTP/1.1 200 OK\r\n\r\n{"schema": 7}',
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path in RAW:
            self.wfile.write(RAW[self.path])
            return
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
        ("text", "", "7 or more is no id"),
        ("zero", "", "0 is no id"),
        ("many", "", "at most 1000 versions"),
    ],
)
def test_refusals_have_the_reason_and_no_credentials(url: str, subject: str, credentials: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as refused:
        Registry(url, credentials).avro_subject(subject)
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("schema_id", [int(path.rpartition("/")[2]) for path in RAW])
def test_answers_that_are_no_schema_are_an_error_of_the_option(url: str, schema_id: int) -> None:
    with pytest.raises(OptionError, match="a registry "):
        Registry(url).avro_schema(schema_id)


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("RESPONSE_S", -1.0, "not whole after"), ("RESPONSE_BYTES_MAX", 15, "more than 15 bytes")],
)
def test_an_answer_without_end_is_an_error(
    url: str, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, reason: str
) -> None:
    monkeypatch.setattr(f"rota.spark_connector.pipelines.schema_registry.{limit}", value)
    with pytest.raises(OptionError, match=reason):
        Registry(url).avro_schema(14)


def test_numbers_that_are_no_ids_are_not_asked_for() -> None:
    """Ids are positive and of 32 bits: a registry may answer to another number with any status, here with none."""
    for number in (-1, 0, 1 << 31, (1 << 32) - 1):
        assert Registry("http://127.0.0.1:1").avro_schema(number) is None
    with pytest.raises(OptionError, match="answers"):
        Registry("http://127.0.0.1:1").avro_schema((1 << 31) - 1)


def test_a_redirect_to_another_server_does_not_take_the_credentials_along() -> None:
    seen: list[str | None] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(302 if len(seen) == 1 else 404)
            self.send_header("Location", f"http://localhost:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert Registry(f"http://127.0.0.1:{server.server_port}", "u:p").avro_schema(1) is None
        server.shutdown()
        thread.join()
    assert seen == ["Basic dTpw", None]


def test_a_url_with_credentials_or_a_wrong_port_is_refused_without_them() -> None:
    for url in ("http://user:planted@127.0.0.1:1", "http://planted@127.0.0.1:1", "https://user:planted@[::1"):
        with pytest.raises(OptionError, match=r"--registry-credentials|a URL") as refused:
            Registry(url)
        assert "planted" not in str(refused.value)
    for url in ("http://127.0.0.1:port", "http://127.0.0.1:99999"):
        with pytest.raises(OptionError, match="a URL"):
            Registry(url)


def test_other_urls_and_silent_registries_are_refused() -> None:
    with pytest.raises(OptionError, match="a URL"):
        Registry("file:///etc")
    with pytest.raises(OptionError, match="answers"):
        Registry("http://127.0.0.1:1").avro_subject("t")

"""Schemas from a schema registry over HTTP: the versions of a subject, and schemas by their ids.

Laws
    The latest version is the one that values are converted to; each older one can still be read, also a deleted one.
    A schema with references has the types of these in it.
    Credentials are sent to the registry, not to where it redirects, and are in no message.
    An answer that is no schema is an OptionError, whatever it is.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.avro_references import inlined

TIMEOUT_S: Final = 10.0  # for the next bytes
RESPONSE_S: Final = 60.0
RESPONSE_BYTES_MAX: Final = 8 << 20
ID_MAX: Final = (1 << 31) - 1
VERSIONS_MAX: Final = 1_000
REFERENCES_MAX: Final = 100  # of one schema
AVRO: Final = "AVRO"
DELETED: Final = "?deleted=true"  # softly: the registry keeps it, and records still have its id


class Subject(NamedTuple):
    """The Avro schemas of a subject by id, and the latest one."""

    latest: str
    by_id: dict[int, str]


class Registry:
    """A schema registry. `credentials` is USER:PASSWORD or empty."""

    def __init__(self, url: str, credentials: str = "") -> None:
        if "@" in url:
            raise OptionError("--schema-registry", "[hidden]", "without a user; --registry-credentials has it")
        if not _is_url(url):
            raise OptionError("--schema-registry", url, "a URL, as in https://registry:8081")
        self.url, self._credentials = url.rstrip("/"), credentials

    def avro_subject(self, subject: str, more: Iterable[int] = ()) -> Subject:
        """All versions of `subject`, and the schemas with the ids `more`. Raises OptionError."""
        with self.checked():
            found = self.versions(subject, AVRO)
            by_id = {each["id"]: self._full(each) for each in found}
            others = {schema_id: self.avro_schema(schema_id) for schema_id in more if schema_id not in by_id}
            more_by_id = {each: text for each, text in others.items() if text is not None}
            return Subject(self._full(found[-1]), by_id | more_by_id)

    def versions(self, subject: str, kind: str) -> list[Any]:
        """The answers for the versions of `subject`, the latest one last, the deleted ones first. Raises OptionError,
        also for a schema of another `kind`."""
        base = f"{self.url}/subjects/{quote(subject, safe='')}/versions"
        versions = sorted(self._get(base))
        if not versions:
            raise OptionError("--schema-registry", self.url, f"a registry that has the subject {subject}")
        deleted = sorted(set(self._get(base + DELETED)) - set(versions))
        paths = [*(f"{base}/{version}{DELETED}" for version in deleted), *(f"{base}/{each}" for each in versions)]
        if len(paths) > VERSIONS_MAX:
            raise OptionError(
                "--schema-registry", self.url, f"a registry with at most {VERSIONS_MAX} versions of a subject"
            )
        found = [self._get(path) for path in paths]
        for each in found:
            if type(each["id"]) is not int or not 0 < each["id"] <= ID_MAX:
                raise TypeError(f"{str(each['id'])[:40]} is no id")
            if each.get("schemaType", AVRO) != kind:
                expected = f"a registry with {kind} for {subject}, not {each.get('schemaType', AVRO)}"
                raise OptionError("--schema-registry", self.url, expected)
        return found

    def avro_schema(self, schema_id: int) -> str | None:
        """The Avro schema with this id, of any subject; None: there is none. Raises OptionError."""
        with self.checked():
            found = self.schema(schema_id, AVRO)
            return None if found is None else self._full(found)

    def schema(self, schema_id: int, kind: str, query: str = "") -> Any:
        """The answer for the schema of this id and `kind`, of any subject; None: there is none. Raises OptionError."""
        if not 0 < schema_id <= ID_MAX:
            return None
        with self.checked():
            found = self._find(f"{self.url}/schemas/ids/{schema_id}{query}")
            return None if found is None or found.get("schemaType", AVRO) != kind else found

    @contextlib.contextmanager
    def checked(self) -> Iterator[None]:
        """Raise OptionError for answers of another shape, or nested too deep."""
        try:
            yield
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            detail = f"{type(error).__name__}: {str(error)[:80]}"
            raise OptionError("--schema-registry", self.url, f"a registry with valid schemas ({detail})") from None

    def _full(self, found: Any) -> str:
        """The schema of an answer, with the types that it refers to."""
        definitions = {name: each["schema"] for name, each in self.references(found).items()}
        if not isinstance(found["schema"], str):
            raise TypeError("a schema that is no text")
        try:
            return inlined(found["schema"], definitions)
        except ValueError as error:
            raise OptionError("--schema-registry", self.url, f"a registry with valid schemas ({error})") from None

    def references(self, found: Any) -> dict[str, Any]:
        """The answers for what an answer refers to, and for what these refer to, by name. Raises OptionError."""
        definitions: dict[str, Any] = {}
        references = list(found.get("references") or ())
        while references:
            each = references.pop()
            if each["name"] in definitions:
                continue
            if len(definitions) == REFERENCES_MAX:
                raise OptionError("--schema-registry", self.url, f"schemas with at most {REFERENCES_MAX} references")
            path = f"{self.url}/subjects/{quote(each['subject'], safe='')}/versions/{each['version']}{DELETED}"
            referred = self._get(path)
            definitions[each["name"]] = referred
            references += referred.get("references") or ()
        return definitions

    def _get(self, url: str) -> Any:
        found = self._find(url)
        if found is None:
            raise OptionError("--schema-registry", url, f"a registry that answers: HTTP status {HTTPStatus.NOT_FOUND}")
        return found

    def _find(self, url: str) -> Any:
        """None: it is not there."""
        request = urllib.request.Request(url, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
        if self._credentials:
            basic = "Basic " + base64.b64encode(self._credentials.encode()).decode()
            request.add_unredirected_header("Authorization", basic)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return json.loads(_body(response))
        except urllib.error.HTTPError as error:
            with error:
                if error.code == HTTPStatus.NOT_FOUND:
                    return None
                expected = f"a registry that answers: HTTP status {error.code}"
                raise OptionError("--schema-registry", url, expected) from None
        except (OSError, ValueError, HTTPException) as error:
            raise OptionError("--schema-registry", url, f"a registry that answers ({error})") from None


def _body(response: HTTPResponse) -> bytes:
    """Raises OSError for an answer that is too large or takes too long."""
    end_s, found = time.monotonic() + RESPONSE_S, bytearray()
    while part := response.read1(1 << 16):
        found += part
        if len(found) > RESPONSE_BYTES_MAX:
            raise OSError(f"the answer has more than {RESPONSE_BYTES_MAX} bytes")
        if time.monotonic() > end_s:
            raise OSError(f"the answer is not whole after {RESPONSE_S:.0f} s")
    return bytes(found)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False

"""Schemas from a schema registry over HTTP: the versions of a subject.

Laws
    The latest version is the one that values are converted to; each older one can still be read.
    Credentials are sent to the registry and are in no message.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from rota.spark_connector.errors import OptionError

TIMEOUT_S: Final = 10.0
RESPONSE_BYTES_MAX: Final = 8 << 20
AVRO: Final = "AVRO"


class Subject(NamedTuple):
    """The Avro schemas of a subject by id, and the latest one."""

    latest: str
    by_id: dict[int, str]


def avro_subject(url: str, subject: str, credentials: str = "") -> Subject:
    """All versions of `subject`; `credentials` is USER:PASSWORD or empty. Raises OptionError."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise OptionError("--schema-registry", url, "a URL, as in https://registry:8081")
    base = f"{url.rstrip('/')}/subjects/{quote(subject, safe='')}/versions"
    found = [_get(f"{base}/{version}", credentials) for version in sorted(_get(base, credentials))]
    for each in found:
        if each.get("schemaType", AVRO) != AVRO:
            raise OptionError("--schema-registry", url, f"a registry with Avro for {subject}, not {each['schemaType']}")
    if not found:
        raise OptionError("--schema-registry", url, f"a registry that has the subject {subject}")
    return Subject(found[-1]["schema"], {each["id"]: each["schema"] for each in found})


def _get(url: str, credentials: str) -> Any:
    request = urllib.request.Request(url, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
    if credentials:
        request.add_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return json.loads(response.read(RESPONSE_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            raise OptionError("--schema-registry", url, f"a registry that answers: HTTP status {error.code}") from None
    except (OSError, ValueError) as error:
        raise OptionError("--schema-registry", url, f"a registry that answers ({error})") from None

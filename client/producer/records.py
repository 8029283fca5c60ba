"""Checks and converts the arguments of a record: bytes, and a tuple of headers. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rota.client.checks import items_of
from rota.client.errors import IllegalUse
from rota.client.types import Headers


def plain_bytes(what: str, given: Any) -> bytes | None:
    """Bytes, bytearray, memoryview (copied), None. Raises IllegalUse."""
    if given is None or type(given) is bytes:
        return given
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    remedy = f"give {what}.encode()" if isinstance(given, str) else "make bytes of it first (json.dumps(…).encode())"
    raise IllegalUse(f"a record's {what} is bytes or None, not {type(given).__name__}: {remedy}")


def plain_headers(given: Iterable[tuple[str, bytes | None]]) -> Headers:
    """Return the headers, pairs of a name and bytes or None, in order; names may repeat. Raises IllegalUse."""
    pairs = given.items() if isinstance(given, dict) else items_of("headers", given, "pairs of a name and bytes")
    try:
        made = tuple((name, plain_bytes(f"header {name!r}", content)) for name, content in pairs)
    except (TypeError, ValueError) as wrong:
        raise IllegalUse(f"headers are pairs of a name and bytes, as in [('trace', b'1')], not {given!r}") from wrong
    for name, _ in made:
        if not isinstance(name, str):
            raise IllegalUse(f"a header's name is a str, not {type(name).__name__}: {name!r}")
        if not name.isascii():
            _check_text(name)
    return made


def _check_text(name: str) -> None:
    try:
        name.encode("utf-8", "surrogateescape")  # as a Consumer returns names that are not UTF-8
    except UnicodeEncodeError as wrong:
        raise IllegalUse(f"a header's name is no Unicode text: {name!r} has half of a surrogate pair") from wrong

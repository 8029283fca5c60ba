"""JAAS texts of sasl.jaas.config: `org…PlainLoginModule required username="u" password="p";`. Pure.

Laws
    No error text contains a value of the text: values are secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from rota.protocol.dataclass import dataclass

JAAS_CHARS_MAX: Final = 1024 * 1024  # a token may be in it
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<mark>[=;])|(?P<word>[^\s=;"']+)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)  # octal digits, as Java reads them
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class InvalidJaas(ValueError):
    """The text is no JAAS configuration of one login module."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """`name` is the class name without its package: PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Return the login module of the text. Raises InvalidJaas."""
    if len(text) > JAAS_CHARS_MAX:
        raise InvalidJaas(f"it has more than {JAAS_CHARS_MAX} characters")
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[1][0].lower() not in _FLAGS:
        raise InvalidJaas("expected MODULE required NAME=VALUE …;")
    if tokens[-1] != (";", True):
        raise InvalidJaas("expected a semicolon at its end")
    return LoginModule(tokens[0][0].rpartition(".")[2], _options(tokens[2:-1]))


def _options(tokens: list[tuple[str, bool]]) -> dict[str, str]:
    if any(token == (";", True) for token in tokens):
        raise InvalidJaas("expected one login module, found a second one")
    if len(tokens) % 3:
        raise InvalidJaas("expected options of the form NAME=VALUE")
    options = {}
    for at in range(0, len(tokens), 3):
        (name, is_mark), equals, (value, is_empty) = tokens[at : at + 3]
        if is_mark or equals != ("=", True) or is_empty:
            raise InvalidJaas("expected options of the form NAME=VALUE")
        options[name] = value
    return options


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Return the words and marks of the text, each with whether it is a mark (`=` or `;`)."""
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidJaas("it has a quotation mark without its counterpart")
        at = match.end()
        if match["mark"]:
            tokens.append((match["mark"], True))
        elif match["word"]:
            tokens.append((match["word"], False))
        elif match.lastgroup in ("double", "single"):
            tokens.append((_ESCAPE.sub(_unescaped, match[match.lastgroup]), False))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if "0" <= escaped[0] <= "7" else _ESCAPED.get(escaped, escaped)

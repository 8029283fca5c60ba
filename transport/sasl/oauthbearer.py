"""SASL OAUTHBEARER (RFC 7628, KIP-255) of a client: a token as it is, which only TLS protects. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from rota.transport.sasl.conversation import InvalidChallenge

_DUMMY: Final = b"\x01"  # the answer to a refusal: the broker then ends the conversation with its error
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x20-\x7e\t\r\n]*")
CHALLENGE_CHARS_MAX: Final = 500  # of a refusal, in an error message


def check_token(token: str, extensions: Mapping[str, str]) -> None:
    """Raises ValueError for a token or an extension that cannot be sent. The text does not contain the token."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("the token is empty or has characters that are not printable ASCII")
    check_extensions(extensions)


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raises ValueError for an extension that cannot be sent."""
    for name, value in extensions.items():
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth" or not _EXTENSION_VALUE.fullmatch(value):
            raise ValueError(f"the SASL extension {name!r} cannot be sent: a name has letters, a value printable ASCII")


class OauthbearerConversation:
    """`refusal` is what the broker said against the token."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        check_token(token, extensions)
        pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        self._message = f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()
        self.refusal = ""

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self.refusal:
            raise InvalidChallenge(self.refusal)
        self.refusal = _described(challenge)
        return _DUMMY


def _described(challenge: bytes) -> str:
    text = challenge.decode("utf-8", "backslashreplace")
    try:
        status = json.loads(text)
    except (ValueError, RecursionError):
        return text[:CHALLENGE_CHARS_MAX]
    described = ", ".join(f"{name}: {value}" for name, value in status.items()) if isinstance(status, dict) else text
    return described[:CHALLENGE_CHARS_MAX]

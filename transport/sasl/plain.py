"""SASL PLAIN (RFC 4616): user name and password as they are, which only TLS protects. Pure."""

from __future__ import annotations

from rota.transport.sasl.conversation import InvalidChallenge


class PlainConversation:
    """`username` and `password` are sent in the first message."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> None:
        if challenge:
            raise InvalidChallenge(f"a challenge of {len(challenge)} bytes, where PLAIN has none")

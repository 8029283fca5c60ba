"""What all mechanisms share: a conversation of one authentication. Pure."""

from __future__ import annotations

from typing import Protocol


class Conversation(Protocol):
    """One authentication with one mechanism. The client speaks first."""

    def first(self) -> bytes:
        """The first message to the broker."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """The next message to the broker, None when the conversation is over. Raises InvalidChallenge."""
        ...


class InvalidChallenge(Exception):
    """The broker's message is not valid, or proves that the broker does not know the credentials. The text contains no
    secret."""

"""Who a connection belongs to: Kafka's KafkaPrincipal. Pure."""

from __future__ import annotations

from typing import Final

from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """A type, which is `User` for all that authenticate, and a name. `User:CN=Bob,O=X` has the name `CN=Bob,O=X`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Return the principal in `TYPE:NAME`. Raises ValueError."""
        kind, separator, name = text.partition(":")
        if not kind or not separator or not name:
            raise ValueError(f"{text!r} is no principal: expected TYPE:NAME, for instance User:alice")
        return cls(kind, name)


USER: Final = "User"  # the type of every client's principal
ANONYMOUS: Final = Principal(USER, "ANONYMOUS")  # a client that did not authenticate

"""What a SASL mechanism of the broker is: an exchange of tokens that ends with a user name or a failure. Pure."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from rota.protocol.dataclass import dataclass


class AuthenticationFailed(Exception):
    """The client is refused. The client gets the text, which must not have the reason or a secret.

    `reason` is for the broker's log.
    """

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason

    @classmethod
    def of_mechanism(cls, mechanism: str) -> AuthenticationFailed:
        """Return the failure with Kafka's text for all that a mechanism refuses."""
        return cls(
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
        )


ANOTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"


@dataclass(frozen=True, slots=True)
class Step:
    """The token for the client. `user` is the name that it authenticated as; empty: another token is expected.

    `lifetime_ms` is the time until what it has shown ends; None: it does not.
    """

    token: bytes = field(default=b"", repr=False)
    user: str = ""
    lifetime_ms: int | None = None


class Exchange(Protocol):
    """One exchange with one client."""

    def step(self, token: bytes) -> Step:
        """Read a token of the client. Raises AuthenticationFailed; the exchange is over then."""

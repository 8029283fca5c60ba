"""How the connections to brokers are secured: the context of TLS, and the SASL mechanism with its credentials."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Security:
    """`tls` None: no TLS."""

    tls: ssl.SSLContext | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name of it."""
        return "PLAINTEXT" if self.tls is None else "SSL"


PLAINTEXT: Final = Security()

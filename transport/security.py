"""How the connections to brokers are secured: the context of TLS, and the SASL mechanism with its credentials."""

from __future__ import annotations

import ssl
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.transport.sasl.login import Login


@dataclass(frozen=True, slots=True)
class Security:
    """`tls` None: no TLS; `login` None: no SASL."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


PLAINTEXT: Final = Security()

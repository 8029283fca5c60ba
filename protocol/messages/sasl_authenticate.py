"""SaslAuthenticate, key 36, versions 0-2.

v1 lifetime of the session (KIP-368) · v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Blob, Int16, Int64, String, wire, wired


@wired
class SaslAuthenticateRequest:
    """A SASL token of the client."""

    KEY, VERSIONS, FLEXIBLE = 36, range(3), 2

    auth_bytes: bytes = wire(Blob)

    def __repr__(self) -> str:
        return f"SaslAuthenticateRequest(auth_bytes={len(self.auth_bytes)} bytes)"


@wired
class SaslAuthenticateResponse:
    """A SASL token of the broker. `session_lifetime_ms` 0: the session does not end."""

    KEY, VERSIONS, FLEXIBLE = 36, range(3), 2

    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    auth_bytes: bytes = wire(Blob, default=b"")
    session_lifetime_ms: int = wire(Int64, since=1, default=0)

    def __repr__(self) -> str:
        return f"SaslAuthenticateResponse(error_code={self.error_code}, auth_bytes={len(self.auth_bytes)} bytes)"

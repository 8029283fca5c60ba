"""SaslHandshake, key 17, versions 0-1.

v0 bare SASL tokens follow · v1 SaslAuthenticate requests follow (KIP-152)
"""

from __future__ import annotations

from rota.protocol.wire import NEVER, Array, Int16, String, wire, wired


@wired
class SaslHandshakeRequest:
    """Choose a SASL mechanism."""

    KEY, VERSIONS, FLEXIBLE = 17, range(2), NEVER

    mechanism: str = wire(String)


@wired
class SaslHandshakeResponse:
    """The mechanisms that the listener has."""

    KEY, VERSIONS, FLEXIBLE = 17, range(2), NEVER

    error_code: int = wire(Int16, default=0)
    mechanisms: tuple[str, ...] = wire(Array(String), default=())

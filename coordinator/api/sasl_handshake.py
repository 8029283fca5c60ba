"""SaslHandshake, key 17, versions 0-1.

v1 tokens follow in SaslAuthenticate requests (KIP-152)

On a listener without SASL, and after authentication where no re-authentication is configured, or within a second
after the last one, the answer is ILLEGAL_SASL_STATE, and the connection lives on.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(node: Node, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Choose the mechanism of the connection; return those that are enabled."""
    if call.sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    code = call.sasl.handshake(request.mechanism, call.version, node.now_ms())
    return SaslHandshakeResponse(
        error_code=code, mechanisms=() if code == ErrorCode.ILLEGAL_SASL_STATE else call.sasl.mechanisms
    )

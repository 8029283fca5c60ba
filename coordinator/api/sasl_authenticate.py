"""SaslAuthenticate, key 36, versions 0-2.

v1 lifetime of the session (KIP-368) · v2 flexible

A refusal is answered after connection.failed.authentication.delay.ms; then the connection closes.
"""

from __future__ import annotations

from functools import partial

from rota.coordinator.api.node import Call, Node
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.sasl.session import ILLEGAL
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def sasl_authenticate(
    node: Node, call: Call, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | DelayedReply[SaslAuthenticateResponse]:
    """Pass a token of the client to its mechanism; return the broker's token, or why the client is refused."""
    if call.sasl is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=ILLEGAL)
    outcome = call.sasl.authenticate(request.auth_bytes, node.now_ms())
    response = SaslAuthenticateResponse(
        error_code=outcome.code,
        error_message=outcome.message,
        auth_bytes=outcome.token,
        session_lifetime_ms=outcome.lifetime_ms,
    )
    if outcome.code != ErrorCode.SASL_AUTHENTICATION_FAILED:
        return response
    delayed: DelayedReply[SaslAuthenticateResponse] = DelayedReply()
    delay_ms = node.config.connection_failed_authentication_delay_ms
    node.timers.at(("sasl", call.connection_id), node.now_ms() + delay_ms, partial(delayed.answer, response))
    return delayed

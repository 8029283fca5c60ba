"""SASL SCRAM (RFC 5802, 7677) of a client. The arithmetic and the syntax are in protocol/scram.py. Pure.

Laws
    The password never leaves the client; the broker proves that it knows the user's key, or the conversation fails.
    The broker's nonce begins with the client's; its salt and its iterations are bounded.
"""

from __future__ import annotations

import hmac

from rota.protocol import scram
from rota.transport.sasl.conversation import InvalidChallenge


class ScramConversation:
    """`mechanism` is scram.SHA_256 or scram.SHA_512. `nonce` is random and used once."""

    def __init__(
        self,
        mechanism: scram.Mechanism,
        username: str,
        password: str,
        nonce: str,
        extensions: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._client_first = scram.ClientFirst(username, nonce, extensions=extensions)
        self._expected_signature: bytes | None = None

    def first(self) -> bytes:
        return self._client_first.encode()

    def respond(self, challenge: bytes) -> bytes | None:
        try:
            if self._expected_signature is None:
                return self._final(scram.ServerFirst.parse(challenge), challenge.decode())
            self._verify(scram.ServerFinal.parse(challenge), self._expected_signature)
        except scram.ScramError as why:
            raise InvalidChallenge(str(why)) from why
        return None

    def _final(self, server_first: scram.ServerFirst, text: str) -> bytes:
        """The client-final message: the proof that the client knows the password."""
        own = self._client_first.nonce
        if not server_first.nonce.startswith(own) or server_first.nonce == own:
            raise InvalidChallenge("its nonce does not begin with the client's, or adds nothing to it")
        if not scram.ITERATIONS_MIN <= server_first.iterations <= scram.PEER_ITERATIONS_MAX:
            bounds = f"{scram.ITERATIONS_MIN} to {scram.PEER_ITERATIONS_MAX}"
            raise InvalidChallenge(f"it asks for {server_first.iterations} iterations; {bounds} are accepted")
        salted = scram.salted_password(self._mechanism, self._password, server_first.salt, server_first.iterations)
        final = scram.ClientFinal(self._client_first.gs2_header.encode(), server_first.nonce, b"")
        message = scram.auth_message(self._client_first.bare, text, final.without_proof)
        server_key = scram.server_key(self._mechanism, salted)
        self._expected_signature = scram.server_signature(self._mechanism, server_key, message)
        proof = scram.client_proof(self._mechanism, salted, message)
        return scram.ClientFinal(final.channel_binding, final.nonce, proof).encode()

    def _verify(self, server_final: scram.ServerFinal, expected: bytes) -> None:
        if server_final.error:
            raise InvalidChallenge(f"it refuses the client: {server_final.error}")
        if not hmac.compare_digest(server_final.signature, expected):
            raise InvalidChallenge(
                "its signature is wrong: it does not know the password of the user, so it is not the broker that it "
                "claims to be"
            )

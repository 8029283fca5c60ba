"""SCRAM-SHA-256 and SCRAM-SHA-512, the server's side of RFC 5802. Pure.

Law
    SA3 An unknown user gets a salt, too: always the same for its name, so that only the proof is refused.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from rota.coordinator.security.sasl.exchange import ANOTHER_AUTHORIZATION_ID, AuthenticationFailed, Step
from rota.protocol import scram
from rota.protocol.scram import (
    ITERATIONS_MIN,
    ClientFinal,
    ClientFirst,
    Mechanism,
    ScramError,
    ServerFinal,
    ServerFirst,
)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What is stored for a user and a mechanism. It proves a password without being one."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


Lookup = Callable[[str, Mechanism], ScramCredential | None]


class ScramExchange:
    """`find(user, mechanism)` returns the credential; `secret` is what made-up salts are derived from."""

    def __init__(self, mechanism: Mechanism, find: Lookup, new_nonce: Callable[[], str], secret: bytes) -> None:
        self._mechanism, self._find, self._new_nonce, self._secret = mechanism, find, new_nonce, secret
        self._first: ClientFirst | None = None
        self._credential: ScramCredential | None = None
        self._challenge = ServerFirst("", b"", 0)

    def step(self, token: bytes) -> Step:
        try:
            return self._challenge_for(token) if self._first is None else self._check(self._first, token)
        except ScramError:
            raise AuthenticationFailed.of_mechanism(self._mechanism.name) from None

    def _challenge_for(self, token: bytes) -> Step:
        self._first = first = ClientFirst.parse(token)
        if first.authorization_id not in ("", first.username):
            raise AuthenticationFailed(ANOTHER_AUTHORIZATION_ID)
        is_token = ("tokenauth", "true") in first.extensions  # a delegation token, of which there are none
        self._credential = found = None if is_token else self._find(first.username, self._mechanism)
        salt, iterations = (found.salt, found.iterations) if found else (self._made_up_salt(), ITERATIONS_MIN)
        self._challenge = ServerFirst(first.nonce + self._new_nonce(), salt, iterations)
        return Step(self._challenge.encode())

    def _made_up_salt(self) -> bytes:
        """SA3."""
        name = f"{self._mechanism.name} {self._first.username if self._first else ''}"
        return hmac.digest(self._secret, name.encode(), "sha256")[: scram.SALT_BYTES]

    def _check(self, first: ClientFirst, token: bytes) -> Step:
        final = ClientFinal.parse(token)
        message = scram.auth_message(first.bare, self._challenge.encode().decode(), final.without_proof)
        is_bound = final.nonce == self._challenge.nonce and final.channel_binding == first.gs2_header.encode()
        found = self._credential
        stored_key = found.stored_key if found else bytes(self._mechanism.key_bytes)
        is_proof = scram.is_proof_of(self._mechanism, stored_key, message, final.proof)
        if found is None or not is_proof or not is_bound:
            raise AuthenticationFailed.of_mechanism(self._mechanism.name)
        signature = scram.server_signature(self._mechanism, found.server_key, message)
        return Step(ServerFinal(signature).encode(), first.username)

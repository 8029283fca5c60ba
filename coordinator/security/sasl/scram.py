"""SCRAM-SHA-256 and SCRAM-SHA-512, the server's side of RFC 5802. Pure.

Law
    SA3 An unknown user has a made-up credential, always the same for its name, so that only the proof is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from rota.coordinator.security.sasl.exchange import ANOTHER_AUTHORIZATION_ID, AuthenticationFailed, Step
from rota.protocol import scram
from rota.protocol.dataclass import dataclass
from rota.protocol.scram import (
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
    is_made_up: bool = field(default=False, repr=False)  # of an unknown user: no proof is right


Lookup = Callable[[str, Mechanism], ScramCredential]
UNKNOWN_SALT = bytes(scram.SALT_BYTES)


def no_users(user: str, mechanism: Mechanism) -> ScramCredential:
    """Return a made-up credential for each user, where there are none."""
    keys = bytes(mechanism.key_bytes)
    return ScramCredential(UNKNOWN_SALT, keys, keys, scram.ITERATIONS_MIN, is_made_up=True)


class ScramExchange:
    """`find(user, mechanism)` returns the credential, a made-up one for an unknown user."""

    def __init__(self, mechanism: Mechanism, find: Lookup, new_nonce: Callable[[], str]) -> None:
        self._mechanism, self._find, self._new_nonce = mechanism, find, new_nonce
        self._first: ClientFirst | None = None
        self._is_token = False  # a delegation token, of which there are none
        self._challenge = ServerFirst("", b"", 0)
        self._credential = no_users("", mechanism)

    def step(self, token: bytes) -> Step:
        try:
            return self._challenge_for(token) if self._first is None else self._check(self._first, token)
        except ScramError:
            raise AuthenticationFailed.of_mechanism(self._mechanism.name) from None

    def _challenge_for(self, token: bytes) -> Step:
        self._first = first = ClientFirst.parse(token)
        if first.authorization_id not in ("", first.username):
            raise AuthenticationFailed(ANOTHER_AUTHORIZATION_ID)
        self._is_token = ("tokenauth", "true") in first.extensions
        self._credential = found = self._find(first.username, self._mechanism)
        self._challenge = ServerFirst(first.nonce + self._new_nonce(), found.salt, found.iterations)
        return Step(self._challenge.encode())

    def _check(self, first: ClientFirst, token: bytes) -> Step:
        final = ClientFinal.parse(token)
        message = scram.auth_message(first.bare, self._challenge.encode().decode(), final.without_proof)
        is_bound = final.nonce == self._challenge.nonce and final.channel_binding == first.gs2_header.encode()
        found = self._credential
        is_proof = scram.is_proof_of(self._mechanism, found.stored_key, message, final.proof)
        if found.is_made_up or self._is_token or not is_proof or not is_bound:
            raise AuthenticationFailed.of_mechanism(self._mechanism.name)
        signature = scram.server_signature(self._mechanism, found.server_key, message)
        return Step(ServerFinal(signature).encode(), first.username)

"""The server's side of SCRAM, and SA3: nothing tells an unknown user from a wrong password."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.security.sasl.exchange import AuthenticationFailed
from rota.coordinator.security.sasl.scram import ScramCredential, ScramExchange, no_users
from rota.coordinator.security.scram_credentials import new_credential
from rota.protocol import scram
from rota.protocol.scram import ClientFinal, ClientFirst, Mechanism, ServerFinal, ServerFirst

USER, PASSWORD = "a,b=c", "planted-password"
CREDENTIALS = {each.name: new_credential(each, PASSWORD) for each in scram.MECHANISMS.values()}


def find(user: str, mechanism: Mechanism) -> ScramCredential:
    return CREDENTIALS[mechanism.name] if user == USER else no_users(user, mechanism)


def exchange_of(mechanism: Mechanism = scram.SHA_256) -> ScramExchange:
    return ScramExchange(mechanism, find, lambda: "server")


def final_for(
    mechanism: Mechanism, first: ClientFirst, challenge: bytes, password: str = PASSWORD, **changed: object
) -> ClientFinal:
    """The client-final message with a right proof for `password`; `changed` are other fields of it."""
    parsed = ServerFirst.parse(challenge)
    fields = {"channel_binding": first.gs2_header.encode(), "nonce": parsed.nonce, **changed}
    message = scram.auth_message(first.bare, challenge.decode(), ClientFinal(**fields, proof=b"").without_proof)  # type: ignore[arg-type]
    salted = scram.salted_password(mechanism, password, parsed.salt, parsed.iterations)
    return ClientFinal(**fields, proof=scram.client_proof(mechanism, salted, message))  # type: ignore[arg-type]


@pytest.mark.parametrize("authorization_id", ["", USER])
@pytest.mark.parametrize("mechanism", scram.MECHANISMS.values(), ids=lambda each: each.name)
def test_the_right_password(mechanism: Mechanism, authorization_id: str) -> None:
    exchange, first = exchange_of(mechanism), ClientFirst(USER, "client", authorization_id)
    challenge = exchange.step(first.encode())
    assert challenge.user == ""
    final = final_for(mechanism, first, challenge.token)
    end = exchange.step(final.encode())
    assert end.user == USER
    message = scram.auth_message(first.bare, challenge.token.decode(), final.without_proof)
    signature = scram.server_signature(mechanism, CREDENTIALS[mechanism.name].server_key, message)
    assert ServerFinal.parse(end.token).signature == signature


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD)])
def test_a_refusal_does_not_tell_why(user: str, password: str) -> None:
    exchange, first = exchange_of(), ClientFirst(user, "client")
    challenge = exchange.step(first.encode())
    with pytest.raises(AuthenticationFailed, match="invalid credentials with SASL mechanism SCRAM-SHA-256"):
        exchange.step(final_for(scram.SHA_256, first, challenge.token, password).encode())


def test_an_unknown_user_does_not_get_in_with_any_proof() -> None:
    exchange, first = exchange_of(), ClientFirst("nobody", "client")
    nonce = ServerFirst.parse(exchange.step(first.encode()).token).nonce
    with pytest.raises(AuthenticationFailed):
        exchange.step(ClientFinal(b"n,,", nonce, bytes(32)).encode())


@pytest.mark.parametrize("changed", [{"nonce": "client"}, {"channel_binding": b"y,,"}])
def test_a_proof_for_another_exchange_is_refused(changed: dict[str, object]) -> None:
    exchange, first = exchange_of(), ClientFirst(USER, "client")
    challenge = exchange.step(first.encode()).token
    with pytest.raises(AuthenticationFailed):
        exchange.step(final_for(scram.SHA_256, first, challenge, **changed).encode())


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="authorization id that is different"):
        exchange_of().step(ClientFirst(USER, "client", "bob").encode())


def test_a_delegation_token_is_an_unknown_user() -> None:
    exchange, first = exchange_of(), ClientFirst(USER, "client", "", (("tokenauth", "true"),))
    challenge = exchange.step(first.encode())
    with pytest.raises(AuthenticationFailed):
        exchange.step(final_for(scram.SHA_256, first, challenge.token).encode())


@given(st.lists(st.binary(max_size=30) | st.just(b"n,,n=u,r=c"), min_size=1, max_size=3))
def test_garbage_is_a_refusal(tokens: list[bytes]) -> None:
    exchange = exchange_of()
    with suppress(AuthenticationFailed):
        for token in tokens:
            assert exchange.step(token).user == ""


def test_no_repr_has_a_key() -> None:
    assert repr(CREDENTIALS["SCRAM-SHA-256"]) == "ScramCredential(iterations=4096)"

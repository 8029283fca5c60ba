"""The arithmetic and the messages of SCRAM against the examples of RFC 7677, and garbage."""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.protocol import scram

MECHANISM = scram.SHA_256
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

first = scram.ClientFirst.parse(CLIENT_FIRST)
challenge = scram.ServerFirst.parse(SERVER_FIRST)
final = scram.ClientFinal.parse(CLIENT_FINAL)
signed = scram.auth_message(first.bare, SERVER_FIRST.decode(), final.without_proof)
salted = scram.salted_password(MECHANISM, "pencil", challenge.salt, challenge.iterations)
stored = scram.stored_key(MECHANISM, scram.client_key(MECHANISM, salted))


def test_the_messages_of_rfc_7677_are_read_and_written_as_they_stand() -> None:
    assert (first.username, first.encode()) == ("user", CLIENT_FIRST)
    assert (challenge.iterations, challenge.encode()) == (4096, SERVER_FIRST)
    assert (final.channel_binding, final.encode()) == (b"n,,", CLIENT_FINAL)
    assert scram.ServerFinal.parse(SERVER_FINAL).encode() == SERVER_FINAL


def test_proof_and_signature_are_those_of_rfc_7677() -> None:
    assert scram.client_proof(MECHANISM, salted, signed) == final.proof
    assert scram.is_proof_of(MECHANISM, stored, signed, final.proof)
    signature = scram.server_signature(MECHANISM, scram.server_key(MECHANISM, salted), signed)
    assert scram.ServerFinal.parse(SERVER_FINAL).signature == signature


@pytest.mark.parametrize("mechanism", scram.MECHANISMS.values(), ids=lambda mechanism: mechanism.name)
def test_the_proof_of_another_password_or_of_another_length_is_refused(mechanism: scram.Mechanism) -> None:
    right, wrong = (scram.salted_password(mechanism, password, b"salt", 4096) for password in ("pencil", "Pencil"))
    key = scram.stored_key(mechanism, scram.client_key(mechanism, right))
    assert scram.is_proof_of(mechanism, key, b"message", scram.client_proof(mechanism, right, b"message"))
    assert not scram.is_proof_of(mechanism, key, b"message", scram.client_proof(mechanism, wrong, b"message"))
    assert not scram.is_proof_of(mechanism, key, b"message", b"")


@given(st.text(min_size=1).filter(lambda name: "\0" not in name), st.text(max_size=5).filter(lambda i: "\0" not in i))
def test_every_user_name_survives_encode_and_parse(name: str, authorization_id: str) -> None:
    message = scram.ClientFirst(name, "abc", authorization_id, (("tokenauth", "true"),))
    assert scram.ClientFirst.parse(message.encode()) == message


PARSERS = (scram.ClientFirst, scram.ServerFirst, scram.ClientFinal, scram.ServerFinal)
PIECES = [b"n", b",", b"=", b"r=", b"s=", b"i=", b"c=", b"p=", b"v=", b"e=", b"a=", b"=2C", b"biws", b"1", b"\0"]


@pytest.mark.parametrize("message", PARSERS)
@given(data=st.binary(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join))
def test_garbage_is_a_scram_error(message: type[scram.ClientFirst], data: bytes) -> None:
    with suppress(scram.ScramError):
        message.parse(data)


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (scram.ClientFirst, b"y,,n=user,r=abc"),
        (scram.ClientFirst, b"p=tls-unique,,n=user,r=abc"),
        (scram.ClientFirst, b"n,,m=x,n=user,r=abc"),
        (scram.ClientFirst, b"n,,n=us=er,r=abc"),
        (scram.ClientFirst, b"n,x=1,n=user,r=abc"),
        (scram.ClientFirst, b"n,,n=user,r="),
        (scram.ServerFirst, b"r=abc,s=W22,i=4096"),
        (scram.ServerFirst, b"r=abc,s=,i=-1"),
        (scram.ServerFirst, b"r=abc,s=,i=" + b"9" * 10),
        (scram.ServerFirst, b"r=abc,i=4096,s="),
        (scram.ServerFirst, b"r=abc,s=" + base64.b64encode(b"x" * 1025) + b",i=4096"),
        (scram.ClientFinal, b"c=biws,p=,r=abc"),
        (scram.ServerFinal, b"x=1"),
        (scram.ClientFirst, b"n,,n=" + b"u" * scram.MESSAGE_BYTES_MAX + b",r=abc"),
    ],
)
def test_invalid_messages_are_refused(message: type[scram.ClientFirst], data: bytes) -> None:
    with pytest.raises(scram.ScramError):
        message.parse(data)


def test_no_repr_has_a_proof_or_a_signature() -> None:
    assert "proof" not in repr(final)
    assert "signature" not in repr(scram.ServerFinal.parse(SERVER_FINAL))

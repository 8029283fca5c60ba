import base64

import pytest

from rota.protocol import scram
from rota.transport.sasl.conversation import InvalidChallenge
from rota.transport.sasl.scram import ScramConversation

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def conversation(mechanism: scram.Mechanism = scram.SHA_256) -> ScramConversation:
    return ScramConversation(mechanism, "user", "pencil", NONCE)


def test_the_conversation_of_rfc_7677() -> None:
    client = conversation()
    assert client.first() == f"n,,n=user,r={NONCE}".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert client.respond(SERVER_FIRST) == f"c=biws,r={SERVER_NONCE},p={proof}".encode()
    assert client.respond(SIGNATURE) is None


@pytest.mark.parametrize("mechanism", [scram.SHA_256, scram.SHA_512])
def test_a_server_with_the_stored_keys_accepts_the_proof(mechanism: scram.Mechanism) -> None:
    """The arithmetic of a broker, which has the stored keys and not the password."""
    salt = b"0123456789abcdef"
    salted = scram.salted_password(mechanism, "pencil", salt, 4096)
    stored = scram.stored_key(mechanism, scram.client_key(mechanism, salted))
    client = conversation(mechanism)
    bare = client.first().decode().removeprefix("n,,")
    server_first = scram.ServerFirst(NONCE + "x", salt, 4096).encode()
    answer = client.respond(server_first)
    assert answer is not None
    final = scram.ClientFinal.parse(answer)
    message = scram.auth_message(bare, server_first.decode(), final.without_proof)
    assert scram.is_proof_of(mechanism, stored, message, final.proof)
    signature = scram.server_signature(mechanism, scram.server_key(mechanism, salted), message)
    assert client.respond(scram.ServerFinal(signature).encode()) is None


@pytest.mark.parametrize(
    ("challenge", "reply"),
    [
        (b"", "no attribute"),
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce does not begin with the client's"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(), "adds nothing to it"),
        (f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1".encode(), "asks for 1 iterations"),
        (f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999".encode(), "asks for 999999999 iterations"),
        (f"r={SERVER_NONCE},s=?,i=4096".encode(), "base64"),
        (b"\xff", "UTF-8"),
        (b"r=" + b"x" * 5_000, "bytes"),
    ],
)
def test_a_server_first_message_that_is_refused(challenge: bytes, reply: str) -> None:
    with pytest.raises(InvalidChallenge, match=reply):
        conversation().respond(challenge)


@pytest.mark.parametrize(
    ("final", "reply"),
    [
        (b"v=" + base64.b64encode(bytes(32)), "does not know the password"),
        (b"v=", "does not know the password"),
        (b"", "no attribute"),
        (b"e=unknown-user", "refuses the client: unknown-user"),
        (SERVER_FIRST, "expected a signature"),
    ],
)
def test_a_server_that_cannot_sign_is_not_trusted(final: bytes, reply: str) -> None:
    client = conversation()
    client.respond(SERVER_FIRST)
    with pytest.raises(InvalidChallenge, match=reply):
        client.respond(final)


def test_names_are_escaped() -> None:
    assert ScramConversation(scram.SHA_256, "a=b,c", "p", "n").first() == b"n,,n=a=3Db=2Cc,r=n"

import pytest

from rota.transport.sasl.conversation import InvalidChallenge
from rota.transport.sasl.oauthbearer import CHALLENGE_CHARS_MAX, OauthbearerConversation


def test_a_token_that_is_accepted() -> None:
    client = OauthbearerConversation("a.b.c", {"logicalCluster": "lkc-1"})
    assert client.first() == b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc-1\x01\x01"
    assert client.respond(b"") is None


def test_a_refusal_is_acknowledged_and_kept() -> None:
    """The broker ends the conversation with its error once it has the client's 0x01."""
    client = OauthbearerConversation("t", {})
    assert client.first() == b"n,,\x01auth=Bearer t\x01\x01"
    assert client.respond(b'{"status":"invalid_token","scope":"x"}') == b"\x01"
    assert client.refusal == "status: invalid_token, scope: x"
    with pytest.raises(InvalidChallenge, match="invalid_token"):
        client.respond(b'{"status":"again"}')


@pytest.mark.parametrize("challenge", [b"\xff" * 2_000, b"[1]" * 1_000, b"{" * 1_000])
def test_a_refusal_that_is_no_json_is_bounded(challenge: bytes) -> None:
    client = OauthbearerConversation("t", {})
    client.respond(challenge)
    assert 0 < len(client.refusal) <= CHALLENGE_CHARS_MAX


@pytest.mark.parametrize("token", ["", "with space", "a\x01b", "ä"])
def test_a_token_that_cannot_be_sent(token: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        OauthbearerConversation(token, {})


@pytest.mark.parametrize("extension", [("auth", "x"), ("a b", "x"), ("", "x"), ("name", "a\x01b")])
def test_an_extension_that_cannot_be_sent(extension: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="SASL extension"):
        OauthbearerConversation("t", dict([extension]))

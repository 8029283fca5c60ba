import pytest

from rota.transport.sasl.conversation import InvalidChallenge
from rota.transport.sasl.plain import PlainConversation


def test_one_message_and_an_empty_answer() -> None:
    client = PlainConversation("alice", "pässword")
    assert client.first() == b"\0alice\0" + "pässword".encode()
    assert client.respond(b"") is None  # type: ignore[func-returns-value]


def test_a_challenge_is_refused() -> None:
    with pytest.raises(InvalidChallenge, match="3 bytes"):
        PlainConversation("alice", "secret").respond(b"abc")

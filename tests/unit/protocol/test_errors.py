"""The error codes against Kafka 4.3.1's own table, as its `Errors` class prints it."""

from __future__ import annotations

from rota.protocol.errors import MESSAGE_CHARS_MAX, ErrorCode, message

KAFKA_RETRIABLE = {
    *(2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 100, 103, 106),
    *(122, 123, 133),
}


def test_every_code_of_kafka_has_a_member() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


def test_retriable_codes_are_those_of_kafka() -> None:
    assert {int(code) for code in ErrorCode if code.retriable} == KAFKA_RETRIABLE


def test_every_code_has_its_own_text() -> None:
    texts = [code.text for code in ErrorCode]
    assert all(texts)
    assert len(set(texts)) == len(texts)


def test_names_that_clients_see() -> None:
    assert ErrorCode(79) is ErrorCode.MEMBER_ID_REQUIRED
    assert ErrorCode(27) is ErrorCode.REBALANCE_IN_PROGRESS
    assert ErrorCode(86) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_a_code_of_the_future_is_an_unknown_server_error() -> None:
    assert ErrorCode.of(16) is ErrorCode.NOT_COORDINATOR
    assert ErrorCode.of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_message_has_an_end() -> None:
    assert message("x" * MESSAGE_CHARS_MAX) == "x" * MESSAGE_CHARS_MAX
    assert len(message("\U0001f600" * 40_000).encode()) <= 0x7FFF

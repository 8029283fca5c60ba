from __future__ import annotations

import pytest

import rota.client
from rota.transport.errors import KafkaError, TimedOut, Unreachable, Unsupported


@pytest.mark.parametrize("error", [KafkaError, TimedOut, Unreachable, Unsupported])
def test_the_errors_of_connections_are_those_of_the_client(error: type[KafkaError]) -> None:
    assert getattr(rota.client, error.__name__) is error
    assert issubclass(error, KafkaError)


def test_unreachable_and_timed_out_are_retriable() -> None:
    assert [kind.retriable for kind in (Unreachable, TimedOut, Unsupported)] == [True, True, False]

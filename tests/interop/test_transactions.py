"""Transactions of other clients: commit, abort, offsets, fencing, timeout."""

from __future__ import annotations

import os
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from tests.interop.client_suites.kit import Unavailable
from tests.interop.java_kit import needs_java
from tests.interop.kit import PATIENCE_S, create_topic, unique, until
from tests.interop.transactional import CLIENTS, Transactional
from tests.interop.transactional_programs import FranzGo, Java, ProgramProducer, Sarama

GO = pytest.mark.skipif(os.environ.get("ROTA_TEST_SUITES") != "all", reason="ROTA_TEST_SUITES=all is not set")


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(made, id=name) for name, made in CLIENTS.items()),
        pytest.param(Java, id="java", marks=needs_java),
        pytest.param(FranzGo, id="franz-go", marks=GO),
        pytest.param(Sarama, id="sarama", marks=GO),
    ],
)
def client(request: pytest.FixtureRequest) -> Iterator[type[Transactional]]:
    if not issubclass(request.param, ProgramProducer):
        yield request.param
        return
    try:
        request.param.command()
    except Unavailable as why:
        pytest.skip(str(why))
    with request.param.program() as running:
        yield running


def values(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique("reader"),
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while (message := consumer.poll(PATIENCE_S)) is not None and not message.error():
        found.append(message.value())
    consumer.close()
    return found


def committed(bootstrap: str, group: str, topic: str) -> int | None:
    """The offset of partition 0; waits while a transaction has one pending, as every client does."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)
    consumer.close()
    return found.offset if found.offset >= 0 else None


def write(producer: Transactional, topic: str, *records: bytes) -> None:
    producer.begin()
    for value in records:
        producer.send(topic, value)


def test_committed_records_are_seen_and_aborted_ones_are_not(bootstrap: str, client: type[Transactional]) -> None:
    topic = create_topic(bootstrap, 1)
    with client(bootstrap, unique("tx")) as producer:
        write(producer, topic, b"a", b"b")
        assert values(bootstrap, topic) == []
        producer.commit()
        write(producer, topic, b"lost")
        producer.abort()
        write(producer, topic, b"c")
        producer.commit()
    until(lambda: values(bootstrap, topic) == [b"a", b"b", b"c"], "the committed records")
    assert values(bootstrap, topic, "read_uncommitted") == [b"a", b"b", b"lost", b"c"]


def test_offsets_are_committed_and_aborted_with_the_transaction(bootstrap: str, client: type[Transactional]) -> None:
    topic, group = create_topic(bootstrap, 1), unique("group")
    with client(bootstrap, unique("tx")) as producer:
        write(producer, topic, b"a")
        producer.send_offset(group, topic, 5)
        producer.commit()
        assert committed(bootstrap, group, topic) == 5
        write(producer, topic, b"b")
        producer.send_offset(group, topic, 9)
        producer.abort()
        assert committed(bootstrap, group, topic) == 5


def test_a_second_producer_of_an_id_fences_the_first(bootstrap: str, client: type[Transactional]) -> None:
    topic, transactional_id = create_topic(bootstrap, 1), unique("tx")
    with client(bootstrap, transactional_id) as first:
        write(first, topic, b"zombie")
        with client(bootstrap, transactional_id) as second:
            with pytest.raises(Exception) as fenced:  # noqa: PT011 - each client has its own, checked below
                first.commit()
            assert first.is_fenced(fenced.value), repr(fenced.value)
            write(second, topic, b"x")
            second.commit()
            until(lambda: values(bootstrap, topic) == [b"x"], "the record of the second producer")


def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, client: type[Transactional]) -> None:
    topic = create_topic(bootstrap, 1)
    with client(bootstrap, unique("tx"), timeout_ms=1_000) as late, client(bootstrap, unique("tx")) as other:
        write(late, topic, b"late")
        write(other, topic, b"x")
        other.commit()
        until(lambda: values(bootstrap, topic) == [b"x"], "the end of the transaction before")
        with pytest.raises(Exception):  # noqa: B017, PT011 - each client has its own
            late.commit()

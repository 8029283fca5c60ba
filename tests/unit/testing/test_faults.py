"""Each fault, met by a real client."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from tests.unit.testing.clients import QUIET, WAIT_S, consumer, produce, take

from rota.testing import CommandRefused, RunningBroker, running_broker


def test_a_lost_reply_makes_a_producer_without_idempotence_write_twice(broker: RunningBroker, topic: str) -> None:
    with broker.faults.drop(api="Produce", client_id="writer") as fault:
        produce(broker.bootstrap_servers, topic, "a")
        assert fault.hits == 1
    with consumer(broker.bootstrap_servers, "lost", topic) as member:
        assert [record.value() for record in take(member, 2)] == [b"a", b"a"]


def test_a_stalled_reply_is_noticed_by_the_request_timeout(broker: RunningBroker, topic: str) -> None:
    fault = broker.faults.drop(api="Produce", stall=True)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "socket.timeout.ms": 1000, **QUIET})
    producer.produce(topic, b"a")
    assert producer.flush(WAIT_S) == 0
    assert fault.hits == 1


def test_an_error_fault_is_returned_the_given_number_of_times(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "refused", topic) as member:
        take(member, 1)
        broker.faults.error("REBALANCE_IN_PROGRESS", "OffsetCommit")
        with pytest.raises(KafkaException) as refused:
            member.commit(asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.REBALANCE_IN_PROGRESS
        assert broker.group("refused").committed() == {}
        member.commit(asynchronous=False)
        broker.group("refused").committed({(topic, 0): 1})


def test_a_performed_request_takes_effect_though_it_is_refused(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "performed", topic) as member:
        take(member, 1)
        broker.faults.error("REBALANCE_IN_PROGRESS", "OffsetCommit", performed=True)
        with pytest.raises(KafkaException):
            member.commit(asynchronous=False)
        broker.group("performed").committed({(topic, 0): 1})


def test_a_reply_that_is_sent_twice_confuses_no_client(broker: RunningBroker, topic: str) -> None:
    fault = broker.faults.duplicate(api="Produce", times=None)
    produce(broker.bootstrap_servers, topic, "a")
    produce(broker.bootstrap_servers, topic, "b")
    assert fault.hits == 2
    with consumer(broker.bootstrap_servers, "twice", topic) as member:
        assert [record.value() for record in take(member, 2)] == [b"a", b"b"]


def test_delayed_and_closed_requests_are_answered_in_the_end(broker: RunningBroker, topic: str) -> None:
    delayed = broker.faults.delay(20, api="Produce", times=1)
    closed = broker.faults.close(api="Produce")
    produce(broker.bootstrap_servers, topic, "a")
    produce(broker.bootstrap_servers, topic, "b")
    assert (delayed.hits, closed.hits) == (1, 1)
    assert broker.faults.close_connections("nobody") == 0
    delayed.remove()
    with pytest.raises(LookupError):
        _ = delayed.hits


def test_a_full_disk_refuses_records_until_it_has_room(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as on_disk:
        produce(on_disk.bootstrap_servers, "t", "a")
        on_disk.faults.full_disk()
        with pytest.raises(AssertionError, match="not delivered"):
            produce(on_disk.bootstrap_servers, "t", "b", message_timeout_ms=500)
        on_disk.faults.full_disk(False)
        on_disk.faults.slow_disk(1)
        on_disk.advance(minutes=1)  # the broker tries to open the failed log again
        produce(on_disk.bootstrap_servers, "t", "c")
        on_disk.faults.full_disk()
        with pytest.raises(AssertionError, match="not delivered"):
            produce(on_disk.bootstrap_servers, "t", "d", message_timeout_ms=500)
        on_disk.faults.clear()
        on_disk.restart()
        produce(on_disk.bootstrap_servers, "t", "e")


def test_memory_has_no_disk(broker: RunningBroker) -> None:
    with pytest.raises(CommandRefused, match="data folder"):
        broker.faults.full_disk()

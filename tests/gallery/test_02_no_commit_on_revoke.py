"""An application commits every hundred records. A rebalance takes its partitions away between two commits: the next
owner begins at the last commit and processes records again.

Repair: commit what is processed in the callback for revoked partitions, before they are given away.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer
from tests.gallery.kit import confluent, poll, produce

from rota.testing import RunningBroker, no_duplicates


def deliver(broker: RunningBroker, topic: str, *, commits_on_revoke: bool) -> list[object]:
    """The records that two members process, the second of which comes later."""
    produce(broker, topic, *map(str, range(5)))
    members = [Consumer(confluent(broker, topic, enable_auto_commit=False, client_id=name)) for name in ("a", "b")]
    (first, second), records = members, list[object]()

    def revoked(consumer: Consumer, partitions: list[object]) -> None:
        if commits_on_revoke:
            consumer.commit(records[-1], asynchronous=False)

    first.subscribe([topic], on_revoke=revoked)
    records.extend(poll(first) for _ in range(3))
    generation = broker.group(topic).generation
    second.subscribe([topic])
    while broker.group(topic).generation == generation:
        second.poll(0.01)
        first.poll(0.01)
    first.close()
    records += [poll(second) for _ in range(2 if commits_on_revoke else 5)]
    second.close()
    return records


def test_records_are_processed_twice(rota_broker: RunningBroker, rota_topic: str) -> None:
    with pytest.raises(AssertionError, match="3 records were delivered more than once"):
        no_duplicates(deliver(rota_broker, rota_topic, commits_on_revoke=False))


def test_repaired_each_is_processed_once(rota_broker: RunningBroker, rota_topic: str) -> None:
    no_duplicates(deliver(rota_broker, rota_topic, commits_on_revoke=True))

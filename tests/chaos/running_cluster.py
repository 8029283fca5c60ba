"""Three brokers and ZooKeeper as processes, with the topic that the clients of cluster_clients.py write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.chaos.cluster_clients import HEALED_SECONDS, TOPIC
from tools.cluster import Cluster
from tools.zookeeper import missing


@contextmanager
def running_cluster(folder: Path, partitions: int, properties: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Three brokers with TOPIC on all of them, two of which must have a record. Skips the test without ZooKeeper."""
    reason = missing()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    with Cluster(folder, properties=properties) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topic = NewTopic(TOPIC, partitions, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])[TOPIC].result(HEALED_SECONDS)
        yield cluster

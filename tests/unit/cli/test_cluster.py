"""A cluster as JSON; tests/cli/test_configs.py runs `rota cluster` on brokers."""

from __future__ import annotations

from rota.cli.cluster import cluster_document
from rota.client import BrokerInfo, ClusterDescription, PartitionInfo, TopicDescription

BROKERS = (BrokerInfo(1, "a", 9092, None), BrokerInfo(2, "b", 9092, "r"))


def test_leaders_and_replicas_are_counted_and_ill_partitions_named() -> None:
    partitions = (
        PartitionInfo("t", 0, 1, 0, (1, 2), (1, 2)),
        PartitionInfo("t", 1, 1, 0, (1, 2), (1,)),
        PartitionInfo("t", 2, -1, 0, (2,), ()),
    )
    topic = TopicDescription("t", None, False, partitions)
    document = cluster_document(ClusterDescription("id", BROKERS[1], BROKERS), [topic])
    assert document == {
        "cluster_id": "id",
        "controller": 2,
        "brokers": [
            {"id": 1, "host": "a", "port": 9092, "rack": None, "leaders": 2, "replicas": 2},
            {"id": 2, "host": "b", "port": 9092, "rack": "r", "leaders": 0, "replicas": 3},
        ],
        "partitions": 3,
        "without_leader": [{"topic": "t", "partition": 2}],
        "under_replicated": [{"topic": "t", "partition": 1}, {"topic": "t", "partition": 2}],
    }


def test_a_cluster_without_a_controller_has_none() -> None:
    assert cluster_document(ClusterDescription(None, None, BROKERS), [])["controller"] is None

"""The tests of five client libraries' own authors, unchanged, against this broker and against a cluster with ZooKeeper.

They come by package name from PyPI, Go's proxy and crates.io, once, into .tools/client_suites; without network they are
skipped. They run with ROTA_TEST_SUITES=all (`make interop`, `make soak`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interop.broker import broker
from tests.interop.client_suites import franz_go, kafka_go, kafka_python, librdkafka, sarama
from tests.interop.client_suites.kit import Unavailable
from tests.interop.security.rota_broker import SecureRota
from tools.cluster import Cluster
from tools.peer.secure import PASSWORD, USER
from tools.zookeeper import missing

ALL = os.environ.get("ROTA_TEST_SUITES") == "all"
needs_all = pytest.mark.skipif(not ALL, reason="ROTA_TEST_SUITES=all is not set")
needs_zookeeper = pytest.mark.skipif(missing() is not None, reason=f"no ZooKeeper: {missing()}")
AUTHORIZER = {  # everybody may do what no ACL says otherwise, also the brokers
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
CLUSTER_PROPERTIES = {
    **AUTHORIZER,
    # a test of librdkafka expects two consumers in the first generation of their group
    "group.initial.rebalance.delay.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "num.partitions": "4",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}

KAFKA_GO_PROPERTIES = {
    **AUTHORIZER,
    "node.id": "1",  # its tests expect these
    "message.max.bytes": "200000000",
    "group.min.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "3000",  # meanwhile a topic is created
    "num.partitions": "1",
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a broker with an authorizer."""
    with broker(tmp_path_factory.mktemp("broker"), AUTHORIZER) as address:
        yield address


@pytest.mark.timeout(700)
@needs_all
def test_kafka_pythons_integration_tests(bootstrap: str) -> None:
    try:
        folder = kafka_python.source()
    except Unavailable as why:
        pytest.skip(str(why))
    outcomes = kafka_python.run(bootstrap, folder)
    assert_passed(outcomes, lambda names: kafka_python.run(bootstrap, folder, names))
    assert len(outcomes) >= 52


@pytest.mark.timeout(900)
@needs_all
def test_saramas_functional_tests(bootstrap: str) -> None:
    try:
        folder = sarama.built()
    except Unavailable as why:
        pytest.skip(str(why))
    outcomes = sarama.run(bootstrap, folder)
    assert_passed(outcomes, lambda names: sarama.run(bootstrap, folder, names))
    assert len(outcomes) >= 38


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The addresses of the brokers 0, 1 and 2; a test of kafka-python assigns partitions to broker 0."""
    with Cluster(tmp_path_factory.mktemp("cluster"), first_id=0, properties=CLUSTER_PROPERTIES) as running:
        yield running.bootstrap


@pytest.mark.timeout(700)
@needs_all
@needs_zookeeper
def test_kafka_pythons_integration_tests_on_a_cluster(cluster: str) -> None:
    try:
        folder = kafka_python.source()
    except Unavailable as why:
        pytest.skip(str(why))
    one_replica = ["test_create_partitions"]  # it assigns partitions to one broker
    bootstrap = cluster.partition(",")[0]
    outcomes = kafka_python.run(bootstrap, folder, replicas=3)
    outcomes |= kafka_python.run(bootstrap, folder, one_replica)
    assert_passed(outcomes, lambda names: kafka_python.run(bootstrap, folder, names, replicas=3))
    assert len(outcomes) >= 52


@pytest.mark.timeout(900)
@needs_all
@needs_zookeeper
def test_franz_gos_tests_on_a_cluster(cluster: str) -> None:
    try:
        folder = franz_go.built()
    except Unavailable as why:
        pytest.skip(str(why))
    outcomes = franz_go.run(cluster, folder)
    assert_passed(outcomes, lambda names: franz_go.run(cluster, folder, names))
    assert len(outcomes) >= 430


@pytest.mark.timeout(900)
@needs_all
def test_franz_gos_tests_of_scram(tmp_path: Path) -> None:
    try:
        folder = franz_go.built()
    except Unavailable as why:
        pytest.skip(str(why))
    with SecureRota(tmp_path) as broker:
        for bits in (256, 512):
            outcomes = franz_go.run_scram(broker.address("SASL_PLAINTEXT"), f"{USER}:{PASSWORD}:{bits}", folder)
            assert outcomes == dict.fromkeys(("TestSCRAMAuth", "TestSCRAMAuthBadCredentials"), "passed")


@pytest.mark.timeout(900)
@needs_all
def test_kafka_gos_tests(tmp_path: Path) -> None:
    try:
        folder = kafka_go.built()
    except Unavailable as why:
        pytest.skip(str(why))
    with SecureRota(tmp_path, KAFKA_GO_PROPERTIES) as broker:
        addresses = broker.address("PLAINTEXT"), broker.address("SASL_PLAINTEXT")
        outcomes = kafka_go.run(*addresses, folder)
        assert_passed(outcomes, lambda names: kafka_go.run(*addresses, folder, names))
    assert sum(outcome == "passed" for outcome in outcomes.values()) >= 580


@pytest.mark.timeout(1500)
@needs_all
@needs_zookeeper
def test_librdkafkas_tests_on_a_cluster(cluster: str) -> None:
    try:
        tests = librdkafka.built()
    except Unavailable as why:
        pytest.skip(str(why))
    outcomes = librdkafka.run(cluster, tests)
    assert_passed(outcomes, lambda names: librdkafka.run(cluster, tests, names))
    assert sum(outcome.startswith("passed") for outcome in outcomes.values()) >= 80


@pytest.mark.timeout(900)
@needs_all
@needs_zookeeper
def test_saramas_functional_tests_on_a_cluster(tmp_path: Path) -> None:
    try:
        folder = sarama.built()
    except Unavailable as why:
        pytest.skip(str(why))
    first, second = tmp_path / "first", tmp_path / "second"
    outcomes = sarama.run_on_cluster(first, folder)
    assert_passed(outcomes, lambda names: sarama.run_on_cluster(second, folder, names))
    assert len(outcomes) >= 51


def assert_passed(outcomes: dict[str, str], again: Callable[[list[str]], dict[str, str]]) -> None:
    """What failed gets a second chance by itself: these tests race with each other, against Apache Kafka as well."""
    print(Counter(outcome.partition(":")[0] for outcome in outcomes.values()))
    names = list(wrong(outcomes))
    if names:
        print(f"a second chance for {wrong(outcomes)}")
        second = again([] if sarama.CRASH in names else names)  # what came after a crash has not run
        assert wrong(second) == {}
        assert {name for name in names if "/" not in name} <= {*second, sarama.CRASH}


def wrong(outcomes: dict[str, str]) -> dict[str, str]:
    """What did not pass. A test that skips itself is not wrong."""
    return {name: outcome for name, outcome in outcomes.items() if outcome.startswith("failed")}

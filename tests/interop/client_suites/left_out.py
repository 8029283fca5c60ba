"""Tests of other clients' suites that do not run, by name, each with its reason. docs/SKIPPED.md has the same section.

Every other test must pass: kafka-python's on one broker and on three; sarama's on one broker, unless they need several,
and on five; franz-go's and librdkafka's on three; kafka-go's on one.
"""

from __future__ import annotations

RAPIDJSON = "needs RapidJSON, and its own program in Java to be compiled"
SEGMENTS = "needs segments smaller than Kafka 4 allows"
BENCHMARK = "measures throughput or latency"
BY_HAND = "is meant to be run by hand"
TLS_AND_SASL = "needs TLS and SASL"
KERBEROS = "sets a broker's `sasl.kerberos.min.time.before.relogin`, and there is no Kerberos"
NIL = "dereferences a nil pointer of its own"
DOCKER = "runs Java in the containers of sarama's test cluster"

KAFKA_PYTHON: dict[str, str] = {}

SARAMA: dict[str, str] = {
    "TestFuncJavaInteropCooperativeRebalance": DOCKER,
}

# these run on the cluster only: they need several brokers, or stop one of them
SARAMA_CLUSTER_ONLY = (
    "TestFuncAdminIncrementalAlterConfigs",
    "TestFuncAdminListConsumerGroupOffsets",
    "TestFuncAdminNetworkErrorClosesControllerConnection",
    "TestFuncClientMetadata",
    "TestFuncProducing",
    "TestFuncProducingGzip",
    "TestFuncProducingSnappy",
    "TestFuncProducingZstd",
    "TestFuncProducingFlushing",
    "TestFuncProducingIdempotentWithBrokerFailure",
    "TestFuncTxnProduceWithBrokerFailure",
    "TestFuncIdempotentBufferedSequence",
    "TestFuncAdminAlterPartitionReassignments",
    "TestFuncAdminDescribeConfig",
    "TestFuncAdminDescribeLogDirs",
)


FRANZ_GO: dict[str, str] = {}

KAFKA_GO: dict[str, str] = {
    "TestReaderReadCompactedMessage": SEGMENTS,
    "TestDialerResolver": "expects the broker at the port 9092",
    "TestClientElectLeaders": "asks with a timeout of 0, which Kafka 4 answers with REQUEST_TIMED_OUT (T14)",
}

# functions of the scenarios of TestReaderConsumerGroup
KAFKA_GO_SCENARIOS: dict[str, str] = {
    "testReaderConsumerGroupVerifyOffsetCommitted": NIL,
    "testReaderConsumerGroupVerifyPeriodicOffsetCommitter": NIL,
    "testReaderConsumerGroupVerifyCommitsOnClose": NIL,
    "testReaderConsumerGroupRebalance": "reads 12 records as a member whose one partition has 8",
}

LIBRDKAFKA: dict[str, str] = {
    "0038_performance": BENCHMARK,
    "0055_producer_latency": BENCHMARK,
    "0077_compaction": SEGMENTS,
    "0098_consumer_txn": RAPIDJSON,
    "0129_fetch_aborted_msgs": SEGMENTS,
    "8000_idle": BY_HAND,
    "8001_fetch_from_follower_mock_manual": BY_HAND,
}

# calls in 0081_admin
LIBRDKAFKA_ADMIN: dict[str, str] = {
    "UserScramCredentials": TLS_AND_SASL,
    "AlterConfigs": KERBEROS,
    "IncrementalAlterConfigs": KERBEROS,
}


def table() -> str:
    """The section of docs/SKIPPED.md, as Markdown. `python -m tests.interop.client_suites.left_out` prints it."""
    lines = [
        "## Other clients' tests that do not run",
        "",
        "All other integration tests of kafka-python and functional tests of sarama pass, on one broker and on a",
        "cluster with ZooKeeper, all others of franz-go (kgo) and librdkafka on such a cluster, and all others of",
        "kafka-go on one broker (tests/interop/client_suites).",
        "",
    ]
    suites = {
        "kafka-python": KAFKA_PYTHON,
        "sarama": SARAMA,
        "franz-go": FRANZ_GO,
        "kafka-go": KAFKA_GO,
        "kafka-go's TestReaderConsumerGroup": KAFKA_GO_SCENARIOS,
        "librdkafka": LIBRDKAFKA,
        "librdkafka's 0081_admin": LIBRDKAFKA_ADMIN,
    }
    for suite, tests in suites.items():
        for reason in dict.fromkeys(tests.values()):
            names = ", ".join(f"`{name}`" for name, why in tests.items() if why == reason)
            lines.append(f"- {suite}, {reason}: {names}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")

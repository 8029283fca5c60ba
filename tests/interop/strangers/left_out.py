"""Tests of other clients' suites that do not run, by name, each with its reason. docs/SKIPPED.md has the same section.

Every other test of the two suites must pass: kafka-python's on one broker and on three; sarama's on one broker, unless
they need several, and on five.
"""

from __future__ import annotations

ACLS = "needs ACLs"
TRANSACTIONS = "needs transactions"
QUOTAS = "needs quotas"
DYNAMIC_CONFIGS = "changes a setting of a running broker"
DOCKER = "runs Java in the containers of sarama's test cluster"

KAFKA_PYTHON: dict[str, str] = {
    "test_create_describe_delete_acls": ACLS,
    "test_transactional_producer_messages": TRANSACTIONS,
    "test_transactional_producer_offsets": TRANSACTIONS,
}

SARAMA: dict[str, str] = {
    "TestFuncTxnProduceWithBrokerFailure": TRANSACTIONS,
    "TestFuncAdminQuotas": QUOTAS,
    "TestFuncAdminIncrementalAlterConfigs": DYNAMIC_CONFIGS,
    "TestFuncJavaInteropCooperativeRebalance": DOCKER,
    "TestFuncDescribeTransactions": TRANSACTIONS,
    "TestFuncListTransactions": TRANSACTIONS,
    "TestFuncTxnProduceNoBegin": TRANSACTIONS,
    "TestFuncTxnCommitNoMessages": TRANSACTIONS,
    "TestFuncTxnProduce": TRANSACTIONS,
    "TestFuncTxnProduceEpochBump": TRANSACTIONS,
    "TestFuncInitProducerId3": TRANSACTIONS,
    "TestFuncTxnProduceAndCommitOffset": TRANSACTIONS,
    "TestFuncTxnProduceMultiTxn": TRANSACTIONS,
    "TestFuncTxnAbortedProduce": TRANSACTIONS,
}

# these run on the cluster only: they need several brokers, or stop one of them
SARAMA_CLUSTER_ONLY = (
    "TestFuncAdminListConsumerGroupOffsets",
    "TestFuncAdminNetworkErrorClosesControllerConnection",
    "TestFuncClientMetadata",
    "TestFuncProducing",
    "TestFuncProducingGzip",
    "TestFuncProducingSnappy",
    "TestFuncProducingZstd",
    "TestFuncProducingFlushing",
    "TestFuncProducingIdempotentWithBrokerFailure",
    "TestFuncIdempotentBufferedSequence",
    "TestFuncAdminAlterPartitionReassignments",
    "TestFuncAdminDescribeConfig",
    "TestFuncAdminDescribeLogDirs",
)


def table() -> str:
    """The section of docs/SKIPPED.md, as Markdown. `python -m tests.interop.strangers.left_out` prints it."""
    lines = [
        "## Strangers' tests that do not run",
        "",
        "All other integration tests of kafka-python and functional tests of sarama pass (tests/interop/strangers),",
        "on one broker and on a cluster with ZooKeeper.",
        "",
    ]
    for suite, tests in (("kafka-python", KAFKA_PYTHON), ("sarama", SARAMA)):
        for reason in dict.fromkeys(tests.values()):
            names = ", ".join(f"`{name}`" for name, why in tests.items() if why == reason)
            lines.append(f"- {suite}, {reason}: {names}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")

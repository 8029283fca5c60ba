"""Strangers' tests that do not run, by name, each with its reason. docs/SKIPPED.md tells the same.

Every other test of the two suites must pass.
"""

from __future__ import annotations

ACLS = "needs ACLs"
TRANSACTIONS = "needs transactions"
BROKERS = "needs several brokers, Docker, or broker ids of its own test cluster"

KAFKA_PYTHON: dict[str, str] = {
    "test_create_describe_delete_acls": ACLS,
    "test_transactional_producer_messages": TRANSACTIONS,
    "test_transactional_producer_offsets": TRANSACTIONS,
}

SARAMA: dict[str, str] = {
    "TestFuncAdminListConsumerGroupOffsets": BROKERS,
    "TestFuncAdminNetworkErrorClosesControllerConnection": BROKERS,
    "TestFuncClientMetadata": BROKERS,
    "TestFuncProducing": BROKERS,
    "TestFuncProducingGzip": BROKERS,
    "TestFuncProducingSnappy": BROKERS,
    "TestFuncProducingZstd": BROKERS,
    "TestFuncProducingFlushing": BROKERS,
    "TestFuncTxnProduceWithBrokerFailure": BROKERS,
    "TestFuncProducingIdempotentWithBrokerFailure": BROKERS,
    "TestFuncIdempotentBufferedSequence": BROKERS,
    "TestFuncAdminQuotas": BROKERS,
    "TestFuncAdminIncrementalAlterConfigs": BROKERS,
    "TestFuncAdminAlterPartitionReassignments": BROKERS,
    "TestFuncAdminDescribeConfig": BROKERS,
    "TestFuncAdminDescribeLogDirs": BROKERS,
    "TestFuncJavaInteropCooperativeRebalance": BROKERS,
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


def table() -> str:
    """The section of docs/SKIPPED.md, as Markdown. `python -m tests.interop.strangers.left_out` prints it."""
    lines = [
        "## Strangers' tests that do not run",
        "",
        "All other integration tests of kafka-python and functional tests of sarama pass (tests/interop/strangers).",
        "",
    ]
    for suite, tests in (("kafka-python", KAFKA_PYTHON), ("sarama", SARAMA)):
        for reason in dict.fromkeys(tests.values()):
            names = ", ".join(f"`{name}`" for name, why in tests.items() if why == reason)
            lines.append(f"- {suite}, {reason}: {names}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")

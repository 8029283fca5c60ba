"""`rota topics`: the parts that need no broker; tests/cli/test_topics.py runs it on brokers."""

from __future__ import annotations

import pytest

from rota.cli.main import run
from rota.cli.topics import UNKNOWN, _tolerating, topic_document
from rota.client import AdminFailed, PartitionInfo, TopicDescription, Unreachable
from rota.client.errors import UnknownTopic
from rota.protocol.errors import ErrorCode


def test_a_partition_without_a_leader_has_none() -> None:
    topic = TopicDescription("t", bytes(16), False, (PartitionInfo("t", 0, -1, 3, (1, 2), (1,), (2,)),))
    assert topic_document(topic)["partitions"] == [
        {"partition": 0, "leader": None, "leader_epoch": 3, "replicas": [1, 2], "isr": [1], "offline": [2]}
    ]


async def test_only_the_named_codes_are_tolerated() -> None:
    unknown = UnknownTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleting topics", topic="a")

    async def fails(**failed: Exception) -> None:
        raise AdminFailed("deleting topics", {"c": None}, failed)  # type: ignore[arg-type]

    assert await _tolerating(fails(a=unknown), UNKNOWN) == ({"c": None}, ["a"])
    with pytest.raises(AdminFailed):
        await _tolerating(fails(a=unknown, b=Unreachable("x")), UNKNOWN)
    with pytest.raises(AdminFailed):
        await _tolerating(fails(a=unknown), set())


@pytest.mark.parametrize(
    "arguments",
    [(), ("lst",), ("create",), ("create", "a", "--partitions", "0"), ("create", "a", "--config", "b"), ("delete",)],
)
def test_a_wrong_command_line_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["topics", *arguments])
    assert ended.value.code == 2

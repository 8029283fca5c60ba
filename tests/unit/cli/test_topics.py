"""`rota topics`: the parts that need no broker; tests/cli/test_topics.py runs it on brokers."""

from __future__ import annotations

import pytest

from rota.cli.main import run
from rota.cli.topic_details import UNKNOWN
from rota.cli.topics import _tolerating
from rota.client import AdminFailed, Unreachable
from rota.client.errors import UnknownTopic
from rota.protocol.errors import ErrorCode


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

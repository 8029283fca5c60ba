"""Commands: what they refuse, and the ones that no other test of the kit uses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.testing.commands import Commands
from rota.testing.errors import CommandRefused
from rota.testing.host import Host


@pytest.fixture
async def commands() -> AsyncIterator[Commands]:
    host = Host()
    await host.start()
    yield Commands(host)
    await host.stop()


@pytest.mark.parametrize(
    ("command", "arguments", "reason"),
    [
        ("_machine", {}, "unknown command"),
        ("perform", {}, "unknown command"),
        ("kill", {"broker": 4}, "no broker 4"),
        ("advance", {"ms": 1, "days": 1}, "unexpected keyword argument 'days'"),
        ("disk", {"full": True}, "in memory"),
        ("create_topic", {"name": "a/b"}, "create_topic"),
        ("move_leader", {"topic": "t", "partition": 0, "broker": 1}, "no partition t-0"),
        ("add_fault", {"action": "explode"}, "explode"),
        ("add_fault", {"action": "error", "api": "Heartbeat", "error": "NO_SUCH"}, "NO_SUCH"),
        ("add_fault", {"action": "error", "api": "*", "error": "NOT_COORDINATOR"}, "no error replies for"),
        ("expire_member", {"group": "g", "member": "m"}, "no broker coordinates"),
    ],
)
async def test_refusals(commands: Commands, command: str, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandRefused, match=reason.replace("*", r"\*")):
        await commands.perform(command, arguments)


async def test_a_killed_broker_refuses_commands_until_restart(commands: Commands) -> None:
    await commands.perform("kill", {})
    with pytest.raises(CommandRefused, match="not running"):
        await commands.perform("freeze", {})
    await commands.perform("restart", {})
    await commands.perform("freeze", {})
    assert (await commands.perform("info", {}))["brokers"][0]["frozen"]
    await commands.perform("clear_faults", {})
    assert not (await commands.perform("info", {}))["brokers"][0]["frozen"]


async def test_a_fault_is_described_until_it_is_removed(commands: Commands) -> None:
    rule = await commands.perform("add_fault", {"action": "delay", "delay_ms": 5})
    assert (await commands.perform("fault", {"rule_id": rule["rule_id"]}))["hits"] == 0
    await commands.perform("remove_fault", {"rule_id": rule["rule_id"]})
    assert await commands.perform("fault", {"rule_id": rule["rule_id"]}) is None

"""`rota groups plan` and `rota groups watch` on both brokers."""

from __future__ import annotations

import time

import pytest
from tests.cli.kit import Rota
from tests.interop.kit import PATIENCE_S


def test_a_plan_of_a_stable_group_equals_the_next_rebalance(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 6)
    sticky = {"partition_assignment_strategy": ("cooperative-sticky",)}
    with cli.member(group, topic, **sticky):
        plan = cli.json("groups", "plan", group, "--members", "+1")
        assert (plan["assignor_now"], plan["members"], plan["partitions"]) == ("cooperative-sticky", 2, 6)
        plans = {each["assignor"]: each for each in plan["plans"]}
        assert sorted(plans) == ["cooperative-sticky", "range", "roundrobin", "sticky"]
        cooperative = plans["cooperative-sticky"]
        assert (cooperative["moved"], cooperative["kept"], cooperative["paused"]) == (3, 3, 3)
        text = cli("groups", "plan", group, "--assignor", "range", "--partitions", "8").out
        assert f"{topic}:0-7" in text
        with cli.member(group, topic, **sticky):
            (described,) = cli.json("groups", "describe", group)["groups"]
            counts = sorted(len(member["assignment"]) for member in described["members"])
            assert counts == [cooperative["fewest"], cooperative["most"]]


def test_a_plan_of_a_group_of_the_consumer_protocol_equals_what_the_broker_assigns(
    cli: Rota, topic: str, group: str
) -> None:
    cli.create(topic, 6)
    with cli.member(group, topic, group_protocol="consumer"):
        plan = cli.json("groups", "plan", group, "--members", "+1")
        assert [each["assignor"] for each in plan["plans"]] == ["uniform", "range"]
        uniform = plan["plans"][0]
        assert (uniform["moved"], uniform["kept"], uniform["paused"], uniform["rebalances"]) == (3, 3, 3, 1)
        planned = sorted([each["partition"] for each in member["after"]] for member in uniform["members"])
        text = cli("groups", "plan", group, "--assignor", "uniform", "--assignor", "sticky", "--partitions", "8").out
        assert text.count(f"{topic}:0-7") == 2
        with cli.member(group, topic, group_protocol="consumer"):
            assert sorted(assignments(cli, group)) == planned


def assignments(cli: Rota, group: str) -> list[list[int]]:
    """Return the partitions of each member once the group is stable."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        (described,) = cli.json("groups", "describe", group)["groups"]
        if described["state"] == "Stable":
            break
    return [[each["partition"] for each in member["assignment"]] for member in described["members"]]


def test_a_group_that_does_not_exist_has_no_plan(cli: Rota, group: str) -> None:
    refused = cli.fails("groups", "plan", group)
    assert refused.code == 1
    assert "GROUP_ID_NOT_FOUND" in refused.err


def test_a_group_without_members_is_planned_with_named_topics(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 4)
    cli.commit(group, topic, {0: 0})
    assert cli.fails("groups", "plan", group, "--members", "+2").code == 2
    plan = cli.json("groups", "plan", group, "--members", "2", "--topic", topic, "--assignor", "range")
    assert (plan["plans"][0]["most"], plan["plans"][0]["moved"]) == (2, 0)


@pytest.mark.parametrize("named", [True, False])
def test_watch_prints_a_line_for_each_look(cli: Rota, topic: str, group: str, named: bool) -> None:
    cli.create(topic)
    cli.produce(topic, [b"1", b"2"])
    cli.commit(group, topic, {0: 1})
    given = (group,) if named else ()
    looks = cli.json_lines("groups", "watch", *given, "--count", "2", "--interval", "0.01")
    mine = [look for look in looks if look["group"] == group]
    assert [(look["lag"], look["state"], look["lag_change"]) for look in mine] == [(1, "Empty", None), (1, "Empty", 0)]
    (line,) = cli("groups", "watch", group, "--count", "1").lines
    assert f"group={group}  state=Empty  members=0  partitions=1  lag=1" in line

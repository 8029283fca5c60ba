"""`rota groups` on both brokers: list, describe, lag, delete, remove-members."""

from __future__ import annotations

import time

from tests.cli.kit import Rota
from tests.interop.kit import PATIENCE_S

from rota.client import TopicPartition

AGE_S = 3_600


def test_a_group_with_a_member_is_listed_and_described(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 3)
    with cli.member(group, topic, client_id="billing"):
        (listed,) = [each for each in cli.json("groups", "list")["groups"] if each["group"] == group]
        assert listed == {"group": group, "state": "Stable", "type": "classic", "protocol_type": "consumer"}
        (described,) = cli.json("groups", "describe", group)["groups"]
        (member,) = described.pop("members")
        assert (described["state"], described["assignor"]) == ("Stable", "range")
        assert f"{described['coordinator']['host']}:{described['coordinator']['port']}" == cli.address
        assert (member["client_id"], member["topics"]) == ("billing", [topic])
        assert member["assignment"] == [{"topic": topic, "partition": number} for number in range(3)]
        states, members = cli("groups", "describe", group).out.split("\n\n")
        assert states.splitlines()[1].split()[:3] == [group, "Stable", "range"]
        assert members.splitlines()[1].split()[-1] == f"{topic}:0-2"
        assert cli("groups", "list", "--state", "Stable", "--type", "classic").out.count(group) == 1
        refused = cli.fails("groups", "delete", group)
        assert refused.code == 1
        assert "NON_EMPTY_GROUP" in refused.err
        assert "`rota groups remove-members`" in refused.err


def test_lag_is_known_where_an_offset_is_committed(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic, 2)
    cli.produce(topic, [b"1", b"2", b"3"], timestamp=int(time.time() * 1000) - AGE_S * 1000)
    cli.commit(group, topic, {0: 1})
    expected = {"topic": topic, "partition": 0, "committed": 1, "start": 0, "end": 3, "lag": 2, "member": None}
    (shown,) = cli.json("groups", "lag", group)["groups"]
    (offset,) = shown["offsets"]
    age = offset.pop("lag_seconds")
    assert AGE_S <= age < AGE_S + PATIENCE_S
    assert shown == {"group": group, "partitions": 1, "lag": 2, "lag_seconds": age, "offsets": [expected]}
    heading, line = cli("groups", "lag", group).lines
    assert heading.split() == ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS", "MEMBER"]
    cells = line.split()
    assert (cells[:6], cells[7]) == ([group, topic, "0", "1", "3", "2"], "-")
    assert AGE_S <= float(cells[6]) < AGE_S + PATIENCE_S
    assert cli("groups", "lag", group, "--total").lines[1].split()[:3] == [group, "1", "2"]
    assert group in {each["group"] for each in cli.json("groups", "lag")["groups"]}
    (look,) = cli.json_lines("groups", "watch", group, "--count", "1")
    assert AGE_S <= look["lag_seconds"] < AGE_S + PATIENCE_S


def test_the_seconds_of_what_is_read_deleted_or_unknown(cli: Rota, topic: str, group: str) -> None:
    """Partition 0 is read, of 1 the oldest unread record was deleted, for 2 nothing is known: the log was shortened."""
    cli.create(topic, 3)
    now_ms = int(time.time() * 1000)
    for number, age_s in ((0, AGE_S), (1, 2 * AGE_S), (1, AGE_S), (2, AGE_S)):
        cli.produce(topic, [b"v"], partition=number, timestamp=now_ms - age_s * 1000)
    cli.commit(group, topic, {0: 1, 1: 0, 2: 1})
    cli.admin(lambda admin: admin.delete_records({TopicPartition(topic, 1): 1}))
    cli.commit(group, topic, {2: 5})
    ages = [each["lag_seconds"] for each in cli.json("groups", "lag", group)["groups"][0]["offsets"]]
    assert ages[0] == 0
    assert AGE_S <= ages[1] < AGE_S + PATIENCE_S
    assert ages[2] is None


def test_a_group_is_deleted(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic)
    cli.commit(group, topic, {0: 0})
    assert cli.json("groups", "delete", group) == {"deleted": [group]}
    assert group not in {each["group"] for each in cli.json("groups", "list")["groups"]}


def test_a_group_that_does_not_exist_is_refused(cli: Rota, group: str) -> None:
    for subcommand in ("describe", "lag", "delete"):
        refused = cli.fails("groups", subcommand, group)
        assert refused.code == 1
        assert "GROUP_ID_NOT_FOUND" in refused.err
        assert group in refused.err
        assert "`rota groups list`" in refused.err


def test_members_are_removed(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic)
    with cli.member(group, topic):
        ((member,),) = [each["members"] for each in cli.json("groups", "describe", group)["groups"]]
        assert cli.json("groups", "remove-members", group, "--all") == {
            "group": group,
            "removed": [member["member_id"]],
        }


def test_a_hostile_name_of_a_group_cannot_control_the_terminal(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic)
    hostile = f"\x1b]0;owned\x07{group}"
    cli.commit(hostile, topic, {0: 0})
    printed = cli("groups", "list")
    assert "\x1b" not in printed.out
    assert f"\\x1b]0;owned\\x07{group}" in printed.out
    assert hostile in {each["group"] for each in cli.json("groups", "list")["groups"]}
    cli.json("groups", "delete", hostile)

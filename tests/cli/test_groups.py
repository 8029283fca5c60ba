"""`rota groups` on both brokers: list, describe, lag, delete, remove-members."""

from __future__ import annotations

from tests.cli.kit import Rota


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
    cli.produce(topic, [b"1", b"2", b"3"])
    cli.commit(group, topic, {0: 1})
    expected = {"topic": topic, "partition": 0, "committed": 1, "start": 0, "end": 3, "lag": 2, "member": None}
    assert cli.json("groups", "lag", group) == {
        "groups": [{"group": group, "partitions": 1, "lag": 2, "offsets": [expected]}]
    }
    heading, line = cli("groups", "lag", group).lines
    assert heading.split() == ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"]
    assert line.split() == [group, topic, "0", "1", "3", "2", "-"]
    assert cli("groups", "lag", group, "--total").lines[1].split() == [group, "1", "2"]
    assert group in {each["group"] for each in cli.json("groups", "lag")["groups"]}


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

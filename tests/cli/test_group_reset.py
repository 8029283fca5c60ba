"""`rota groups reset` on both brokers."""

from __future__ import annotations

import pytest
from tests.cli.kit import Rota

SECOND = 1_700_000_000_000


@pytest.fixture
def filled(cli: Rota, topic: str, group: str) -> str:
    """A topic of two partitions, with four records at four seconds in the first, and offset 2 committed."""
    cli.create(topic, 2)
    for number in range(4):
        cli.produce(topic, [b"x"], timestamp=SECOND + 1000 * number)
    cli.commit(group, topic, {0: 2})
    return topic


def committed(cli: Rota, group: str) -> dict[int, int]:
    (lag,) = cli.json("groups", "lag", group)["groups"]
    return {each["partition"]: each["committed"] for each in lag["offsets"]}


def test_without_execute_it_is_a_preview(cli: Rota, filled: str, group: str) -> None:
    expected = {"topic": filled, "partition": 0, "committed": 2, "new": 0, "difference": -2}
    assert cli.json("groups", "reset", group, "--to-earliest") == {
        "group": group,
        "executed": False,
        "offsets": [expected],
    }
    assert cli("groups", "reset", group, "--to-earliest").lines[0].startswith("preview, nothing was changed")
    assert committed(cli, group) == {0: 2}


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 4),
        (("--to-offset", "3"), 3),
        (("--to-offset", "99"), 4),
        (("--shift-by", "-1"), 1),
        (("--shift-by=1",), 3),
        (("--to-datetime", str(SECOND + 1000)), 1),
        (("--to-datetime", "2023-11-14T22:13:23Z"), 3),
        (("--by-duration", "PT1S"), 4),
        (("--by-duration", "P36500D"), 0),
    ],
)
def test_each_target_sets_the_offset(cli: Rota, filled: str, group: str, target: tuple[str, ...], offset: int) -> None:
    done = cli.json("groups", "reset", group, *target, "--execute")
    assert [each["new"] for each in done["offsets"]] == [offset]
    assert committed(cli, group) == {0: offset}


def test_partitions_are_named(cli: Rota, filled: str, group: str) -> None:
    done = cli.json("groups", "reset", group, "--to-latest", "--topic", f"{filled}:1", "--execute")
    assert done["offsets"] == [{"topic": filled, "partition": 1, "committed": None, "new": 0, "difference": None}]
    assert committed(cli, group) == {0: 2, 1: 0}


def test_a_group_with_members_is_refused_with_their_names(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic)
    with cli.member(group, topic):
        refused = cli.fails("groups", "reset", group, "--to-earliest", "--topic", topic, "--execute")
        assert refused.code == 1
        assert "NON_EMPTY_GROUP" in refused.err


def test_a_duration_that_is_none_is_refused(cli: Rota, group: str) -> None:
    refused = cli.fails("groups", "reset", group, "--by-duration", "1h")
    assert refused.code == 2
    assert "PT1H30M" in refused.err

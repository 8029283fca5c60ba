"""R3: the first algorithm, word for word."""

from __future__ import annotations

import pytest
from tests.property.assignor_world import infos, named

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.original import OriginalAssignor
from rota.client.group.assignors.strategies import resolve

T = MemberSubscription(("t",))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (10, ["t:0 t:1 t:2 t:3", "t:4 t:5 t:6 t:7", "t:8 t:9"]),
        (4, ["t:0 t:1", "t:2 t:3", ""]),
        (3, ["t:0", "t:1", "t:2"]),
        (0, ["", "", ""]),
    ],
)
def test_r3(count: int, expected: list[str]) -> None:
    made = OriginalAssignor().assign(infos({"t": count}), dict.fromkeys("abc", T)).partitions
    assert [named(mine) for mine in made.values()] == expected


def test_it_is_used_by_giving_an_instance() -> None:
    assert [assignor.name for assignor in resolve([OriginalAssignor()])] == ["original"]

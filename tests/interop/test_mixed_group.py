"""One group of all three clients: each client leads the group once and reads the subscriptions of the others."""

from __future__ import annotations

import itertools

import pytest
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import create_topic, produce, until
from tests.interop.layouts import until_sizes


@pytest.mark.parametrize("order", list(itertools.permutations(CLIENTS)), ids="-".join)
def test_three_clients_share_a_group(bootstrap: str, join: Join, group: str, order: tuple[str, ...]) -> None:
    """The first of `order` leads; when it closes, another must take over."""
    topic = create_topic(bootstrap, 6)
    members = []
    for number, client in enumerate(order, start=1):
        members.append(join(client, group=group, topics=[topic], auto_commit=True))
        until_sizes(members, *[6 // number] * number)
    produce(bootstrap, topic, [b"%d" % number for number in range(60)])
    until(lambda: [len(member.values) for member in members] == [20, 20, 20], "20 records each")
    leader = members.pop(0)
    leader.close()
    until_sizes(members, 3, 3)
    produce(bootstrap, topic, [b"%d" % number for number in range(60, 120)])
    until(lambda: [len(member.values) for member in members] == [50, 50], "30 more each")
    read = [value for member in [leader, *members] for value in member.values]
    assert sorted(read) == sorted(b"%d" % number for number in range(120))

from __future__ import annotations

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_user_scram_credentials import describe_user_scram_credentials
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.security.scram_credentials import create_bootstrap_users
from rota.protocol.compiler import codec
from rota.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from rota.protocol.varint import TEXT_BYTES_MAX


def describe(*names: str) -> list[tuple[str, int, list[tuple[int, int]]]]:
    world = World()
    eager_tasks.run_eagerly(create_bootstrap_users(world.node.topics, "bob=planted,alice=planted"))
    users = tuple(UserName(name=name) for name in names) or None
    reply = world.serve(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=users), 0)
    return [
        (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in reply.results
    ]


BOTH = [(1, 4096), (2, 4096)]


def test_all_users_are_described() -> None:
    assert describe() == [("alice", 0, BOTH), ("bob", 0, BOTH)]


def test_named_users_are_described_and_an_unknown_or_repeated_one_refused() -> None:
    assert describe("bob", "nobody", "alice", "alice") == [("bob", 0, BOTH), ("nobody", 91, []), ("alice", 92, [])]


def test_messages_without_an_error_are_empty_as_those_of_a_kafka_4_3_1() -> None:
    world = World()
    eager_tasks.run_eagerly(create_bootstrap_users(world.node.topics, "bob=planted"))
    reply = world.serve(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=None), 0)
    assert (reply.error_message, [each.error_message for each in reply.results]) == ("", [""])


def test_a_message_that_quotes_a_long_name_can_be_sent() -> None:
    """P1. A name may be as long as a text of the protocol; a message with it would be longer."""
    user = "y" * TEXT_BYTES_MAX
    for users in ((UserName(name=user),), (UserName(name=user), UserName(name=user))):
        reply = World().serve(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=users), 0)
        encoded = codec(DescribeUserScramCredentialsResponse, 0).encode(reply)
        assert codec(DescribeUserScramCredentialsResponse, 0).decode(encoded, 0)[0].results == reply.results

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.network.error_actions import TABLE, ErrorAction, error_action
from rota.client.network.error_actions_page import page
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS, snake_case

ROOT = Path(__file__).parents[4]
KEYS = {api.name: api.key for api in APIS.values()}


def requests_of_the_client() -> set[str]:
    """The APIs whose requests the client's source imports."""
    found = set()
    for path in (ROOT / "client").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rota.protocol.messages."):
                found |= {name.name.removesuffix("Request") for name in node.names if name.name.endswith("Request")}
    return found & set(KEYS)


def test_every_api_of_the_client_is_in_the_table() -> None:
    requests = requests_of_the_client()
    assert {"Fetch", "Produce", "JoinGroup"} <= requests
    assert {KEYS[name] for name in requests} <= set(TABLE)


def test_the_page_is_fresh() -> None:
    """`make docs` writes it."""
    assert (ROOT / "docs" / "CLIENT_ERRORS.md").read_text() == "\n".join(page()) + "\n"


@given(api=st.integers(-1, 80), code=st.integers(-10, 200))
def test_every_code_has_an_action(api: int, code: int) -> None:
    found = error_action(api, code)
    assert (found is ErrorAction.OK) == (code == 0)
    if code != 0 and ErrorCode.of(code) not in TABLE.get(api, {}):
        assert found is (ErrorAction.RETRY if ErrorCode.of(code).retriable else ErrorAction.FATAL)


def test_nothing_but_no_error_is_fine() -> None:
    assert ErrorAction.OK not in {found for rules in TABLE.values() for found in rules.values()}


@pytest.mark.parametrize(
    ("api", "code", "expected"),
    [
        ("Produce", "NOT_LEADER_OR_FOLLOWER", ErrorAction.REFRESH),
        ("Produce", "NOT_ENOUGH_REPLICAS", ErrorAction.RETRY),
        ("Produce", "MESSAGE_TOO_LARGE", ErrorAction.FATAL),
        ("Produce", "CORRUPT_MESSAGE", ErrorAction.RETRY),
        ("Fetch", "CORRUPT_MESSAGE", ErrorAction.FATAL),
        ("Fetch", "OFFSET_OUT_OF_RANGE", ErrorAction.RESET),
        ("Fetch", "UNKNOWN_LEADER_EPOCH", ErrorAction.RETRY),
        ("ListOffsets", "UNKNOWN_LEADER_EPOCH", ErrorAction.REFRESH),
        ("DeleteRecords", "OFFSET_OUT_OF_RANGE", ErrorAction.FATAL),
        ("OffsetCommit", "REQUEST_TIMED_OUT", ErrorAction.REDISCOVER),
        ("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", ErrorAction.RETRY),
        ("OffsetFetch", "UNKNOWN_TOPIC_OR_PARTITION", ErrorAction.FATAL),
        ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", ErrorAction.RETRY),
        ("OffsetCommit", "REBALANCE_IN_PROGRESS", ErrorAction.REJOIN),
        ("Heartbeat", "FENCED_INSTANCE_ID", ErrorAction.FATAL),
        ("Heartbeat", "NOT_COORDINATOR", ErrorAction.REDISCOVER),
        ("LeaveGroup", "UNKNOWN_MEMBER_ID", ErrorAction.FATAL),
        ("JoinGroup", "MEMBER_ID_REQUIRED", ErrorAction.REJOIN),
        ("JoinGroup", "GROUP_MAX_SIZE_REACHED", ErrorAction.FATAL),
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", ErrorAction.RETRY),
        ("CreateTopics", "NOT_CONTROLLER", ErrorAction.REFRESH),
        ("CreateTopics", "THROTTLING_QUOTA_EXCEEDED", ErrorAction.RETRY),
        ("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION", ErrorAction.FATAL),
        ("ElectLeaders", "ELECTION_NOT_NEEDED", ErrorAction.FATAL),
    ],
)
def test_error_actions_equal_those_of_the_java_client(api: str, code: str, expected: ErrorAction) -> None:
    assert error_action(KEYS[api], ErrorCode[code]) is expected


def test_the_page_names_every_api_and_code() -> None:
    lines = list(page())
    assert [line[3:] for line in lines if line.startswith("## ")] == [APIS[key].name for key in sorted(TABLE)]
    rows = [line for line in lines if line.startswith("| ") and line.count("|") == 5]
    assert len(rows) == sum(map(len, TABLE.values())) + len(TABLE), "one for each code, and the heads"
    assert snake_case("FindCoordinator") == "find_coordinator"

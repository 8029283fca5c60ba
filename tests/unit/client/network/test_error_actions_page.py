import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.network.error_actions_page import TABLE, Verdict, page, verdict
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS, snake_case

ROOT = Path(__file__).parents[4]
KEYS = {api.name: api.key for api in APIS.values()}


def asked_by_the_client() -> set[str]:
    """The APIs whose requests the client's source imports."""
    found = set()
    for path in (ROOT / "client").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rota.protocol.messages."):
                found |= {name.name.removesuffix("Request") for name in node.names if name.name.endswith("Request")}
    return found & set(KEYS)


def test_every_api_of_the_client_is_in_the_table() -> None:
    asked = asked_by_the_client()
    assert {"Fetch", "Produce", "JoinGroup"} <= asked
    assert {KEYS[name] for name in asked} <= set(TABLE)


def test_the_page_is_fresh() -> None:
    """`make docs` writes it."""
    assert (ROOT / "docs" / "CLIENT_ERRORS.md").read_text() == "\n".join(page()) + "\n"


@given(api=st.integers(-1, 80), code=st.integers(-10, 200))
def test_every_code_has_a_verdict(api: int, code: int) -> None:
    found = verdict(api, code)
    assert (found is Verdict.OK) == (code == 0)
    if code != 0 and ErrorCode.of(code) not in TABLE.get(api, {}):
        assert found is (Verdict.RETRY if ErrorCode.of(code).retriable else Verdict.FATAL)


def test_nothing_but_no_error_is_fine() -> None:
    assert Verdict.OK not in {found for rules in TABLE.values() for found in rules.values()}


@pytest.mark.parametrize(
    ("api", "code", "expected"),
    [
        ("Produce", "NOT_LEADER_OR_FOLLOWER", Verdict.REFRESH),
        ("Produce", "NOT_ENOUGH_REPLICAS", Verdict.RETRY),
        ("Produce", "MESSAGE_TOO_LARGE", Verdict.FATAL),
        ("Produce", "CORRUPT_MESSAGE", Verdict.RETRY),
        ("Fetch", "CORRUPT_MESSAGE", Verdict.FATAL),
        ("Fetch", "OFFSET_OUT_OF_RANGE", Verdict.RESET),
        ("Fetch", "UNKNOWN_LEADER_EPOCH", Verdict.RETRY),
        ("ListOffsets", "UNKNOWN_LEADER_EPOCH", Verdict.REFRESH),
        ("DeleteRecords", "OFFSET_OUT_OF_RANGE", Verdict.FATAL),
        ("OffsetCommit", "REQUEST_TIMED_OUT", Verdict.REDISCOVER),
        ("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", Verdict.RETRY),
        ("OffsetFetch", "UNKNOWN_TOPIC_OR_PARTITION", Verdict.FATAL),
        ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", Verdict.RETRY),
        ("OffsetCommit", "REBALANCE_IN_PROGRESS", Verdict.REJOIN),
        ("Heartbeat", "FENCED_INSTANCE_ID", Verdict.FATAL),
        ("Heartbeat", "NOT_COORDINATOR", Verdict.REDISCOVER),
        ("LeaveGroup", "UNKNOWN_MEMBER_ID", Verdict.FATAL),
        ("JoinGroup", "MEMBER_ID_REQUIRED", Verdict.REJOIN),
        ("JoinGroup", "GROUP_MAX_SIZE_REACHED", Verdict.FATAL),
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", Verdict.RETRY),
        ("CreateTopics", "NOT_CONTROLLER", Verdict.REFRESH),
        ("CreateTopics", "THROTTLING_QUOTA_EXCEEDED", Verdict.RETRY),
        ("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION", Verdict.FATAL),
        ("ElectLeaders", "ELECTION_NOT_NEEDED", Verdict.FATAL),
    ],
)
def test_what_stands_in_javas_client_stands_here(api: str, code: str, expected: Verdict) -> None:
    assert verdict(KEYS[api], ErrorCode[code]) is expected


def test_the_page_names_every_api_and_code() -> None:
    lines = list(page())
    assert [line[3:] for line in lines if line.startswith("## ")] == [APIS[key].name for key in sorted(TABLE)]
    rows = [line for line in lines if line.startswith("| ") and line.count("|") == 5]
    assert len(rows) == sum(map(len, TABLE.values())) + len(TABLE), "one for each code, and the heads"
    assert snake_case("FindCoordinator") == "find_coordinator"

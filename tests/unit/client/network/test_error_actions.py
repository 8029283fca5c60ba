import pytest

from rota.client.network.error_actions import ACTIONS, TABLE, CodesByAction, ErrorAction
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS

GROUPS = [(name, group) for name, groups in ACTIONS.items() for group in groups]


def test_every_api_is_one_that_can_be_asked() -> None:
    assert set(ACTIONS) <= {api.name for api in APIS.values()}


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_a_code_stands_once_in_a_group(name: str, group: CodesByAction) -> None:
    codes = [code for several in group.values() for code in several]
    assert len(codes) == len(set(codes))
    assert ErrorCode.NONE not in codes


def test_what_a_member_is_told_is_for_members() -> None:
    """REJOIN and RESET mean something for a member and a position alone."""
    rejoin = {name for name, groups in ACTIONS.items() if any(group.get(ErrorAction.REJOIN) for group in groups)}
    assert rejoin == {"OffsetCommit", "OffsetFetch", "JoinGroup", "Heartbeat", "SyncGroup"}
    assert {name for name, groups in ACTIONS.items() if any(group.get(ErrorAction.RESET) for group in groups)} == {
        "Fetch"
    }


def test_nothing_that_kafka_calls_retriable_is_fatal_but_what_java_calls_so() -> None:
    fatal = {
        (APIS[key].name, code.name)
        for key, rules in TABLE.items()
        for code, found in rules.items()
        if found is ErrorAction.FATAL and code.retriable
    }
    assert fatal == {
        ("Fetch", "CORRUPT_MESSAGE"),
        ("OffsetFetch", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("OffsetDelete", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("DeleteTopics", "UNKNOWN_TOPIC_ID"),
        ("CreatePartitions", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("ElectLeaders", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("ElectLeaders", "ELECTION_NOT_NEEDED"),
        ("ElectLeaders", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("ElectLeaders", "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        ("DescribeConfigs", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("AlterConfigs", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("IncrementalAlterConfigs", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("DescribeLogDirs", "KAFKA_STORAGE_ERROR"),
    }

import pytest

from rota.client.network.error_actions import ACTIONS, TABLE, CodesByAction, ErrorAction
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS

GROUPS = [(name, group) for name, groups in ACTIONS.items() for group in groups]


def test_every_api_of_the_table_exists() -> None:
    assert set(ACTIONS) <= {api.name for api in APIS.values()}


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_an_error_code_has_one_action_per_group(name: str, group: CodesByAction) -> None:
    codes = [code for several in group.values() for code in several]
    assert len(codes) == len(set(codes))
    assert ErrorCode.NONE not in codes


def test_rejoin_and_reset_belong_to_group_and_fetch_apis() -> None:
    """REJOIN and RESET mean something for a member and a position alone."""
    rejoin = {name for name, groups in ACTIONS.items() if any(group.get(ErrorAction.REJOIN) for group in groups)}
    assert rejoin == {
        "ConsumerGroupHeartbeat",
        "OffsetCommit",
        "OffsetFetch",
        "JoinGroup",
        "Heartbeat",
        "SyncGroup",
    }
    assert {name for name, groups in ACTIONS.items() if any(group.get(ErrorAction.RESET) for group in groups)} == {
        "Fetch"
    }


def test_retriable_codes_are_fatal_only_where_the_java_client_treats_them_so() -> None:
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

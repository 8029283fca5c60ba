from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.throttled_replicas import NAMES, check_throttled_replicas, is_listed
from rota.coordinator.config.topic import TopicConfig


@pytest.mark.parametrize("text", ["", "*", "0:1", "0:1,1:2", " 0:1 , 1:2 ", "*,0:1"])
def test_lists_of_replicas_are_accepted(text: str) -> None:
    check_throttled_replicas(NAMES[0], text)


@pytest.mark.parametrize("text", ["0", "0:1,x", "0:1:2", "a:1", "0-1", "0:1,*", "none"])
def test_anything_else_is_refused_in_kafkas_words(text: str) -> None:
    for name in NAMES:
        with pytest.raises(ConfigRefused, match=r"must be the literal '\*' or a list of replicas"):
            TopicConfig({name: text}, BrokerConfig())


def test_a_replica_is_a_partition_and_a_broker() -> None:
    assert [is_listed("0:1,2:3", *each) for each in ((0, 1), (2, 3), (0, 3), (2, 1), (3, 2))] == [True, True] + [
        False
    ] * 3
    assert is_listed("*", 7, 7)
    assert not is_listed("", 0, 1)

"""What a member says of itself, taken in: records, epochs, topics."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.mixed_talk import MixedTalk
from tests.unit.coordinator.consumer_group.talk import Talk


def test_a_member_that_says_the_same_again_writes_nothing() -> None:
    talk = Talk()
    talk.join("a", "t")
    before = len(talk.log)
    talk.beat("a", 2, names=("t",))
    assert len(talk.log) == before


def test_new_names_bump_the_epoch_in_either_protocol() -> None:
    talk = MixedTalk()
    talk.topics.set("u", 1)
    talk.join("a", "t")
    talk.c_join("", fresh="c1")
    assert talk.group.epoch == 3
    talk.beat("a", 2, names=("t", "u"))
    assert talk.group.epoch == 4
    talk.c_join("c1", "t", "u")
    assert talk.group.epoch == 5
    assert talk.noted("Preparing to rebalance group")[-1]["reason"] == "Member c1 updated its subscription."


def test_a_classic_join_sees_that_topics_changed() -> None:
    talk = MixedTalk()
    talk.join("a", "t")
    talk.c_join("", fresh="c1")
    talk.topics.set("t", 6)
    answer = talk.c_join("c1")
    assert answer is not None
    assert (talk.group.epoch, answer.generation) == (4, 4)
    assert sum(len(talk.target(name)["t"]) for name in ("a", "c1")) == 6


def test_a_classic_join_lets_no_expression_be_resolved() -> None:
    """It has no client of which the topics that it may see are known."""
    talk = MixedTalk()
    talk.join("b", "t")
    talk.beat("a", 0, regex="t.*", owned={}, rebalance_ms=60_000)
    talk.advance(0)
    talk.advance(20_000)
    talk.topics.set("tt", 1)
    talk.c_join("", fresh="c1")
    assert "regex" not in talk.timers
    talk.beat("b", 2)
    assert "regex" in talk.timers

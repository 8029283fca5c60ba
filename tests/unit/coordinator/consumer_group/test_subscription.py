"""What a member says of itself, taken in: records, epochs, topics."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.mixed_script import MixedScript
from tests.unit.coordinator.consumer_group.script import Script


def test_a_member_that_says_the_same_again_writes_nothing() -> None:
    script = Script()
    script.join("a", "t")
    before = len(script.log)
    script.beat("a", 2, names=("t",))
    assert len(script.log) == before


def test_new_names_bump_the_epoch_in_either_protocol() -> None:
    script = MixedScript()
    script.topics.set("u", 1)
    script.join("a", "t")
    script.c_join("", fresh="c1")
    assert script.group.epoch == 3
    script.beat("a", 2, names=("t", "u"))
    assert script.group.epoch == 4
    script.c_join("c1", "t", "u")
    assert script.group.epoch == 5
    assert script.noted("Preparing to rebalance group")[-1]["reason"] == "Member c1 updated its subscription."


def test_a_classic_join_sees_that_topics_changed() -> None:
    script = MixedScript()
    script.join("a", "t")
    script.c_join("", fresh="c1")
    script.topics.set("t", 6)
    answer = script.c_join("c1")
    assert answer is not None
    assert (script.group.epoch, answer.generation) == (4, 4)
    assert sum(len(script.target(name)["t"]) for name in ("a", "c1")) == 6


def test_a_classic_join_lets_no_expression_be_resolved() -> None:
    """It has no client of which the topics that it may see are known."""
    script = MixedScript()
    script.join("b", "t")
    script.beat("a", 0, regex="t.*", owned={}, rebalance_ms=60_000)
    script.advance(0)
    script.advance(20_000)
    script.topics.set("tt", 1)
    script.c_join("", fresh="c1")
    assert "regex" not in script.timers
    script.beat("b", 2)
    assert "regex" in script.timers

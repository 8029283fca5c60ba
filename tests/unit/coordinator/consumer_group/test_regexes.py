"""Members that subscribe by a regular expression."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import Script, TopicsInMemory, durable, named

from rota.coordinator.consumer_group.notes import TOO_EXPENSIVE, TOO_MANY_TOPICS
from rota.coordinator.consumer_group.regexes import REFRESH_MS_MIN, RESOLVE
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.group.events import TimerFired
from rota.protocol.errors import ErrorCode

LABORIOUS = "(a|b)*a(a|b){90}"  # its states at a character are those of the 90 before


def ab_names() -> list[str]:
    """Names in which states do not repeat."""
    return [f"{pow(3, 150 + n):b}".replace("0", "a").replace("1", "b") for n in range(8)]


def script_with_topics() -> Script:
    return Script(TopicsInMemory(foo1=1, foo2=1, bar=1))


def join(script: Script, member: str, regex: str, **more: object) -> object:
    return script.heartbeat(member, 0, regex=regex, owned={}, rebalance_ms=60_000, **more)  # type: ignore[arg-type]


def test_a_new_expression_is_resolved_after_the_answer() -> None:
    script = script_with_topics()
    reply = script.heartbeat("a", 0, regex="foo.*", owned={}, rebalance_ms=60_000)
    assert (reply.member_epoch, named(reply)) == (1, {})
    before = len(script.log)
    script.advance(0)
    assert [kind for kind, _ in script.records(before)] == ["RegularExpressionKey", "EpochKey"]
    again = script.heartbeat("a", 1)
    assert (again.member_epoch, named(again)) == (2, {"foo1": {0}, "foo2": {0}})
    for compacted in (False, True):
        assert durable(script.restarted(compacted=compacted).hosted) == durable(script.hosted)


def test_a_second_member_takes_the_resolved_expression() -> None:
    script = script_with_topics()
    join(script, "a", "foo.*")
    script.advance(0)
    script.heartbeat("a", 1)
    reply = script.heartbeat("b", 0, regex="foo.*", owned={}, rebalance_ms=60_000)
    assert (reply.member_epoch, script.group.epoch) == (3, 3)
    assert script.target("b") == {"foo2": {0}}


def test_an_invalid_expression_is_refused() -> None:
    script = script_with_topics()
    script.join("a", "bar")
    before = len(script.log)
    reply = script.heartbeat("a", 2, regex="foo(")
    assert reply.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(script.log) == before


def test_an_expression_that_is_cleared_is_forgotten() -> None:
    script = script_with_topics()
    join(script, "a", "foo.*")
    script.advance(0)
    script.heartbeat("a", 1)
    reply = script.heartbeat("a", 2, regex="")
    assert named(reply) == {}
    assert script.group.epoch == 3
    assert not script.group.regexes
    assert script.heartbeat("a", 2, owned={}).member_epoch == 3


def test_an_expression_goes_with_its_last_member() -> None:
    script = script_with_topics()
    join(script, "a", "foo.*")
    join(script, "b", "foo.*")
    script.advance(0)
    script.leave("a")
    assert script.group.regexes
    before = len(script.log)
    script.leave("b")
    assert "RegularExpressionKey" in [kind for kind, value in script.records(before) if value is None]
    assert not script.group.regexes


def test_a_topic_that_is_created_later_is_found_after_ten_seconds() -> None:
    script = script_with_topics()
    join(script, "a", "foo.*")
    script.advance(0)
    script.heartbeat("a", 1)
    script.topics.set("foo3", 1)
    script.advance(REFRESH_MS_MIN)
    script.heartbeat("a", 2)
    script.advance(0)
    assert script.group.regexes["foo.*"].topics == {"foo1", "foo2"}
    script.advance(1)
    script.heartbeat("a", 2)
    script.advance(0)
    assert script.group.regexes["foo.*"].topics == {"foo1", "foo2", "foo3"}
    assert named(script.heartbeat("a", 2)) == {"foo1": {0}, "foo2": {0}, "foo3": {0}}


def test_expressions_are_resolved_again_after_the_refresh_interval_alone() -> None:
    script = script_with_topics()
    join(script, "a", "foo.*")
    script.advance(0)
    script.heartbeat("a", 1)
    before = len(script.log)
    script.advance(20_000)
    script.heartbeat("a", 2)
    script.advance(0)
    assert len(script.log) == before


def test_an_expression_updated_before_it_was_resolved() -> None:
    script = script_with_topics()
    join(script, "a", "foo.*")
    script.heartbeat("a", 1, regex="bar.*")
    script.advance(0)
    assert set(script.group.regexes) == {"bar.*"}
    assert named(script.heartbeat("a", 1)) == {"bar": {0}}


def test_a_topic_that_the_client_may_not_describe_does_not_match() -> None:
    script = script_with_topics()
    join(script, "a", ".*", can_describe=lambda topic: topic == "bar")
    script.advance(0)
    assert script.group.regexes[".*"].topics == {"bar"}


def test_names_and_an_expression_add_up() -> None:
    script = script_with_topics()
    script.heartbeat("a", 0, names=("bar",), regex="foo.*", owned={}, rebalance_ms=60_000)
    script.advance(0)
    assert named(script.heartbeat("a", 2)) == {"bar": {0}, "foo1": {0}, "foo2": {0}}
    assert not script.group.is_homogeneous


def test_a_resolution_of_much_work_is_done_in_slices() -> None:
    """RX3. Other groups are served between two slices; a heartbeat does not begin a second resolution."""
    names = ab_names()
    script = Script(TopicsInMemory(**dict.fromkeys(names, 1)))
    join(script, "a", LABORIOUS)
    join(script, "b", "b.*")
    assert fire_until_resolved(script) > 1
    assert script.group.regexes[LABORIOUS].topics == {name for name in names if name[-91] == "a"}
    assert script.group.regexes["b.*"].topics == set(names)


def test_an_expression_that_its_members_left_meanwhile_is_not_written() -> None:
    script = Script(TopicsInMemory(**dict.fromkeys(ab_names(), 1)))
    join(script, "a", LABORIOUS)
    join(script, "b", "b.*")
    fire(script)
    assert script.group.resolution is not None
    script.heartbeat("a", -1)
    fire_until_resolved(script)
    assert set(script.group.regexes) == {"b.*"}


def test_an_expression_that_takes_too_much_work_matches_no_topic() -> None:
    """RX3. It is not tried again before the refresh interval is over."""
    script = Script(TopicsInMemory(**{"a" * 200: 1, "a": 1}))
    join(script, "a", "(.?){1000}")
    script.advance(0)
    assert script.group.regexes["(.?){1000}"].topics == frozenset()
    assert [fields["expression"] for fields in script.noted(TOO_EXPENSIVE)] == ["(.?){1000}"]
    script.advance(REFRESH_MS_MIN + 1)
    script.heartbeat("a", 1)
    assert RESOLVE not in script.timers


def test_an_expression_with_more_topics_than_a_record_takes_has_none() -> None:
    """CO3."""
    topics = TopicsInMemory(**{f"topic-{n}": 1 for n in range(100)})
    script = Script(topics, ConsumerGroupSettings(assignment_interval_ms=0, record_bytes_max=500))
    join(script, "a", "topic-.*")
    script.advance(0)
    assert script.group.regexes["topic-.*"].topics == frozenset()
    assert script.noted(TOO_MANY_TOPICS)


def fire(script: Script) -> None:
    """Let the timer of the resolution fire once."""
    del script.timers[RESOLVE]
    script.perform(script.hosted.step(TimerFired(RESOLVE), script.now_ms, script.wall_ms))


def fire_until_resolved(script: Script) -> int:
    count = 0
    while RESOLVE in script.timers:
        fire(script)
        count += 1
        script.heartbeat("b", 1)
    return count

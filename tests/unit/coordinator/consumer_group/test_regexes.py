"""Members that subscribe by a regular expression."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.talk import Talk, TopicsInMemory, durable, named

from rota.coordinator.consumer_group.notes import TOO_EXPENSIVE, TOO_MANY_TOPICS
from rota.coordinator.consumer_group.regexes import REFRESH_MS_MIN, RESOLVE
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.group.events import TimerFired
from rota.protocol.errors import ErrorCode

LABORIOUS = "(a|b)*a(a|b){90}"  # its states at a character are those of the 90 before


def ab_names() -> list[str]:
    """Names in which states do not repeat."""
    return [f"{pow(3, 150 + n):b}".replace("0", "a").replace("1", "b") for n in range(8)]


def talk_with_topics() -> Talk:
    return Talk(TopicsInMemory(foo1=1, foo2=1, bar=1))


def join(talk: Talk, member: str, regex: str, **more: object) -> object:
    return talk.beat(member, 0, regex=regex, owned={}, rebalance_ms=60_000, **more)  # type: ignore[arg-type]


def test_a_new_expression_is_resolved_after_the_answer() -> None:
    talk = talk_with_topics()
    reply = talk.beat("a", 0, regex="foo.*", owned={}, rebalance_ms=60_000)
    assert (reply.member_epoch, named(reply)) == (1, {})
    before = len(talk.log)
    talk.advance(0)
    assert [kind for kind, _ in talk.records(before)] == ["RegularExpressionKey", "EpochKey"]
    again = talk.beat("a", 1)
    assert (again.member_epoch, named(again)) == (2, {"foo1": {0}, "foo2": {0}})
    for compacted in (False, True):
        assert durable(talk.restarted(compacted=compacted).hosted) == durable(talk.hosted)


def test_a_second_member_takes_the_resolved_expression() -> None:
    talk = talk_with_topics()
    join(talk, "a", "foo.*")
    talk.advance(0)
    talk.beat("a", 1)
    reply = talk.beat("b", 0, regex="foo.*", owned={}, rebalance_ms=60_000)
    assert (reply.member_epoch, talk.group.epoch) == (3, 3)
    assert talk.target("b") == {"foo2": {0}}


def test_an_invalid_expression_is_refused() -> None:
    talk = talk_with_topics()
    talk.join("a", "bar")
    before = len(talk.log)
    reply = talk.beat("a", 2, regex="foo(")
    assert reply.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(talk.log) == before


def test_an_expression_that_is_cleared_is_forgotten() -> None:
    talk = talk_with_topics()
    join(talk, "a", "foo.*")
    talk.advance(0)
    talk.beat("a", 1)
    reply = talk.beat("a", 2, regex="")
    assert named(reply) == {}
    assert talk.group.epoch == 3
    assert not talk.group.regexes
    assert talk.beat("a", 2, owned={}).member_epoch == 3


def test_an_expression_goes_with_its_last_member() -> None:
    talk = talk_with_topics()
    join(talk, "a", "foo.*")
    join(talk, "b", "foo.*")
    talk.advance(0)
    talk.leave("a")
    assert talk.group.regexes
    before = len(talk.log)
    talk.leave("b")
    assert "RegularExpressionKey" in [kind for kind, value in talk.records(before) if value is None]
    assert not talk.group.regexes


def test_a_topic_that_is_created_later_is_found_after_ten_seconds() -> None:
    talk = talk_with_topics()
    join(talk, "a", "foo.*")
    talk.advance(0)
    talk.beat("a", 1)
    talk.topics.set("foo3", 1)
    talk.advance(REFRESH_MS_MIN)
    talk.beat("a", 2)
    talk.advance(0)
    assert talk.group.regexes["foo.*"].topics == {"foo1", "foo2"}
    talk.advance(1)
    talk.beat("a", 2)
    talk.advance(0)
    assert talk.group.regexes["foo.*"].topics == {"foo1", "foo2", "foo3"}
    assert named(talk.beat("a", 2)) == {"foo1": {0}, "foo2": {0}, "foo3": {0}}


def test_expressions_are_resolved_again_after_the_refresh_interval_alone() -> None:
    talk = talk_with_topics()
    join(talk, "a", "foo.*")
    talk.advance(0)
    talk.beat("a", 1)
    before = len(talk.log)
    talk.advance(20_000)
    talk.beat("a", 2)
    talk.advance(0)
    assert len(talk.log) == before


def test_an_expression_updated_before_it_was_resolved() -> None:
    talk = talk_with_topics()
    join(talk, "a", "foo.*")
    talk.beat("a", 1, regex="bar.*")
    talk.advance(0)
    assert set(talk.group.regexes) == {"bar.*"}
    assert named(talk.beat("a", 1)) == {"bar": {0}}


def test_a_topic_that_the_client_may_not_describe_does_not_match() -> None:
    talk = talk_with_topics()
    join(talk, "a", ".*", describes=lambda topic: topic == "bar")
    talk.advance(0)
    assert talk.group.regexes[".*"].topics == {"bar"}


def test_names_and_an_expression_add_up() -> None:
    talk = talk_with_topics()
    talk.beat("a", 0, names=("bar",), regex="foo.*", owned={}, rebalance_ms=60_000)
    talk.advance(0)
    assert named(talk.beat("a", 2)) == {"bar": {0}, "foo1": {0}, "foo2": {0}}
    assert not talk.group.is_homogeneous


def test_a_resolution_of_much_work_is_done_in_slices() -> None:
    """RX3. Other groups are served between two slices; a heartbeat does not begin a second resolution."""
    names = ab_names()
    talk = Talk(TopicsInMemory(**dict.fromkeys(names, 1)))
    join(talk, "a", LABORIOUS)
    join(talk, "b", "b.*")
    assert fire_until_resolved(talk) > 1
    assert talk.group.regexes[LABORIOUS].topics == {name for name in names if name[-91] == "a"}
    assert talk.group.regexes["b.*"].topics == set(names)


def test_an_expression_that_its_members_left_meanwhile_is_not_written() -> None:
    talk = Talk(TopicsInMemory(**dict.fromkeys(ab_names(), 1)))
    join(talk, "a", LABORIOUS)
    join(talk, "b", "b.*")
    fire(talk)
    assert talk.group.resolution is not None
    talk.beat("a", -1)
    fire_until_resolved(talk)
    assert set(talk.group.regexes) == {"b.*"}


def test_an_expression_that_takes_too_much_work_matches_no_topic() -> None:
    """RX3. It is not tried again before the refresh interval is over."""
    talk = Talk(TopicsInMemory(**{"a" * 200: 1, "a": 1}))
    join(talk, "a", "(.?){1000}")
    talk.advance(0)
    assert talk.group.regexes["(.?){1000}"].topics == frozenset()
    assert [fields["expression"] for fields in talk.noted(TOO_EXPENSIVE)] == ["(.?){1000}"]
    talk.advance(REFRESH_MS_MIN + 1)
    talk.beat("a", 1)
    assert RESOLVE not in talk.timers


def test_an_expression_with_more_topics_than_a_record_takes_has_none() -> None:
    """CO3."""
    topics = TopicsInMemory(**{f"topic-{n}": 1 for n in range(100)})
    talk = Talk(topics, ConsumerGroupSettings(assignment_interval_ms=0, record_bytes_max=500))
    join(talk, "a", "topic-.*")
    talk.advance(0)
    assert talk.group.regexes["topic-.*"].topics == frozenset()
    assert talk.noted(TOO_MANY_TOPICS)


def fire(talk: Talk) -> None:
    """Let the timer of the resolution fire once."""
    del talk.timers[RESOLVE]
    talk.perform(talk.hosted.step(TimerFired(RESOLVE), talk.now_ms, talk.wall_ms))


def fire_until_resolved(talk: Talk) -> int:
    count = 0
    while RESOLVE in talk.timers:
        fire(talk)
        count += 1
        talk.beat("b", 1)
    return count

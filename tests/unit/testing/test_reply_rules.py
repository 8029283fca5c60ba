"""Which requests a fault applies to."""

from __future__ import annotations

import pytest

from rota.testing.reply_rules import RULES_MAX, Action, ReplyRule, ReplyRules


def hits(rules: ReplyRules, count: int) -> list[bool]:
    return [rules.match("Fetch", "app-1") is not None for _ in range(count)]


def test_a_rule_applies_to_its_api_and_client_only() -> None:
    rules = ReplyRules()
    rule = rules.add(ReplyRule(action=Action.DROP, api="Fet*", client_id="app-?", times=None))
    assert rules.match("Produce", "app-1") is None
    assert rules.match("Fetch", "other") is None
    assert rules.match("Fetch", "app-1") is rule
    assert rule.hits == 1


def test_it_ends_after_its_times_and_begins_after_its_skips() -> None:
    rules = ReplyRules()
    rules.add(ReplyRule(action=Action.DROP, times=2, skip=1))
    assert hits(rules, 4) == [False, True, True, False]


def test_the_first_rule_applies_and_the_next_when_it_has_ended() -> None:
    rules = ReplyRules()
    first = rules.add(ReplyRule(action=Action.DROP))
    second = rules.add(ReplyRule(action=Action.DELAY, times=None))
    assert [rules.match("Fetch", ""), rules.match("Fetch", "")] == [first, second]


def test_a_probability_is_reproducible_by_seed() -> None:
    drawn = []
    for seed in (1, 1, 2):
        rules = ReplyRules(seed)
        rules.add(ReplyRule(action=Action.DROP, times=None, probability=0.5))
        drawn.append(hits(rules, 40))
    assert drawn[0] == drawn[1] != drawn[2]
    assert 0 < sum(drawn[0]) < 40


def test_removed_rules_apply_no_more() -> None:
    rules = ReplyRules()
    rule = rules.add(ReplyRule(action=Action.DROP, times=None))
    assert rules.get(rule.rule_id) is rule
    rules.remove(rule.rule_id)
    assert rules.get(rule.rule_id) is None
    rules.add(ReplyRule(action=Action.DROP, times=None))
    rules.clear()
    assert hits(rules, 1) == [False]


def test_the_number_of_rules_is_bounded() -> None:
    rules = ReplyRules()
    for _ in range(RULES_MAX):
        rules.add(ReplyRule(action=Action.DROP))
    with pytest.raises(ValueError, match="already"):
        rules.add(ReplyRule(action=Action.DROP))


def drawn(rules: ReplyRules, between: int = 0) -> list[bool]:
    """Add a rule with a probability; what it draws for 20 requests, with `between` of another API after each."""
    rule = rules.add(ReplyRule(action=Action.DROP, api="Fetch", times=None, probability=0.5))
    found = []
    for _ in range(20):
        found.append(rules.match("Fetch", "") is rule)
        for _ in range(between):
            rules.match("Heartbeat", "")
    return found


def test_kt9_the_requests_that_another_rule_draws_for_change_nothing() -> None:
    alone, beside = ReplyRules(7), ReplyRules(7)
    for rules in (alone, beside):
        rules.add(ReplyRule(action=Action.DELAY, api="Heartbeat", times=None, probability=0.5))
    assert drawn(alone) == drawn(beside, between=3)


def test_kt9_a_test_draws_the_same_alone_and_after_others() -> None:
    alone, later = ReplyRules(7), ReplyRules(7)
    first = drawn(alone)
    for _ in range(3):
        drawn(later)
    later.clear()
    assert drawn(later) == first
    assert drawn(later) != first, "rules of one test do not draw the same"

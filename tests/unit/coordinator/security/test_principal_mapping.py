"""The examples of Kafka's documentation for ssl.principal.mapping.rules, and what is refused."""

from __future__ import annotations

import pytest

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.security.principal_mapping import NoMatchingRule, map_name, parse_rules

RULES = parse_rules(
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "principal"),
    [
        ("CN=kafka-x,OU=ServiceUsers,O=X", "kafka-x"),
        ("CN=Alice,OU=Finance,O=Org,L=Town,ST=State,C=US", "alice@finance"),
        ("OU=x,CN=bob", "BOB"),
        ("O=nobody", "O=nobody"),
    ],
)
def test_the_first_rule_that_matches_counts(name: str, principal: str) -> None:
    assert map_name(RULES, name) == principal


def test_a_name_that_no_rule_matches_has_no_principal() -> None:
    with pytest.raises(NoMatchingRule):
        map_name(parse_rules("RULE:^CN=(.*)$/$1/"), "O=x")


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (r"RULE:CN=(?<who>.*),O=X/${who}/", "Bob"),
        (r"RULE:(.*)\/x/a/, DEFAULT", "CN=Bob,O=X"),
        ("RULE:.*/a\\$b/", "a$b"),
        ("", "CN=Bob,O=X"),
        ("DEFAULT\nRULE:.*/x/", "CN=Bob,O=X"),
    ],
)
def test_javas_patterns(rules: str, principal: str) -> None:
    assert map_name(parse_rules(rules), "CN=Bob,O=X") == principal


@pytest.mark.parametrize("rules", ["RULE:(/x/", "RULE:.*/$1/", "RULE:.*", "nonsense", "RULE:.*/${who}/", "RULE:.*/$/"])
def test_an_invalid_rule_is_refused(rules: str) -> None:
    with pytest.raises(ConfigRefused, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(rules)

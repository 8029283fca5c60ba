"""The examples of Kafka's documentation for ssl.principal.mapping.rules, and what is refused.

The names in JAVA are those of Kafka 4.3.1's SslPrincipalMapper.
"""

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
        ("RULE:^.*/a\\$b/", "a$b"),
        ("", "CN=Bob,O=X"),
        ("DEFAULT\nRULE:.*/x/", "CN=Bob,O=X"),
    ],
)
def test_javas_patterns(rules: str, principal: str) -> None:
    assert map_name(parse_rules(rules), "CN=Bob,O=X") == principal


JAVA = [
    ("RULE:.*/x/", "CN=a", "xx"),
    ("RULE:^CN=(.*?)(,.*)?$/$1/", "CN=bob,O=x", "bob"),
    ("RULE:CN=(.*?)(,.*)?/$1/", "CN=bob,O=x", "bob,O=x"),
    (r"RULE:CN=(\w+)/$1/", "CN=m\xfc", None),
    (r"RULE:CN=(\d+)/$1/", "CN=\u0663", None),
    (r"RULE:CN=(\d+)/$1/", "CN=12", "12"),
    ("RULE:CN=(.*)/$1/", "CN=a\r", None),
    ("RULE:CN=(.*)/$1/", "CN=a\u2028b", None),
    (r"RULE:CN=(.*)\s*/$1/", "CN=a\r", "a"),
    (r"RULE:^CN=(.*)$\n?/$1/", "CN=a\n", "a"),
    ("RULE:^CN=([a-z]*)$[\r\n]*/$1/", "CN=a\r\n", "a"),
    ("RULE:(?i)cn=(k)/$1/", "CN=\u212a", None),
    ("RULE:(?i)cn=(k)/$1/", "CN=K", "K"),
    (r"RULE:CN=(\S+)/$1/", "CN=a\xa0b", "a\xa0b"),
    ("RULE:(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)/$10-$11/", "abcdefghij", "j-a1"),
    ("RULE:CN=(.*)/$12/", "CN=bob", "bob2"),
    ("RULE:CN=(.*)/$0!/", "CN=bob", "CN=bob!"),
    ("RULE:CN=(?<who>.*)/${who}/", "CN=bob", "bob"),
    ("RULE:CN=([^,]+),.*/$1/U", "CN=b\xfc,O=x", "B\xdc"),
    ("RULE:a|ab/x/", "ab", "xb"),
    ("RULE:(a|b)*/[$1]/", "abab", "[b][]"),
    (r"RULE:CN=(.*)/\$1/", "CN=bob", "$1"),
    (r"RULE:\w+=[\w.-]+/<$0>/", "CN=a.b-c", "<CN=a.b-c>"),
]


@pytest.mark.parametrize(("rules", "name", "principal"), JAVA)
def test_a_rule_gives_the_name_that_kafka_gives(rules: str, name: str, principal: str | None) -> None:
    if principal is None:
        with pytest.raises(NoMatchingRule):
            map_name(parse_rules(rules), name)
    else:
        assert map_name(parse_rules(rules), name) == principal


@pytest.mark.parametrize("rules", ["RULE:(/x/", "RULE:.*/$1/", "RULE:.*", "nonsense", "RULE:.*/${who}/", "RULE:.*/$/"])
def test_an_invalid_rule_is_refused(rules: str) -> None:
    with pytest.raises(ConfigRefused, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(rules)

"""ssl.principal.mapping.rules: from the name in a client's certificate to the name of a principal (KIP-371). Pure.

A rule is `RULE:pattern/replacement/` with an L or a U behind it for lower or upper case, or DEFAULT, which keeps the
name. The first rule whose pattern matches the whole name is used. Patterns and replacements are Java's (`$1`).

Law
    PM1 A rule gives the name that Kafka's gives: it matches the whole name, and then replaces every part of the name
        that the pattern finds, as `String.replaceAll` does.
"""

from __future__ import annotations

import re
from typing import Final

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.security.java_pattern import NotTranslated, compile_java
from rota.protocol.dataclass import dataclass

PROPERTY: Final = "ssl.principal.mapping.rules"
_RULE: Final = re.compile(
    r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|\n|$)", re.DOTALL | re.ASCII
)
_GROUP: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}|([^\\$]+)", re.DOTALL | re.ASCII)


class NoMatchingRule(ValueError):
    """No rule matches a name."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` None: DEFAULT."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the principal's name; None where the rule does not match."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replace, name)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)

    def _replace(self, match: re.Match[str]) -> str:
        return "".join(_group_text(each, match) for each in _GROUP.finditer(self.replacement))


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a property. Raises ConfigRefused."""
    rules, at = [], 0
    text = text.strip() or "DEFAULT"
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None:
            raise ConfigRefused(PROPERTY, f"Invalid rule {text[at:]!r} for configuration {PROPERTY}")
        rules.append(Rule() if match[1] else _rule(match))
        at = match.end()
    return tuple(rules)


def map_name(rules: tuple[Rule, ...], name: str) -> str:
    """Return the principal's name by the first rule that matches. Raises NoMatchingRule."""
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return mapped
    raise NoMatchingRule(f"no rule of {PROPERTY} matches {name}")


def _rule(match: re.Match[str]) -> Rule:
    try:
        rule = Rule(compile_java(match[2]), match[3], match[4])
    except (re.error, NotTranslated) as error:
        raise ConfigRefused(PROPERTY, f"Invalid pattern {match[2]!r} in configuration {PROPERTY}: {error}") from None
    _check_groups(rule)
    return rule


def _check_groups(rule: Rule) -> None:
    assert rule.pattern is not None
    consumed = 0
    for each in _GROUP.finditer(rule.replacement):
        known = each[2] is None or int(each[2][0]) <= rule.pattern.groups
        if each.start() != consumed or not known or (each[3] and each[3] not in rule.pattern.groupindex):
            break
        consumed = each.end()
    if consumed != len(rule.replacement):
        raise ConfigRefused(PROPERTY, f"Invalid replacement {rule.replacement!r} in configuration {PROPERTY}")


def _group_text(each: re.Match[str], match: re.Match[str]) -> str:
    if each[2] is not None:
        return _numbered_group(each[2], match)
    if each[3] is not None:
        return match[each[3]] or ""
    return each[1] if each[1] is not None else each[4]


def _numbered_group(digits: str, match: re.Match[str]) -> str:
    """Return the group of the longest number that there is; the digits behind it are text. Java's way."""
    taken = 1
    while taken < len(digits) and int(digits[: taken + 1]) <= match.re.groups:
        taken += 1
    return (match[int(digits[:taken])] or "") + digits[taken:]

"""Which replies a fault applies to: rules by API and client id, reproducible by seed. Pure but for the seeded draws.

Law
    KT9 The draws of a rule depend on the seed and on its place among the rules added since `clear`, and on nothing
        else: not on the requests that other rules draw for, and not on the rules of earlier tests.
"""

from __future__ import annotations

from dataclasses import field, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from rota.protocol.dataclass import dataclass

RULES_MAX = 1_000


class Action(StrEnum):
    """What happens to a matching request or its reply."""

    DROP = "drop"  # performed; the reply is lost and its connection is closed
    STALL = "stall"  # performed; the reply never leaves, and none behind it on that connection
    DELAY = "delay"  # performed; the reply leaves `delay_ms` later
    DUPLICATE = "duplicate"  # performed; the reply is sent twice
    ERROR = "error"  # not performed, unless `performed`; the reply carries `error`
    CLOSE = "close"  # not performed; the connection is closed


@dataclass(slots=True, kw_only=True)
class ReplyRule:
    """One fault. `api` and `client_id` are patterns with * and ?; None for `times` means until it is removed."""

    action: Action
    api: str = "*"  # Kafka's name: Produce, Fetch, OffsetCommit, …
    client_id: str = "*"
    times: int | None = 1
    skip: int = 0  # matching requests that pass before the first fault
    probability: float = 1.0
    delay_ms: int = 0
    error: str = ""  # Kafka's name: NOT_COORDINATOR, …
    performed: bool = False
    rule_id: int = 0
    hits: int = 0
    draws: Random = field(default_factory=Random, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Plain fields."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "draws"}


class ReplyRules:
    """The rules of one broker or cluster. The first rule that matches a request applies."""

    def __init__(self, seed: int = 0) -> None:
        self._rules: dict[int, ReplyRule] = {}
        self._seed = seed
        self._last_id = self._cleared_id = 0

    def add(self, rule: ReplyRule) -> ReplyRule:
        """Add a rule; returns it with its id. Raises ValueError beyond RULES_MAX."""
        if len(self._rules) >= RULES_MAX:
            raise ValueError(f"there are {RULES_MAX} faults already")
        self._last_id += 1
        rule.rule_id = self._last_id
        rule.draws = Random(f"{self._seed} {self._last_id - self._cleared_id}")
        self._rules[rule.rule_id] = rule
        return rule

    def get(self, rule_id: int) -> ReplyRule | None:
        """Return the rule of that id; None when it was removed."""
        return self._rules.get(rule_id)

    def remove(self, rule_id: int) -> None:
        """Remove a rule, if it is there."""
        self._rules.pop(rule_id, None)

    def clear(self) -> None:
        """Remove all rules; the next ones draw as the first ones did."""
        self._rules.clear()
        self._cleared_id = self._last_id

    def match(self, api: str, client_id: str) -> ReplyRule | None:
        """Return the rule that applies to this request, and count it; None when no rule does."""
        for rule in self._rules.values():
            if rule.times is not None and rule.hits >= rule.times:
                continue
            if not fnmatchcase(api, rule.api) or not fnmatchcase(client_id, rule.client_id):
                continue
            if rule.skip > 0:
                rule.skip -= 1
            elif rule.probability >= 1 or rule.draws.random() < rule.probability:
                rule.hits += 1
                return rule
        return None

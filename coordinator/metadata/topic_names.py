"""Kafka's rules for topic names, and its messages for invalid ones."""

from __future__ import annotations

from collections.abc import Iterable

from rota.coordinator.metadata.topic import INTERNAL, Refusal
from rota.protocol.errors import ErrorCode

NAME_CHARS_MAX = 249  # a file name of 255 less "-" and a partition number of five digits
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def invalid_reason(name: str) -> str | None:
    """Return why a name is invalid; None when it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_CHARS_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_CHARS_MAX}"
    if not _LEGAL.issuperset(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def refuse_name(name: str) -> Refusal | None:
    """Return an error when the name is invalid, else None."""
    why = invalid_reason(name)
    if why is None:
        return None
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def collision_key(name: str) -> str:
    """Return the key that colliding names share: metric names have '_' for both '.' and '_'."""
    return name.replace(".", "_")


def refuse_collision(name: str, existing: Iterable[str]) -> Refusal | None:
    """Return an error when `existing`, the topics with the collision key of `name`, has another name."""
    for other in existing:
        if other != name:
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
    return None


def colliding_internal_topics(name: str) -> list[str]:
    """T13. Return the internal topics with the collision key of `name`: they may be created later."""
    return [internal for internal in sorted(INTERNAL) if collision_key(internal) == collision_key(name)]


def refuse_other_case(name: str, existing: Iterable[str]) -> Refusal | None:
    """A11. Return an error when the name of an existing topic differs only in upper and lower case, else None."""
    for other in existing:
        if other != name and other.lower() == name.lower():
            why = "the file system of log.dirs does not distinguish upper and lower case"
            return Refusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}: {why}"
            )
    return None

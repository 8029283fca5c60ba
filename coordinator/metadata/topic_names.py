"""What a topic may be called: Kafka's rules, and Kafka's words for what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode

NAME_CHARS_MAX = 249  # a file name of 255 less "-" and a partition number of five digits
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def wrong_with(name: str) -> str | None:
    """Why a name is not allowed; None when it is."""
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
    """None when a topic may have that name."""
    why = wrong_with(name)
    if why is None:
        return None
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def folded(name: str) -> str:
    """Two names with the same fold collide: metric names cannot tell '.' from '_'."""
    return name.replace(".", "_")


def refuse_collision(name: str, existing: Iterable[str]) -> Refusal | None:
    """None when `name` collides with none of `existing`, all of the same fold."""
    for other in existing:
        if other != name:
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
    return None

"""Subscriptions by regular expression: checked when a member brings one, resolved right after the heartbeat.

Kafka resolves them on another thread. Here a timer that fires at once does it, outside of the heartbeat's step, so that
the heartbeat is answered first, as in Kafka; it fires again after each slice of the work (`resolution`).

Laws
    CG9 An expression is resolved again when topics were created, when members brought a new one, or after
        `regex.refresh.interval.ms`; at most every REFRESH_MS_MIN.
    CG10 A topic counts only where the client whose heartbeat caused the resolution may describe it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from rota.coordinator.consumer_group import notes, records
from rota.coordinator.consumer_group.events import HeartbeatReply, refusal
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.regular_expression import InvalidExpression, compile_expression
from rota.coordinator.consumer_group.resolution import Resolution
from rota.coordinator.consumer_group.state import ConsumerGroup, ResolvedRegex
from rota.coordinator.consumer_group.steps import bump_epoch, record
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Step
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger

RESOLVE: Final = "regex"  # the key of the timer
REFRESH_MS_MIN: Final = 10_000


class Change(Enum):
    """What a heartbeat did to the member's expression."""

    NONE = 0
    CHANGED = 1  # to one that is not resolved yet
    RESOLVED = 2  # to a resolved one, or to none


def check(group: ConsumerGroup, member: Member, expression: str | None) -> HeartbeatReply | None:
    """Return the refusal of an expression that is new in the group and is not valid."""
    if not expression or expression == member.regex or expression in group.expressions:
        return None
    try:
        compile_expression(expression)
    except InvalidExpression as invalid:
        text = f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {invalid}."
        return refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    return None


def update(
    group: ConsumerGroup, before: Member, member: Member, can_describe: Callable[[str], bool] | None, step: Step
) -> Change:
    """Forget unused expressions, and let the expressions be resolved when they have to be.

    `can_describe` returns whether the client may see a topic; None: this request resolves no expression.
    """
    change, is_new = Change.NONE, False
    if member.regex != before.regex:
        if before.regex and before.regex not in group.expressions:
            record(group, records.removed_regex(group.group_id, before.regex), step)
        is_new = bool(member.regex) and group.expressions[member.regex] == 1
        is_resolved = not member.regex or (not is_new and member.regex in group.regexes)
        change = Change.RESOLVED if is_resolved else Change.CHANGED
    if can_describe is not None and _is_due(group, step.wall_ms, is_new=is_new):
        group.can_describe = can_describe
        step.arm(RESOLVE, step.now_ms)
    return change


def _is_due(group: ConsumerGroup, wall_ms: int, *, is_new: bool) -> bool:
    if group.can_describe is not None or group.resolution is not None or not group.expressions:
        return False
    last_ms = min((resolved.wall_ms for resolved in group.regexes.values()), default=0)
    if wall_ms <= last_ms + REFRESH_MS_MIN:
        return False
    is_old = group.resolved_version < group.topics.created_version
    is_old |= wall_ms > last_ms + group.settings.regex_refresh_ms
    return is_new or is_old or len(group.expressions) != len(group.regexes)


def resolve(group: ConsumerGroup, step: Step) -> None:
    """Match expressions with topics for a slice of time; with the last slice write the results.

    The epoch is bumped when a result or the topics' hash changed.
    """
    resolution = group.resolution or _begin(group)
    if resolution is None:
        return
    if resolution.run_slice():
        group.resolution = None
        _end(group, resolution, step)
    else:
        group.resolution = resolution
        step.arm(RESOLVE, step.now_ms)


def _begin(group: ConsumerGroup) -> Resolution | None:
    can_describe, group.can_describe = group.can_describe, None
    if can_describe is None or not group.expressions:
        return None
    group.resolved_version = group.topics.created_version
    return Resolution(tuple(group.expressions), tuple(group.topics.names()), can_describe, group.topics.version)


def _end(group: ConsumerGroup, resolution: Resolution, step: Step) -> None:
    """Write the topics of the expressions that members still have."""
    has_changed = False
    for expression, topics in resolution.found.items():
        if expression not in group.expressions:
            continue
        resolved = records.regex(group.group_id, expression, topics, resolution.version, step.wall_ms)
        if not records.can_fit_in_batch(resolved, group.settings.record_bytes_max):
            notes.unresolved(group, notes.TOO_MANY_TOPICS, expression, step)
            topics = frozenset()
            resolved = records.regex(group.group_id, expression, topics, resolution.version, step.wall_ms)
        has_changed |= topics != group.regexes.get(expression, ResolvedRegex()).topics
        record(group, resolved, step)
    for expression in resolution.expensive:
        notes.unresolved(group, notes.TOO_EXPENSIVE, expression, step)
    if has_changed or metadata_hash(group.subscribed_topics(), group.topics) != group.metadata_hash:
        bump_epoch(group, step, "The topics of regular expressions changed.", Trigger.TOPICS_CHANGED)
        group.topics_version = group.topics.version

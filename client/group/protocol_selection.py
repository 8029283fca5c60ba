"""A member of either protocol: which one it begins with, and how group_protocol=auto changes to classic. Pure.

Laws
    E6  The member that takes over owns nothing, and subscribes to what its predecessor subscribed to. An event of the
        predecessor that comes late changes nothing: tickets go on where they were.
    A setting that only the classic protocol has is not ignored: with it, auto is classic from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.client.config import ConsumerConfig
from rota.client.group.assignors.base import Assignor
from rota.client.group.effects import Effect
from rota.client.group.epoch_member import EpochMember, new_epoch_member
from rota.client.group.epoch_member import step as epoch_step
from rota.client.group.events import Event, MetadataChanged, PollBegan, PollReturned, Subscribed
from rota.client.group.machine import step as classic_step
from rota.client.group.state import Member, new_member


def first_member(config: ConsumerConfig, assignors: Sequence[Assignor]) -> Member:
    """Return a new member of the protocol that the configuration begins with. Raises ConfigError."""
    is_automatic = config.group_protocol == "auto" and not config.classic_settings
    return (
        new_epoch_member(config)
        if is_automatic or config.group_protocol == "consumer"
        else new_member(config, assignors)
    )


def step(m: Member, event: Event, now_ms: int) -> list[Effect]:
    """Handle one event at that time (ms of a monotonic clock) and return its effects."""
    return epoch_step(m, event, now_ms) if isinstance(m, EpochMember) else classic_step(m, event, now_ms)


def why_classic(config: ConsumerConfig) -> str | None:
    """Return why group_protocol=auto does not use the consumer protocol; None when it does."""
    if config.group_protocol != "auto" or not config.classic_settings:
        return None
    return f"{', '.join(config.classic_settings)} belongs to the classic protocol"


def classic_successor(old: EpochMember, assignors: Sequence[Assignor]) -> tuple[Member, list[Event]]:
    """Return the classic member that takes over, and its first events."""
    assert not old.owned
    member = new_member(old.config, assignors)
    member.tickets, member.coordinator, member.is_finding = old.tickets, old.coordinator, old.is_finding
    member.last_group = old.last_group
    first: list[Event] = [MetadataChanged(old.metadata)]
    if old.subscription is not None:
        first.append(Subscribed(old.subscription))
    if old.polling:
        first.append(PollBegan())
    elif "poll" in old.armed:
        first.append(PollReturned())
    return member, first

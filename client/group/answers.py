"""Whose answer it is: each is taken to the branch that asked. An answer that nobody waits for changes nothing (M3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.client.errors import KafkaError
from rota.client.group import heartbeat as beating
from rota.client.group import join as joining
from rota.client.group import leave as leaving
from rota.client.group import sync as syncing
from rota.client.group.states import MemberState

if TYPE_CHECKING:
    from rota.client.group.machine import Membership


def answered(m: Membership, ticket: int, response: Any) -> None:
    if ticket == m.beat:
        m.beat = None
        beating.answered(m, response.error_code)
    elif ticket == m.exchange:
        m.exchange = None
        if m.state is MemberState.JOINING:
            joining.answered(m, response)
        else:
            syncing.answered(m, response)
    else:
        leaving.answered(m, ticket, response)


def unanswered(m: Membership, ticket: int, error: KafkaError) -> None:
    if ticket == m.beat:
        m.beat = None
        beating.unanswered(m, error)
    elif ticket == m.exchange:
        m.exchange = None
        joining.unanswered(m, error)
    else:
        leaving.unanswered(m, ticket, error)

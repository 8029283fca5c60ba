"""The states of a member of a group and the only ways between them.

Laws
    A state changes by `Membership.move` alone, which asserts this table; docs/CLIENT_STATES.md is drawn from it.
    From every state but CLOSED there is a way to STABLE, and one to CLOSED.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class MemberState(Enum):
    """The states of a member; the value describes its activity."""

    DOWN = "not part of the group; what it still holds is lost with the next poll, which joins (again)"
    DISCOVERING = "wants to join, looks for the coordinator"
    REVOKING = "stopped consumption: commits and gives up what it must (on_revoked, on_lost), then joins"
    JOINING = "JoinGroup is on its way, or waits to be sent again"
    SYNCING = "knows its generation; SyncGroup is on its way, or the leader reads metadata for the assignment"
    ASSIGNING = "has its assignment; poll takes it over (cooperative: on_revoked; then on_assigned)"
    STABLE = "part of the group"
    REDISCOVERING = "part of the group, keeps consuming, looks for the coordinator until an answer without error"
    LEAVING = "closes: last commit, on_revoked or on_lost, LeaveGroup"
    CLOSED = "nothing is under way and nothing will be"


S = MemberState

_WAYS: Final[Mapping[MemberState, Mapping[MemberState, str]]] = {
    S.DOWN: {
        S.DISCOVERING: "poll; nothing is held, no coordinator is known",
        S.REVOKING: "poll; something is held: on_lost",
        S.JOINING: "poll; the coordinator is known",
        S.LEAVING: "close",
    },
    S.DISCOVERING: {
        S.DOWN: "discovery refused for good, poll timeout, or the session ran out",
        S.JOINING: "coordinator found",
        S.LEAVING: "close",
    },
    S.REVOKING: {
        S.DOWN: "thrown out (22, 25, 82), poll timeout, or the session ran out",
        S.DISCOVERING: "all is given up, no coordinator is known",
        S.JOINING: "all is given up",
        S.LEAVING: "close",
    },
    S.JOINING: {
        S.DOWN: "refused for good, poll timeout, or thrown out (22, 25) with partitions still held",
        S.DISCOVERING: "connection lost, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, no answer in time",
        S.SYNCING: "joined: the generation and its leader are known",
        S.LEAVING: "close",
    },
    S.SYNCING: {
        S.DOWN: "refused for good, the assignor failed, poll timeout, or thrown out with partitions still held",
        S.DISCOVERING: "connection lost, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, no answer in time",
        S.JOINING: "REBALANCE_IN_PROGRESS, or thrown out (22, 25) with nothing held",
        S.ASSIGNING: "the assignment came",
        S.LEAVING: "close",
    },
    S.ASSIGNING: {
        S.DOWN: "thrown out (22, 25, 82), poll timeout, or the session ran out",
        S.STABLE: "taken over, or it does not fit the subscription any more",
        S.LEAVING: "close",
    },
    S.STABLE: {
        S.DOWN: "thrown out (22, 25, 82), poll timeout, or the session ran out",
        S.REVOKING: "poll, when the group rebalances, the subscription changed or the leader saw topics change",
        S.JOINING: "the same, with nothing to give up",
        S.REDISCOVERING: "connection lost, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, heartbeat not answered in time",
        S.LEAVING: "close",
    },
    S.REDISCOVERING: {
        S.DOWN: "no heartbeat was answered within the session timeout, thrown out (22, 25, 82), or poll timeout",
        S.DISCOVERING: "poll, when there is a reason to join and nothing to give up",
        S.REVOKING: "poll, when there is a reason to join",
        S.JOINING: "the same, when the coordinator has just been found",
        S.STABLE: "a heartbeat was answered",
        S.LEAVING: "close",
    },
    S.LEAVING: {S.CLOSED: "left, static, not a member, or out of time"},
    S.CLOSED: {},
}

# of a member by the consumer protocol (KIP-848): epoch_member.py
_EPOCH_WAYS: Final[Mapping[MemberState, Mapping[MemberState, str]]] = {
    S.DOWN: {S.JOINING: "poll; nothing is held", S.LEAVING: "close"},
    S.JOINING: {
        S.DOWN: "refused for good, poll timeout, or thrown out",
        S.ASSIGNING: "joined: the member epoch and the assignment came",
        S.LEAVING: "close",
    },
    S.ASSIGNING: {
        S.DOWN: "thrown out, poll timeout, or the session ran out",
        S.STABLE: "taken over",
        S.REDISCOVERING: "taken over, and the coordinator is lost",
        S.LEAVING: "close",
    },
    S.STABLE: {
        S.DOWN: "thrown out, poll timeout, or the session ran out",
        S.ASSIGNING: "a heartbeat brought another assignment, or its topics became known",
        S.REDISCOVERING: "connection lost, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, heartbeat not answered in time",
        S.LEAVING: "close",
    },
    S.REDISCOVERING: {
        S.DOWN: "no heartbeat was answered within the session timeout, thrown out, or poll timeout",
        S.ASSIGNING: "the topics of the assignment became known",
        S.STABLE: "a heartbeat was answered",
        S.LEAVING: "close",
    },
    S.LEAVING: {S.CLOSED: "left, not a member, or out of time"},
    S.CLOSED: {},
}

EPOCH_TRANSITIONS: Final[Mapping[MemberState, frozenset[MemberState]]] = {
    old: frozenset(ways) for old, ways in _EPOCH_WAYS.items()
}
TRANSITIONS: Final[Mapping[MemberState, frozenset[MemberState]]] = {old: frozenset(ways) for old, ways in _WAYS.items()}
CAUSES: Final[Mapping[tuple[MemberState, MemberState], str]] = {
    (old, new): cause for old, ways in _WAYS.items() for new, cause in ways.items()
}


def mermaid() -> str:
    """The table as a mermaid state diagram, in the order of the states; the words stand in the list below it."""
    lines = ["stateDiagram-v2", "    [*] --> DOWN"]
    lines += [f"    {old.name} --> {new.name}" for old, new in CAUSES]
    return "\n".join([*lines, "    CLOSED --> [*]"])


def document() -> str:
    """docs/CLIENT_STATES.md."""
    meanings = "\n".join(f"| {state.name} | {state.value} |" for state in MemberState)
    ways = "\n".join(f"| {old.name} | {new.name} | {cause} |" for (old, new), cause in CAUSES.items())
    epoch_ways = "\n".join(
        f"| {old.name} | {new.name} | {cause} |" for old, ways in _EPOCH_WAYS.items() for new, cause in ways.items()
    )
    return f"""# States of a member

Generated from `client/group/states.py`. Renew it with
`python -m rota.client.group.states > docs/CLIENT_STATES.md`.

```mermaid
{mermaid()}
```

| state | what it means |
|---|---|
{meanings}

| from | to | when |
|---|---|---|
{ways}

Thrown out: a heartbeat, join, sync or commit was answered with ILLEGAL_GENERATION (22; the member id is kept),
UNKNOWN_MEMBER_ID (25) or FENCED_INSTANCE_ID (82; for good). Callbacks run only inside `poll` and `close`.

## With `group_protocol="consumer"` (KIP-848)

The coordinator assigns; a heartbeat joins, reports and leaves.

| from | to | when |
|---|---|---|
{epoch_ways}

Thrown out: a heartbeat was answered with FENCED_MEMBER_EPOCH (110), UNKNOWN_MEMBER_ID (25), GROUP_ID_NOT_FOUND (69) or
FENCED_INSTANCE_ID (82; for good).
"""


if __name__ == "__main__":
    print(document(), end="")

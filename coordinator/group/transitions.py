"""The five states of a classic group and the only ways between them.

Laws
    A state changes by `ClassicGroup.transition_to` alone, which asserts this table.
    docs/GROUP_STATES.md is drawn from it.
    A group that is loaded from its log gets its state directly: that is a beginning, not a transition.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupState(Enum):
    """The value is the name on the wire (DescribeGroups, ListGroups)."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


S = GroupState

TRANSITIONS: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    S.EMPTY: frozenset({S.PREPARING, S.DEAD}),
    S.PREPARING: frozenset({S.COMPLETING, S.EMPTY, S.DEAD}),
    S.COMPLETING: frozenset({S.STABLE, S.PREPARING, S.DEAD}),
    S.STABLE: frozenset({S.PREPARING, S.DEAD}),
    S.DEAD: frozenset({S.DEAD}),
}

CAUSES: Final[Mapping[tuple[GroupState, GroupState], str]] = {
    (S.EMPTY, S.PREPARING): "a member joins",
    (S.EMPTY, S.DEAD): "deleted, or its last offset expired",
    (S.PREPARING, S.COMPLETING): "all have joined, or the join timer fired: a new generation begins",
    (S.PREPARING, S.EMPTY): "no member is left",
    (S.PREPARING, S.DEAD): "the shard moved away",
    (S.COMPLETING, S.STABLE): "the leader's assignment arrived",
    (S.COMPLETING, S.PREPARING): "a member joined, left or changed; or did not sync in time",
    (S.COMPLETING, S.DEAD): "the shard moved away",
    (S.STABLE, S.PREPARING): "a member joined, left or changed; or its leader rejoined",
    (S.STABLE, S.DEAD): "the shard moved away",
    (S.DEAD, S.DEAD): "dead stays dead",
}


def mermaid() -> str:
    """The table as a mermaid state diagram, in the order of the states."""
    order = list(GroupState)
    lines = ["stateDiagram-v2", "    [*] --> Empty: created", "    [*] --> Stable: loaded with its assignment"]
    for old in order:
        for new in sorted(TRANSITIONS[old], key=order.index):
            lines.append(f"    {old.value} --> {new.value}: {CAUSES[old, new]}")
    return "\n".join(lines)


def document() -> str:
    """docs/GROUP_STATES.md."""
    return f"""# States of a group

Generated from `coordinator/group/transitions.py`. Renew it with
`python -m rota.coordinator.group.transitions > docs/GROUP_STATES.md`.

```mermaid
{mermaid()}
```

A group that is loaded with members but without an assignment is loaded as PreparingRebalance (docs/adr/0003).
"""


if __name__ == "__main__":
    print(document(), end="")

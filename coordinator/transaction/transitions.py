"""The states of a transactional id and the only ways between them.

Laws
    A state changes by `Transaction.write` alone, which asserts this table.
    docs/TRANSACTION_STATES.md is drawn from it.
    What is loaded from the log gets its state directly: that is a beginning, not a transition.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class TransactionState(Enum):
    """The value is the name on the wire (DescribeTransactions, ListTransactions)."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


S = TransactionState

# TransactionStatus in the records. Kafka's 6 (Dead) and 7 (PrepareEpochFence) are never written
CODES: Final[Mapping[TransactionState, int]] = {state: code for code, state in enumerate(TransactionState)}
OF_CODE: Final[Mapping[int, TransactionState]] = {code: state for state, code in CODES.items()}
# of Kafka's, which a broker of ours has no moment in, so that no transactional id is ever listed under them
UNUSED_NAMES: Final = frozenset({"Dead", "PrepareEpochFence"})

IDLE: Final = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})  # no transaction: an id may expire
ENDING: Final = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})  # decided; not all markers are written

TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT}),
    S.ONGOING: frozenset({S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT}),
    S.PREPARE_COMMIT: frozenset({S.COMPLETE_COMMIT}),
    S.PREPARE_ABORT: frozenset({S.COMPLETE_ABORT}),
    S.COMPLETE_COMMIT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT}),
    S.COMPLETE_ABORT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT}),
}

_INITIALIZED = "InitProducerId: a new epoch"
_BEGUN = "the first partition is added"
_NOTHING_TO_ABORT = "abort of a transaction without partitions (EndTxn v5)"
_ALL_MARKED = "all markers are written"
CAUSES: Final[Mapping[tuple[TransactionState, TransactionState], str]] = {
    (S.EMPTY, S.EMPTY): _INITIALIZED,
    (S.EMPTY, S.ONGOING): _BEGUN,
    (S.EMPTY, S.PREPARE_ABORT): _NOTHING_TO_ABORT,
    (S.ONGOING, S.ONGOING): "a partition is added",
    (S.ONGOING, S.PREPARE_COMMIT): "EndTxn: commit",
    (S.ONGOING, S.PREPARE_ABORT): "EndTxn: abort; the timeout; InitProducerId of the same transactional id",
    (S.PREPARE_COMMIT, S.COMPLETE_COMMIT): _ALL_MARKED,
    (S.PREPARE_ABORT, S.COMPLETE_ABORT): _ALL_MARKED,
    (S.COMPLETE_COMMIT, S.EMPTY): _INITIALIZED,
    (S.COMPLETE_COMMIT, S.ONGOING): _BEGUN,
    (S.COMPLETE_COMMIT, S.PREPARE_ABORT): _NOTHING_TO_ABORT,
    (S.COMPLETE_ABORT, S.EMPTY): _INITIALIZED,
    (S.COMPLETE_ABORT, S.ONGOING): _BEGUN,
    (S.COMPLETE_ABORT, S.PREPARE_ABORT): _NOTHING_TO_ABORT,
}


def mermaid() -> str:
    """The table as a mermaid state diagram, in the order of the states."""
    order = list(TransactionState)
    lines = ["stateDiagram-v2", "    [*] --> Empty: InitProducerId of a new transactional id"]
    for old in order:
        for new in sorted(TRANSITIONS[old], key=order.index):
            lines.append(f"    {old.value} --> {new.value}: {CAUSES[old, new].replace(': ', ' = ').replace(';', ',')}")
    lines += [f"    {state.value} --> [*]: expired" for state in order if state in IDLE]
    return "\n".join(lines)


def document() -> str:
    """docs/TRANSACTION_STATES.md."""
    return f"""# States of a transactional id

Generated from `coordinator/transaction/transitions.py`. Renew it with
`python -m rota.coordinator.transaction.transitions > docs/TRANSACTION_STATES.md`.

```mermaid
{mermaid()}
```

PrepareCommit and PrepareAbort are decisions: a coordinator that loads one of them writes the missing markers and
completes it.
"""


if __name__ == "__main__":
    print(document(), end="")

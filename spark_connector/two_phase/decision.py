"""The decision to commit a micro-batch: written before the driver commits, and again when all is committed. Pure.

Law
    A decision is a whole value: the last one of a query says everything, so its topic may be compacted.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final, Self

from rota.client.producer.prepared import PreparedTransaction
from rota.protocol.dataclass import dataclass

FORMAT: Final = 1
COMMITTING: Final = "committing"
COMMITTED: Final = "committed"


class UnknownDecision(RuntimeError):
    """A record of the decision topic is not of this format."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The micro-batch `batch` of a query is committed. `transactions`: those that may have to be committed still; none
    when `is_complete`. `discarded`: those that a driver is aborting, of attempts that no decision has."""

    batch: int
    transactions: tuple[PreparedTransaction, ...]
    is_complete: bool = False
    discarded: tuple[PreparedTransaction, ...] = ()

    def completed(self) -> Self:
        """The same decision after all of its transactions were committed."""
        return replace(self, transactions=(), is_complete=True)


NONE_DECIDED: Final = Decision(-1, (), is_complete=True)


def encode(decision: Decision) -> bytes:
    """The value of the decision's record."""
    fields = {
        "format": FORMAT,
        "batch": decision.batch,
        "state": COMMITTED if decision.is_complete else COMMITTING,
        "transactions": [_listed(each) for each in decision.transactions],
    }
    if decision.discarded:
        fields["discarded"] = [_listed(each) for each in decision.discarded]
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(value: bytes) -> Decision:
    """Raises UnknownDecision."""
    try:
        fields = json.loads(value)
        if fields["format"] != FORMAT or fields["state"] not in (COMMITTING, COMMITTED):
            raise ValueError("another format")
        transactions, discarded = (
            tuple(PreparedTransaction(str(name), *map(int, ids)) for name, *ids in listed)
            for listed in (fields["transactions"], fields.get("discarded", ()))
        )
        return Decision(int(fields["batch"]), transactions, fields["state"] == COMMITTED, discarded)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise UnknownDecision(
            f"the decision topic has a record that is no decision of format {FORMAT} ({error}): {value[:200]!r}; use a "
            f"topic of its own as decisionTopic, and the Rota that wrote it, or a newer one"
        ) from error


def _listed(prepared: PreparedTransaction) -> list[str | int]:
    return [prepared.transactional_id, prepared.producer_id, prepared.epoch, prepared.version]

"""What can go wrong between the two phases. Each message says what is in the topic, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_MAX = 5


class PreparedTransactionLost(RuntimeError):
    """A transaction of the micro-batch was no longer open before the decision. Nothing of the batch is visible."""

    def __init__(self, query: str, batch: int, ids: Sequence[str]) -> None:
        super().__init__(
            f"micro-batch {batch} of query {query} was not committed, and none of its records is visible: "
            f"{_shown(ids)} ended before the micro-batch did, by a timeout or by another driver of the query. Start it "
            f"again, which repeats the micro-batch. If its tasks take longer than kafka.transaction.timeout.ms, "
            f"raise that, up to the broker's transaction.max.timeout.ms, or make micro-batches smaller"
        )


class DecidedTransactionLost(RuntimeError):
    """The broker aborted a transaction by its timeout after the decision: a part of the micro-batch is missing."""

    def __init__(self, query: str, batch: int, topic: str, ids: Sequence[str], committed: int) -> None:
        super().__init__(
            f"micro-batch {batch} of query {query} is committed in part: {committed} of its transactions are visible, "
            f"and the broker has aborted {_shown(ids)}, because the query was down for longer than "
            f"kafka.transaction.timeout.ms. To write the whole micro-batch again, with the visible part a second time, "
            f"write a record with the key {query} and no value to partition 0 of {topic}, and start the query again"
        )


class DecisionLost(RuntimeError):
    """A task has written nothing because of a decision that is not there any more."""

    def __init__(self, query: str, batch: int, topic: str) -> None:
        super().__init__(
            f"micro-batch {batch} of query {query} was not committed: its tasks have found a decision in {topic} and "
            f"written nothing, and it is not there any more. Start the query again, which repeats the micro-batch"
        )


class OldMicroBatch(RuntimeError):
    """The checkpoint is older than what the query has committed."""

    def __init__(self, query: str, batch: int, decided: int, topic: str) -> None:
        super().__init__(
            f"micro-batch {batch} of query {query} was committed before micro-batch {decided}, which {topic} has as "
            f"the last one: the checkpoint is an older copy, or another driver runs the same query. Use the newer "
            f"checkpoint, or a new one"
        )


def _shown(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN_MAX} more" if len(ids) > SHOWN_MAX else ""
    return f"transaction{'s' if len(ids) > 1 else ''} {', '.join(ids[:SHOWN_MAX])}{more}"

"""ListTransactions, key 66, versions 0-2 (KIP-664).

v1 transactions that run longer than a time (KIP-994) · v2 a pattern of ids (KIP-1152)

Laws
    LIT1 A list of many ids is collected in slices of IDS_PER_SLICE ids, or of the same work of the pattern, between
        which the loop does its other work. A shard that loads meanwhile makes the answer COORDINATOR_LOAD_IN_PROGRESS.
    LIT2 The time of a pattern is bounded: one that takes more work than `work_max_of` the number of ids is answered
        INVALID_REGULAR_EXPRESSION, as one that is not valid.
    LIT3 A filter of many producer ids or states costs each id one look-up.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

import structlog

from rota.coordinator.api.node import Call, Node
from rota.coordinator.consumer_group.characters import TEXT
from rota.coordinator.consumer_group.regular_expression import (
    Expression,
    InvalidExpression,
    TooExpensive,
    compile_expression,
)
from rota.coordinator.consumer_group.resolution import SLICE_WORK_MAX, work_max_of
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.machine import Transaction
from rota.coordinator.transaction.state import TransactionValue
from rota.coordinator.transaction.transitions import UNUSED_NAMES, TransactionState
from rota.coordinator.transaction_coordinator import states_of
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from rota.protocol.messages.list_transactions import TransactionState as ListedTransaction

STATES: Final = frozenset(state.value for state in TransactionState) | UNUSED_NAMES
IDS_PER_SLICE: Final = 500  # a millisecond or two
PATTERN_CHARS_SHOWN_MAX: Final = 256  # in the log; a client's pattern may have 32,767

Response = ListTransactionsResponse
log = structlog.get_logger("rota.broker")


def list_transactions(
    node: Node, call: Call, request: ListTransactionsRequest
) -> Response | DelayedReply[ListTransactionsResponse]:
    """Return the transactional ids of this broker that pass all filters; states that do not exist are named.

    Delayed while records of a transactional id are being written.
    """
    if node.transactions.is_loading:
        return Response(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    listing = _Listing(node, request)
    try:
        listing.compile()
    except InvalidExpression:
        return Response(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    work = listing.slices(node.transactions.machine_portions(IDS_PER_SLICE))
    if next(work, True):
        return listing.response()
    reply: DelayedReply[ListTransactionsResponse] = DelayedReply(mutes=True)
    reply.on_abandon(work.close)
    before = node.transactions.loads()

    def done() -> None:
        is_whole = before == node.transactions.loads()
        response = listing.response() if is_whole else Response(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if isinstance(response, DelayedReply):
            response.then(reply.answer)
        else:
            reply.answer(response)

    node.transactions.in_slices(work, done)
    return reply


class _Listing:
    """One list while it is collected."""

    def __init__(self, node: Node, request: ListTransactionsRequest) -> None:
        self._node, self._request, self._now_ms = node, request, node.wall_ms()
        self._producer_ids, self._states = set(request.producer_id_filters), set(request.state_filters)  # LIT3
        self._expression: Expression | None = None
        self._is_expensive = False
        self._seen = 0
        self._found: list[ListedTransaction] = []

    def compile(self) -> None:
        """Compile the pattern. Raises InvalidExpression."""
        pattern = self._request.transactional_id_pattern
        self._expression = compile_expression(pattern, TEXT) if pattern else None

    def slices(self, portions: Iterator[list[Transaction]]) -> Generator[None, None, None]:
        """Collect the ids; `yield` where the loop may turn. There is none in a short list with a cheap pattern."""
        try:
            yield from self._collect(portions)
        except TooExpensive:
            pattern = (self._request.transactional_id_pattern or "")[:PATTERN_CHARS_SHOWN_MAX]
            log.warning("Pattern of transactional ids is too expensive", pattern=pattern)
            self._is_expensive = True

    def response(self) -> Response | DelayedReply[ListTransactionsResponse]:
        """Return the list when it is committed."""
        if self._is_expensive:
            return Response(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        response = Response(
            unknown_state_filters=tuple(
                dict.fromkeys(name for name in self._request.state_filters if name not in STATES)
            ),
            transaction_states=tuple(self._found),
        )
        return self._node.transactions.when_states_committed(response, lambda code: Response(error_code=code))

    def _collect(self, portions: Iterator[list[Transaction]]) -> Generator[None, None, None]:
        slice_end = SLICE_WORK_MAX
        for number, portion in enumerate(portions):
            if number:
                yield
            for transactional_id, value in states_of(portion):
                if self._passes(value) and self._matches(transactional_id):
                    self._add(transactional_id, value)
                if self._expression is not None and self._expression.work > slice_end:
                    slice_end = self._expression.work + SLICE_WORK_MAX
                    yield

    def _add(self, transactional_id: str, value: TransactionValue) -> None:
        state = value.state.value
        self._found.append(
            ListedTransaction(transactional_id=transactional_id, producer_id=value.producer_id, transaction_state=state)
        )

    def _passes(self, value: TransactionValue) -> bool:
        if self._producer_ids and value.producer_id not in self._producer_ids:
            return False
        if self._states and value.state.value not in self._states:
            return False
        longer_than_ms = self._request.duration_filter
        return longer_than_ms < 0 or self._now_ms - value.start_ms > longer_than_ms

    def _matches(self, transactional_id: str) -> bool:
        """Return whether the pattern matches the whole id. Raises TooExpensive."""
        if self._expression is None:
            return True
        self._seen += 1
        is_match = self._expression.matches(transactional_id)
        if self._expression.work > work_max_of(self._seen):
            raise TooExpensive
        return is_match

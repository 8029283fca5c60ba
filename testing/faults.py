"""Faults on request: `broker.faults.drop(api="OffsetCommit")`. Each ends after `times`, by `remove` or by `clear`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rota.testing.reply_rules import Action

Call = Callable[..., Any]


class Fault:
    """One fault that was requested. As a context manager it ends with the block."""

    def __init__(self, call: Call, rule_id: int) -> None:
        self._call, self._rule_id = call, rule_id

    @property
    def hits(self) -> int:
        """How many requests it has applied to. Raises LookupError when it was removed."""
        rule = self._call("fault", rule_id=self._rule_id)
        if rule is None:
            raise LookupError("the fault was removed")
        hits: int = rule["hits"]
        return hits

    def remove(self) -> None:
        """End it."""
        self._call("remove_fault", rule_id=self._rule_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()


class Faults:
    """Makes faults. `api` is Kafka's name (Fetch, OffsetCommit, …) and `client_id` an id; both may contain * and ?.

    `times` is how many requests a fault applies to (None: until it is removed), `skip` how many pass before, and
    `probability` (0 to 1) the share of the matching ones, drawn by the seed of the broker under test.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def drop(
        self, api: str = "*", client_id: str = "*", *, times: int | None = 1, stall: bool = False, **options: Any
    ) -> Fault:
        """Perform requests and lose their replies: the connection is closed.

        With `stall` it stays open and sends nothing more, so that the client notices by its request timeout.
        """
        return self._add(Action.STALL if stall else Action.DROP, api, client_id, times, options)

    def delay(
        self, ms: int, api: str = "*", client_id: str = "*", *, times: int | None = None, **options: Any
    ) -> Fault:
        """Send replies `ms` later, in real time."""
        return self._add(Action.DELAY, api, client_id, times, {**options, "delay_ms": ms})

    def duplicate(self, api: str = "*", client_id: str = "*", *, times: int | None = 1, **options: Any) -> Fault:
        """Send replies twice."""
        return self._add(Action.DUPLICATE, api, client_id, times, options)

    def error(
        self,
        error: str,
        api: str,
        client_id: str = "*",
        *,
        times: int | None = 1,
        performed: bool = False,
        **options: Any,
    ) -> Fault:
        """Refuse requests with an error of Kafka's (NOT_COORDINATOR, …).

        With `performed` they take effect all the same; `delay_ms` sends the reply later.

        Raises CommandRefused for an API whose requests cannot be refused; the message names those that can.
        """
        return self._add(Action.ERROR, api, client_id, times, {**options, "error": error, "performed": performed})

    def close(self, api: str = "*", client_id: str = "*", *, times: int | None = 1, **options: Any) -> Fault:
        """Close the connection instead of performing a request."""
        return self._add(Action.CLOSE, api, client_id, times, options)

    def close_connections(self, client_id: str = "*") -> int:
        """Cut off the connections of these clients now; return how many there were."""
        closed: int = self._call("close_connections", client_id=client_id)
        return closed

    def full_disk(self, full: bool = True, *, broker: int | None = None) -> None:
        """Let every write to the logs fail for want of space, or end that. The broker needs a data folder."""
        self._call("disk", full=full, broker=broker)

    def slow_disk(self, delay_ms: int, *, broker: int | None = None) -> None:
        """Let every write and sync take that much longer; 0 ends it. The broker needs a data folder."""
        self._call("disk", delay_ms=delay_ms, broker=broker)

    def clear(self) -> None:
        """End all faults and thaw the brokers. Killed ones stay down."""
        self._call("clear_faults")

    def _add(self, action: Action, api: str, client_id: str, times: int | None, options: dict[str, Any]) -> Fault:
        rule = self._call("add_fault", action=action.value, api=api, client_id=client_id, times=times, **options)
        return Fault(self._call, rule["rule_id"])

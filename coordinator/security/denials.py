"""The audit log of denied requests: a structured event for each, at a bounded rate. Pure but for the log.

Law
    DN1 A principal that is denied the same again and again writes one event in REPEAT_MS, with the number of denials
        that were not written; no client can fill the log or the memory. Every denial is in an event or in the number
        of one, REPEAT_MS later or at the end of the broker: those beyond the limit, by which a client could hide
        others, are counted in the event OMITTED.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from rota.coordinator.security.authorizer import Action, Decision
from rota.protocol.dataclass import dataclass

REPEAT_MS: Final = 60_000
REMEMBERED_MAX: Final = 1_024  # denials whose repetition is counted
NAME_CHARS_MAX: Final = 255  # of a resource in an event
OMITTED: Final = "Denials without an event of their own"
EVENTS_PER_REPEAT_MAX: Final = 1_000  # different ones that are written within REPEAT_MS

log = structlog.get_logger("rota.audit")


@dataclass(slots=True)
class _Count:
    """Denials of one action; `api` and `decision` are those of the last one."""

    since_ms: int
    api: str
    decision: Decision
    unwritten: int = 0


class Denials:
    """Counts and logs denials. `total` is that since the start; `at(key, ms, call)` sets a timer in elapsed time."""

    def __init__(self, at: Callable[[Hashable, int, Callable[[], None]], None]) -> None:
        self.total = 0
        self._at, self._is_armed = at, False
        self._counts: dict[Action, _Count] = {}
        self._round_ms, self._written, self._omitted = 0, 0, 0

    def add(self, api: str, action: Action, decision: Decision, now_ms: int) -> None:
        """DN1. `now_ms` is elapsed time."""
        self.total += 1
        action = replace(action, name=action.name[:NAME_CHARS_MAX])
        count = self._counts.get(action)
        if count is not None and now_ms - count.since_ms < REPEAT_MS:
            count.unwritten, count.api, count.decision = count.unwritten + 1, api, decision
            self._arm(now_ms)
            return
        if not self._admit_event(now_ms):
            self._omitted += 1
            self._arm(now_ms)
            return
        unwritten = 0 if count is None else count.unwritten
        self._remember(action, _Count(now_ms, api, decision))
        _write(action, api, decision, unwritten)

    def flush(self, now_ms: int) -> None:
        """Write what was counted only, within the same limit: the same denial may not come again."""
        for action, count in self._counts.items():
            if count.unwritten and self._admit_event(now_ms):
                _write(action, count.api, count.decision, count.unwritten - 1)
                count.since_ms = now_ms
            else:
                self._omitted += count.unwritten
            count.unwritten = 0
        self._write_omitted()

    def _arm(self, now_ms: int) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._at(self, now_ms + REPEAT_MS, partial(self._due, now_ms + REPEAT_MS))

    def _due(self, now_ms: int) -> None:
        self._is_armed = False
        self.flush(now_ms)

    def _admit_event(self, now_ms: int) -> bool:
        if now_ms - self._round_ms >= REPEAT_MS:
            self._write_omitted()
            self._round_ms, self._written = now_ms, 0
        self._written += 1
        return self._written <= EVENTS_PER_REPEAT_MAX

    def _write_omitted(self) -> None:
        if self._omitted:
            log.warning(OMITTED, denials=self._omitted)
        self._omitted = 0

    def _remember(self, action: Action, count: _Count) -> None:
        self._counts.pop(action, None)
        if len(self._counts) >= REMEMBERED_MAX:
            oldest = self._counts.pop(next(iter(self._counts)))
            self._omitted += oldest.unwritten  # which armed the timer
        self._counts[action] = count


def _write(action: Action, api: str, decision: Decision, repeated: int) -> None:
    log.warning(
        "Denied",
        principal=str(action.principal),
        host=action.host,
        api=api,
        operation=action.operation.name,
        resource_type=action.resource_type.name,
        resource=action.name,
        reason=decision.reason.value,
        acl=None if decision.acl is None else f"{decision.acl.pattern} {decision.acl.entry}",
        repeated=repeated,
    )

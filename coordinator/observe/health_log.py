"""Logs the findings of the health rules: at their begin, again with their count while they last, and at their end.

Laws
    HL1 A finding is logged when it begins, then at most once in AGAIN_MS with the latest count, and when it ends.
        LOGGED_MAX findings are remembered. A storm of events makes no storm of lines.
    One round looks for ROUND_SECONDS at groups that have had events since they were looked at last, or have a finding;
        at most GROUPS_PER_ROUND_MAX of WAITING_MAX, those that wait longest first. No group is skipped.
    HL3 After a round that took more than LONG_SECONDS, as for a group of a hundred members, there are none for so long
        that such rounds take LOOK_SHARE of the time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

import structlog

from rota.coordinator.observe.finding import Finding, Severity
from rota.coordinator.observe.lag import GroupLag
from rota.protocol.group_timeline import GroupEvent

log = structlog.get_logger("rota.health")

ROUND_MS: Final = 1_000
ROUND_SECONDS: Final = 0.003  # the last group of a round may take longer: 256 events a few ms, of 100 members 0.1 s
LONG_SECONDS: Final = 0.05
LOOK_SHARE: Final = 0.02
GROUPS_PER_ROUND_MAX: Final = 256
WAITING_MAX: Final = 10_000  # beyond it the group that waits longest is forgotten
AGAIN_MS: Final = 600_000
LOGGED_MAX: Final = 4_096

Key = tuple[str, str, str]  # group, code, subject


class HealthLog:
    """Looks at groups, round by round. `wall_ms` is ms since the epoch."""

    def __init__(
        self,
        *,
        events: Callable[[str], Sequence[GroupEvent]],
        lag: Callable[[str], GroupLag | None],
        wall_ms: Callable[[], int],
        seconds: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`seconds` is the clock that measures a round."""
        self._seconds = seconds
        self._events, self._lag, self._wall_ms = events, lag, wall_ms
        self._pauses_until = 0.0
        self._logged: OrderedDict[Key, int] = OrderedDict()  # when it was logged last
        self._active: dict[str, dict[Key, Finding]] = {}  # of groups with findings
        self._waiting: OrderedDict[str, None] = OrderedDict()  # to be looked at; all with findings are among them

    def event_added(self, group_id: str) -> None:
        """Let this group be looked at, in its turn."""
        self._waiting.setdefault(group_id, None)
        if len(self._waiting) > WAITING_MAX:
            oldest, _ = self._waiting.popitem(last=False)
            self._active.pop(oldest, None)

    def active(self) -> dict[str, list[Finding]]:
        """Return the findings of the last look at each group that has any."""
        return {group_id: list(found.values()) for group_id, found in self._active.items()}

    def round(self) -> None:
        """Look at the next groups, unless the last ones took more than their share of the time."""
        began = self._seconds()
        if began >= self._pauses_until:
            self._look_at_next(began + ROUND_SECONDS)
            took = self._seconds() - began
            self._pauses_until = began + took / LOOK_SHARE if took > LONG_SECONDS else began

    def _look_at_next(self, end: float) -> None:
        for group_id in list(islice(self._waiting, GROUPS_PER_ROUND_MAX)):
            del self._waiting[group_id]
            self._look(group_id, self._active.pop(group_id, {}))
            if group_id in self._active:
                self._waiting[group_id] = None
            if self._seconds() >= end:
                break

    def _look(self, group_id: str, before: dict[Key, Finding]) -> None:
        now_ms = self._wall_ms()
        from rota.coordinator.observe.health import findings  # not at the start, which has no groups yet

        found = findings(self._events(group_id), self._lag(group_id), now_ms)
        active = {(group_id, finding.code, finding.subject): finding for finding in found}
        for key, finding in active.items():
            self._log(key, finding, now_ms)
        for key, finding in before.items():
            if key not in active and self._logged.pop(key, None) is not None:
                log.info("Group is healthy again", group=group_id, code=finding.code, subject=finding.subject)
        if active:
            self._active[group_id] = active

    def _log(self, key: Key, finding: Finding, now_ms: int) -> None:
        logged_ms = self._logged.get(key)
        if logged_ms is not None and now_ms - logged_ms < AGAIN_MS:
            return
        self._logged[key] = now_ms
        self._logged.move_to_end(key)
        if len(self._logged) > LOGGED_MAX:
            self._logged.popitem(last=False)
        write = log.info if finding.severity == Severity.INFO else log.warning
        write(
            "Group is not healthy",
            group=key[0],
            code=finding.code,
            severity=finding.severity,
            count=finding.count,
            finding=finding.sentence,
            remedy=finding.remedy,
        )

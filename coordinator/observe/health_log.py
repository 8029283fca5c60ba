"""Logs what the health rules find: once when a finding begins, again with its count while it goes on, and its end.

Laws
    HL1 A finding is logged when it begins, then at most once in AGAIN_MS with the latest count, and when it ends.
        LOGGED_MAX findings are remembered. A storm of events makes no storm of lines.
    One round looks at GROUPS_PER_ROUND_MAX groups that have had events since they were looked at last, or have a
    finding; the others wait for the next round, in turn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from rota.coordinator.observe.finding import Finding, Severity
from rota.coordinator.observe.health import findings
from rota.coordinator.observe.lag import GroupLag
from rota.protocol.group_timeline import GroupEvent

log = structlog.get_logger("rota.health")

ROUND_MS: Final = 1_000
GROUPS_PER_ROUND_MAX: Final = 2  # a group of 256 events takes a few ms
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
    ) -> None:
        self._events, self._lag, self._wall_ms = events, lag, wall_ms
        self._logged: OrderedDict[Key, int] = OrderedDict()  # when it was logged last
        self._active: dict[str, dict[Key, Finding]] = {}  # of groups with findings
        self._changed: dict[str, None] = {}  # groups with new events, an ordered set

    def event_added(self, group_id: str) -> None:
        """Let the next round look at this group."""
        self._changed[group_id] = None

    def active(self) -> dict[str, list[Finding]]:
        """Return the findings of the last look at each group that has any."""
        return {group_id: list(found.values()) for group_id, found in self._active.items()}

    def round(self) -> None:
        """Look at the next groups."""
        waiting = [*self._changed, *(group_id for group_id in self._active if group_id not in self._changed)]
        for group_id in waiting[:GROUPS_PER_ROUND_MAX]:
            self._changed.pop(group_id, None)
            found = self._active.pop(group_id, {})  # and back at the end: the others come first in the next round
            self._look(group_id, found)

    def _look(self, group_id: str, before: dict[Key, Finding]) -> None:
        now_ms = self._wall_ms()
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

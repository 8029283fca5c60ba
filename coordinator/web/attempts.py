"""How often passwords may be tried at the console: limits that an attacker cannot use to lock out users. Pure.

Law
    WB25 An attempt counts from its beginning, so that attempts at one time are bounded as well; one that succeeds does
         not count. First logins have a limit for each source and one for all. A user who has logged in from a source
         before has a limit of its own there: failures of others do not lock it out.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final

from rota.coordinator.network.owner import source_of
from rota.protocol.dataclass import dataclass

FAILURES_PER_SOURCE_MAX: Final = 10  # within ATTEMPTS_MS
FAILURES_MAX: Final = 100
ATTEMPTS_MS: Final = 60_000
KNOWN_MAX: Final = 1_000  # pairs of user and source that are remembered


@dataclass(frozen=True, slots=True)
class Attempt:
    """`pair`: user and source. A first login counts for its source, also when another one has succeeded meanwhile."""

    pair: tuple[str, str]
    is_first_login: bool

    @property
    def key(self) -> str | tuple[str, str]:
        return self.pair[1] if self.is_first_login else self.pair


class Attempts:
    """WB25. The attempts of the last ATTEMPTS_MS, but for those that succeeded."""

    def __init__(self) -> None:
        self._since_ms = 0
        self._counts: Counter[str | tuple[str, str]] = Counter()  # by source, or by user and source
        self._first_logins = 0
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()  # the last to log in are last

    def is_known(self, user: str, host: str) -> bool:
        """Return whether the user has logged in from there before."""
        return (user, source_of(host)) in self._known

    def begin(self, user: str, host: str, now_ms: int) -> Attempt | None:
        """Count an attempt; None when it is not allowed."""
        if now_ms - self._since_ms >= ATTEMPTS_MS:
            self._since_ms, self._first_logins = now_ms, 0
            self._counts.clear()
        pair = user, source_of(host)
        attempt = Attempt(pair, is_first_login=pair not in self._known)
        if self._counts[attempt.key] >= FAILURES_PER_SOURCE_MAX:
            return None
        if attempt.is_first_login and self._first_logins >= FAILURES_MAX:
            return None
        self._counts[attempt.key] += 1
        self._first_logins += attempt.is_first_login
        return attempt

    def succeeded(self, attempt: Attempt) -> None:
        """The password was right: the attempt does not count, and the user is known there."""
        self._counts[attempt.key] = max(self._counts[attempt.key] - 1, 0)
        self._first_logins = max(self._first_logins - attempt.is_first_login, 0)
        self._known[attempt.pair] = None
        self._known.move_to_end(attempt.pair)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

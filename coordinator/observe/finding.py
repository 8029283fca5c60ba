"""A finding about a group's health: the codes of the rules, the severities, the thresholds."""

from __future__ import annotations

from typing import Final

from rota.protocol.dataclass import dataclass


class Severity:
    """The values of `severity`."""

    ERROR: Final = "error"  # records are not read, or are read twice
    WARNING: Final = "warning"  # work stops again and again, or will
    INFO: Final = "info"  # wasteful


class Code:
    """The rules: the values of `code`."""

    MEMBER_FLAPS: Final = "member-flaps"
    POLL_INTERVAL_EXCEEDED: Final = "poll-interval-exceeded"
    STATIC_ID_USED_TWICE: Final = "static-id-used-twice"
    SLOW_ASSIGNMENT: Final = "slow-assignment"
    SLOW_REVOCATION: Final = "slow-revocation"
    ASSIGNOR_MISMATCH: Final = "assignor-mismatch"
    IDLE_MEMBERS: Final = "idle-members"
    STUCK_PARTITION: Final = "stuck-partition"
    OFFSETS_EXPIRE_SOON: Final = "offsets-expire-soon"
    NEVER_STABLE: Final = "never-stable"
    COMMITS_REFUSED: Final = "commits-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem. Its code and its `subject`, the affected object, identify it."""

    code: str
    severity: str
    subject: str
    sentence: str
    remedy: str
    evidence: tuple[str, ...]
    count: int  # how often it happened in the window
    last_ms: int  # when it happened last, ms since the epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a rule finds something; times in ms."""

    window_ms: int = 600_000
    flaps: int = 3  # a member leaves or expires that often in the window
    poll_timeouts: int = 2
    slow_assignment_ms: int = 3_000
    slow_assignments: int = 2
    slow_revocation_ms: int = 5_000
    slow_revocations: int = 2
    dead_ms: int = 60_000  # a member without a heartbeat for so long is removed: group.consumer.max.session.timeout.ms
    refused_commits: int = 10
    stuck_records: int = 100  # lag of a partition below that is not worth a finding
    expires_soon_ms: int = 86_400_000
    settled_ms: int = 30_000  # a group that is stable for so long has settled
    unsettled_ms: int = 300_000  # a group that has not settled for so long never does


DEFAULTS: Final = Thresholds()

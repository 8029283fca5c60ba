"""Health rules of a group over its timeline and lag, each with a remedy. Pure.

`findings(events, lag, now_ms)` returns what the rules find, the worst first.

Laws
    A rule looks at the events of the last `window_ms` only, so that a finding ends when its cause has ended.
    A healthy group (members join, work, restart once, leave) has no finding.
    The same member after a restart is known by its instance id, or by its client id and host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rota.coordinator.observe.explain import (
    Outcome,
    Rebalance,
    clock,
    event_sentence,
    member_named,
    plural,
    rebalances,
    seconds,
    sentence,
)
from rota.coordinator.observe.finding import DEFAULTS, Code, Finding, Severity, Thresholds
from rota.coordinator.observe.lag import GroupLag, PartitionLag
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import NONE, EventMember, EventType, GroupEvent

EVIDENCE_MAX: Final = 3  # events that a finding shows: the last ones
POLL_TIMEOUT: Final = ("poll timeout", "poll interval", "max.poll.interval")  # in a client's reason for leaving
Identity = tuple[str, ...]
DEPARTURES: Final = (
    EventType.MEMBER_LEFT,
    EventType.MEMBER_EXPIRED,
    EventType.MEMBERS_NOT_REJOINED,
    EventType.MEMBERS_NOT_SYNCED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The input of the rules: all events, those of the window, all rebalances, the lag."""

    events: Sequence[GroupEvent]
    recent: Sequence[GroupEvent]
    rebalances: Sequence[Rebalance]
    lag: GroupLag | None
    now_ms: int
    limits: Thresholds


def findings(
    events: Sequence[GroupEvent], lag: GroupLag | None, now_ms: int, limits: Thresholds = DEFAULTS
) -> tuple[Finding, ...]:
    """Return the findings for these events (oldest first), the worst first. `now_ms` is ms since the epoch."""
    recent = [event for event in events if event.time_ms > now_ms - limits.window_ms]
    facts = Facts(events=events, recent=recent, rebalances=rebalances(events), lag=lag, now_ms=now_ms, limits=limits)
    order = (Severity.ERROR, Severity.WARNING, Severity.INFO)
    return tuple(sorted((finding for rule in RULES for finding in rule(facts)), key=lambda f: order.index(f.severity)))


# ---- rules about members


def _flaps(facts: Facts) -> Iterator[Finding]:
    departures = _of_type(facts.recent, EventType.MEMBER_LEFT, EventType.MEMBER_EXPIRED)
    peaks = _peaks(facts.events)
    for member, events in _by_member(departures):
        polled_late = sum(map(_is_poll_timeout, events))
        if len(events) - polled_late >= facts.limits.flaps * peaks[identity(member)]:
            expired = len(_of_type(events, EventType.MEMBER_EXPIRED))
            yield _finding(
                Code.MEMBER_FLAPS,
                Severity.WARNING,
                member_named(member),
                f"{member_named(member)} left or was lost {len(events)} times ({expired} times without a heartbeat)",
                "Look why it restarts: its log, memory limit and liveness probe. A group.instance.id makes restarts"
                " within session.timeout.ms free of rebalances; a longer session.timeout.ms bridges pauses.",
                events,
            )


def _peaks(events: Sequence[GroupEvent]) -> dict[Identity, int]:
    """Return how many members of each identity there were at once: processes of one host may share a client id."""
    present: dict[Identity, set[str]] = defaultdict(set)
    peaks: dict[Identity, int] = {}
    for event in events:
        for member in event.members:
            name = identity(member)
            if event.type == EventType.MEMBER_JOINED:
                present[name].add(member.member_id)
            elif event.type in DEPARTURES:
                present[name].discard(member.member_id)
            peaks[name] = max(peaks.get(name, 1), len(present[name]))
    return peaks


def _poll_interval(facts: Facts) -> Iterator[Finding]:
    late = [event for event in _of_type(facts.recent, EventType.MEMBER_LEFT) if _is_poll_timeout(event)]
    late += _of_type(facts.recent, EventType.MEMBERS_NOT_REJOINED)
    for member, events in _by_member(late):
        if len(events) >= facts.limits.poll_timeouts:
            yield _finding(
                Code.POLL_INTERVAL_EXCEEDED,
                Severity.ERROR,
                member_named(member),
                f"{member_named(member)} called poll too late {len(events)} times: what it had read is read again",
                "Process fewer records for each poll (max.poll.records), move slow work to a thread and pause the"
                " partitions, or raise max.poll.interval.ms above the longest processing time.",
                events,
            )


def _static_twice(facts: Facts) -> Iterator[Finding]:
    fenced = [
        event
        for event in _of_type(facts.recent, EventType.REQUESTS_REFUSED)
        if event.error_code == ErrorCode.FENCED_INSTANCE_ID
    ]
    for member, events in _by_member(fenced):
        replaced = [
            event
            for event in _of_type(facts.recent, EventType.STATIC_MEMBER_REPLACED)
            if event.members and event.members[0].instance_id == member.instance_id
        ]
        hosts = sorted({other.client_host.removeprefix("/") for event in replaced for other in event.members} - {""})
        yield _finding(
            Code.STATIC_ID_USED_TWICE,
            Severity.ERROR,
            f"static member {member.instance_id}",
            f"two clients use the group.instance.id {member.instance_id}"
            + (f" (from {', '.join(hosts)})" if hosts else "")
            + ": each one fences the other",
            "Give each client an id of its own, for example its host or pod name. Two copies of one deployment"
            " must not share a configuration with a fixed group.instance.id.",
            [*replaced, *events],
        )


def _assignor_mismatch(facts: Facts) -> Iterator[Finding]:
    refused = [
        event
        for event in _of_type(facts.recent, EventType.MEMBER_REFUSED)
        if event.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    ]
    for member, events in _by_member(refused):
        yield _finding(
            Code.ASSIGNOR_MISMATCH,
            Severity.ERROR,
            member_named(member),
            f"{member_named(member)} cannot join: {events[-1].reason}",
            "Give all members an assignor in common (partition.assignment.strategy). To change it, roll all"
            " members twice: first with both assignors, then with the new one alone.",
            events,
        )


def _commits_refused(facts: Facts) -> Iterator[Finding]:
    refused = [
        event
        for event in _of_type(facts.recent, EventType.REQUESTS_REFUSED)
        if event.operation == "offset-commit" and event.error_code != ErrorCode.FENCED_INSTANCE_ID
    ]
    for member, events in _by_member(refused):
        counts: dict[tuple[int, int], int] = {}  # an event has the count since its generation began
        for event in events:
            counts[event.generation, event.error_code] = event.count
        count = sum(counts.values())
        if count >= facts.limits.refused_commits:
            yield _finding(
                Code.COMMITS_REFUSED,
                Severity.WARNING,
                member_named(member),
                f"{count} commits of {member_named(member)} were refused: it is not in the current generation",
                "It lost its partitions in a rebalance and goes on with their records. Commit in the rebalance"
                " listener before partitions are revoked, and stop work on partitions that were lost.",
                events,
                count=count,
            )


# ---- rules about the group


def _slow_assignment(facts: Facts) -> Iterator[Finding]:
    slow = [
        event
        for event in _of_type(facts.recent, EventType.ASSIGNED)
        if event.duration_ms >= facts.limits.slow_assignment_ms
    ]
    for member, events in _by_member(slow):
        if len(events) >= facts.limits.slow_assignments:
            longest = max(event.duration_ms for event in events)
            yield _finding(
                Code.SLOW_ASSIGNMENT,
                Severity.WARNING,
                member_named(member),
                f"the leader, {member_named(member)}, took up to {seconds(longest)} to assign the partitions",
                "All members wait for it. Look whether it is short of CPU or its assignor asks other services;"
                " a rebalance listener that blocks delays it, too.",
                events,
            )


def _idle_members(facts: Facts) -> Iterator[Finding]:
    last = next((event for event in reversed(facts.events) if _ends_or_starts(event)), None)
    if last is None or last.type != EventType.ASSIGNED or last.partition_count == NONE:
        return
    idle = last.member_count - last.partition_count
    if idle > 0:
        yield _finding(
            Code.IDLE_MEMBERS,
            Severity.INFO,
            "members",
            f"{plural(last.member_count, 'member')} share {plural(last.partition_count, 'partition')}:"
            f" {plural(idle, 'member')} at least have nothing to do",
            "Add partitions to the topic, or run fewer members. Idle members are useful as standbys only.",
            [last],
        )


def _never_stable(facts: Facts) -> Iterator[Finding]:
    run: list[Rebalance] = []
    for rebalance in facts.rebalances:
        if run and _settled_between(run[-1], rebalance.started_ms, facts.limits):
            run = []
        run.append(rebalance)
    if not run or _settled_between(run[-1], facts.now_ms, facts.limits):
        return
    lasted_ms = facts.now_ms - run[0].started_ms
    if lasted_ms < facts.limits.unsettled_ms:
        return
    frequent = max(_by_member([rebalance.events[0] for rebalance in run]), key=lambda pair: len(pair[1]), default=None)
    most = f"; most of them by {member_named(frequent[0])} ({len(frequent[1])})" if frequent is not None else ""
    yield _finding(
        Code.NEVER_STABLE,
        Severity.ERROR,
        "group",
        f"the group has been rebalancing for {seconds(lasted_ms)}: {plural(len(run), 'rebalance')}{most}",
        "Find the member that starts them in the evidence and stop it. Members that take longer to join than"
        " others' sessions last need a longer max.poll.interval.ms; cooperative-sticky keeps the others at work.",
        [rebalance.events[0] for rebalance in run],
    )


def _settled_between(rebalance: Rebalance, until_ms: int, limits: Thresholds) -> bool:
    """Return whether the group was stable or empty for a while after this rebalance."""
    if rebalance.outcome == Outcome.EMPTY:
        return True
    return rebalance.outcome == Outcome.STABLE and until_ms - rebalance.ended_ms >= limits.settled_ms


# ---- rules about lag


def _stuck_partition(facts: Facts) -> Iterator[Finding]:
    if facts.lag is not None:
        yield from (_stuck(partition, facts) for partition in stuck_partitions(facts.lag, facts.limits))


def stuck_partitions(lag: GroupLag, limits: Thresholds = DEFAULTS) -> Iterator[PartitionLag]:
    """Iterate over the partitions whose lag grows while that of all others of the topic does not."""
    by_topic: dict[str, list[PartitionLag]] = defaultdict(list)
    for partition in lag.partitions:
        if partition.has_trend:
            by_topic[partition.topic].append(partition)
    for partitions in by_topic.values():
        growing = [partition for partition in partitions if partition.trend > 0]
        if len(growing) != 1 or growing[0].records < limits.stuck_records:
            continue
        siblings = [partition for partition in partitions if partition is not growing[0]]
        if siblings and all(partition.trend < 0 or partition.records == 0 for partition in siblings):
            yield growing[0]


def _stuck(partition: PartitionLag, facts: Facts) -> Finding:
    name = f"{partition.topic}-{partition.partition}"
    owner = f", read by {partition.member_id}," if partition.member_id else ""
    return Finding(
        code=Code.STUCK_PARTITION,
        severity=Severity.WARNING,
        subject=name,
        sentence=sentence(
            f"the lag of {name}{owner} grows by {partition.trend:.1f} records/s; its siblings' does not."
        ),
        remedy="A record that fails again and again, or one key with most of the records? Look at the record at the"
        f" committed offset {partition.committed}, and at the keys.",
        evidence=(f"{partition.records} records behind at offset {partition.committed} of {partition.end}.",),
        count=1,
        last_ms=facts.now_ms,
    )


def _offsets_expire(facts: Facts) -> Iterator[Finding]:
    soon_ms = facts.now_ms + facts.limits.expires_soon_ms
    partitions = () if facts.lag is None else facts.lag.partitions
    expiring = [
        partition for partition in partitions if partition.expires_ms != NONE and partition.expires_ms < soon_ms
    ]
    if expiring:
        first = min(expiring, key=lambda partition: partition.expires_ms)
        yield Finding(
            code=Code.OFFSETS_EXPIRE_SOON,
            severity=Severity.WARNING,
            subject="offsets",
            sentence=f"The offsets of {plural(len(expiring), 'partition')} expire from {clock(first.expires_ms)} on.",
            remedy="Start a member of the group, or raise offsets.retention.minutes. Afterwards the group begins where"
            " auto.offset.reset says: records are skipped, or all are read again.",
            evidence=_commit_evidence(first),
            count=len(expiring),
            last_ms=facts.now_ms,
        )


def _commit_evidence(partition: PartitionLag) -> tuple[str, ...]:
    """Return when the offset was committed; the command line does not know it."""
    if partition.commit_ms == NONE:
        return ()
    return (f"{partition.topic}-{partition.partition} was committed at {clock(partition.commit_ms)}.",)


RULES: Final[tuple[Callable[[Facts], Iterator[Finding]], ...]] = (
    _flaps,
    _poll_interval,
    _static_twice,
    _slow_assignment,
    _assignor_mismatch,
    _idle_members,
    _stuck_partition,
    _offsets_expire,
    _never_stable,
    _commits_refused,
)


# ---- what the rules share


def _finding(
    code: str,
    severity: str,
    subject: str,
    text: str,
    remedy: str,
    events: Sequence[GroupEvent],
    *,
    count: int | None = None,
) -> Finding:
    ordered = sorted(events, key=lambda event: event.sequence)
    return Finding(
        code=code,
        severity=severity,
        subject=subject,
        sentence=sentence(text) + ".",
        remedy=remedy,
        evidence=tuple(f"{clock(event.time_ms)}: {event_sentence(event)}" for event in ordered[-EVIDENCE_MAX:]),
        count=len(events) if count is None else count,
        last_ms=max(event.time_ms for event in events),
    )


def _of_type(events: Iterable[GroupEvent], *types: EventType) -> list[GroupEvent]:
    return [event for event in events if event.type in types]


def _by_member(events: Iterable[GroupEvent]) -> list[tuple[EventMember, list[GroupEvent]]]:
    """Return the events of each member, known across restarts."""
    found: dict[Identity, tuple[EventMember, list[GroupEvent]]] = {}
    for event in events:
        for member in event.members:
            found.setdefault(identity(member), (member, []))[1].append(event)
    return list(found.values())


def identity(member: EventMember) -> Identity:
    """Return an identity that survives a restart: the instance id, else client id and host, else the member id."""
    if member.instance_id is not None:
        return "instance", member.instance_id
    if member.client_id or member.client_host:
        return "client", member.client_id, member.client_host
    return "member", member.member_id


def _is_poll_timeout(event: GroupEvent) -> bool:
    reason = (event.client_reason or "").lower()
    return any(words in reason for words in POLL_TIMEOUT)


def _ends_or_starts(event: GroupEvent) -> bool:
    return event.type in (EventType.REBALANCE_STARTED, EventType.ASSIGNED, EventType.EMPTIED, EventType.LOADED)

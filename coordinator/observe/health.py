"""Health rules of a group over its timeline and lag, each with a remedy. Pure.

`findings(events, lag, now_ms)` returns what the rules find, the worst first.

Laws
    A rule looks at the events of the last `window_ms` only, so that a finding ends when its cause has ended.
    A healthy group (members join, work, restart once, leave) has no finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rota.coordinator.observe.explain import clock, member_named, members_named, plural, seconds, sentence
from rota.coordinator.observe.facts import DEPARTURES, Facts, Identity, by_member, finding, identity, of_type
from rota.coordinator.observe.finding import DEFAULTS, Code, Finding, Severity, Thresholds
from rota.coordinator.observe.lag import GroupLag, PartitionLag
from rota.coordinator.observe.rebalances import Outcome, Rebalance, rebalances
from rota.coordinator.observe.refusal_rules import assignor_mismatch, commits_refused, static_twice
from rota.protocol.group_timeline import NONE, EventType, GroupEvent

POLL_TIMEOUT: Final = ("poll timeout", "poll interval", "max.poll.interval")  # in a client's reason for leaving


def findings(
    events: Sequence[GroupEvent], lag: GroupLag | None, now_ms: int, limits: Thresholds = DEFAULTS
) -> tuple[Finding, ...]:
    """Return the findings for these events (oldest first), the worst first. `now_ms` is ms since the epoch."""
    recent = [event for event in events if event.time_ms > now_ms - limits.window_ms]
    facts = Facts(events=events, recent=recent, rebalances=rebalances(events), lag=lag, now_ms=now_ms, limits=limits)
    order = (Severity.ERROR, Severity.WARNING, Severity.INFO)
    return tuple(sorted((found for rule in RULES for found in rule(facts)), key=lambda f: order.index(f.severity)))


# ---- rules about members


def _flaps(facts: Facts) -> Iterator[Finding]:
    departures = of_type(facts.recent, EventType.MEMBER_LEFT, EventType.MEMBER_EXPIRED)
    peaks = _peaks(facts.events)
    for member, events in by_member(departures):
        polled_late = sum(map(_is_poll_timeout, events))
        if len(events) - polled_late >= facts.limits.flaps * peaks[identity(member)]:
            expired = len(of_type(events, EventType.MEMBER_EXPIRED))
            yield finding(
                Code.MEMBER_FLAPS,
                Severity.WARNING,
                member_named(member),
                f"{member_named(member)} left or was lost {len(events)} times ({expired} times without a heartbeat)",
                "Look why it restarts: its log, memory limit and liveness probe. A group.instance.id makes restarts"
                " within session.timeout.ms free of rebalances; a longer session.timeout.ms bridges pauses. (In a group"
                " of the consumer protocol it is group.consumer.session.timeout.ms of the broker.)",
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
    late = [event for event in of_type(facts.recent, EventType.MEMBER_LEFT) if _is_poll_timeout(event)]
    late += of_type(facts.recent, EventType.MEMBERS_NOT_REJOINED, EventType.MEMBERS_NOT_REVOKED)
    for member, events in by_member(late):
        if len(events) >= facts.limits.poll_timeouts:
            yield finding(
                Code.POLL_INTERVAL_EXCEEDED,
                Severity.ERROR,
                member_named(member),
                f"{member_named(member)} called poll too late {len(events)} times: what it had read is read again",
                "Process fewer records for each poll (max.poll.records), move slow work to a thread and pause the"
                " partitions, or raise max.poll.interval.ms above the longest processing time.",
                events,
            )


# ---- rules about the group


def _slow_assignment(facts: Facts) -> Iterator[Finding]:
    slow = [
        event
        for event in of_type(facts.recent, EventType.ASSIGNED)
        if event.duration_ms >= facts.limits.slow_assignment_ms
    ]
    for member, events in by_member(slow):
        if len(events) >= facts.limits.slow_assignments:
            longest = max(event.duration_ms for event in events)
            yield finding(
                Code.SLOW_ASSIGNMENT,
                Severity.WARNING,
                member_named(member),
                f"the leader, {member_named(member)}, took up to {seconds(longest)} to assign the partitions",
                "All members wait for it. Look whether it is short of CPU or its assignor asks other services;"
                " a rebalance listener that blocks delays it, too.",
                events,
            )


def _slow_revocation(facts: Facts) -> Iterator[Finding]:
    """KIP-848: others get partitions only when the member that has them says that it does not use them any more."""
    slow = [
        replace(event, members=tuple(each for each in event.members if each.wait_ms >= facts.limits.slow_revocation_ms))
        for event in of_type(facts.recent, EventType.RECONCILED)
    ]
    for member, events in by_member(slow):
        if len(events) >= facts.limits.slow_revocations:
            waits = (each.wait_ms for event in events for each in event.members if identity(each) == identity(member))
            yield finding(
                Code.SLOW_REVOCATION,
                Severity.WARNING,
                member_named(member),
                f"{member_named(member)} took up to {seconds(max(waits))} to give up partitions",
                "Their new owners wait for it. It has to call poll more often: process fewer records for each poll"
                " (max.poll.records); a rebalance listener that blocks delays it, too.",
                events,
            )


def _idle_members(facts: Facts) -> Iterator[Finding]:
    last = next((event for event in reversed(facts.events) if _ends_or_starts(event)), None)
    if last is None or last.type != EventType.ASSIGNED or last.partition_count == NONE:
        return
    idle = last.member_count - last.partition_count
    if idle > 0:
        yield finding(
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
        if run and _settled_between(run[-1], rebalance.started_ms, facts):
            run = []
        run.append(rebalance)
    if not run or _settled_between(run[-1], facts.now_ms, facts):
        return
    lasted_ms = facts.now_ms - run[0].started_ms
    if lasted_ms < facts.limits.unsettled_ms:
        return
    frequent = max(by_member([rebalance.events[0] for rebalance in run]), key=lambda pair: len(pair[1]), default=None)
    most = f"; most of them by {member_named(frequent[0])} ({len(frequent[1])})" if frequent is not None else ""
    yield finding(
        Code.NEVER_STABLE,
        Severity.ERROR,
        "group",
        f"the group has been rebalancing for {seconds(lasted_ms)}: {plural(len(run), 'rebalance')}{most}"
        + _blocked(run[-1]),
        "Find the member that starts them in the evidence and stop it. Members that take longer to join than"
        " others' sessions last need a longer max.poll.interval.ms; cooperative-sticky keeps the others at work.",
        [rebalance.events[0] for rebalance in run],
    )


def _blocked(rebalance: Rebalance) -> str:
    """Name the members that keep partitions for which others wait, in a group of the consumer protocol."""
    is_blocked = rebalance.outcome == Outcome.UNDER_WAY and rebalance.assignment_ms != NONE and rebalance.waited_for
    return f"; {members_named(rebalance.waited_for)} did not give up partitions yet" if is_blocked else ""


def _settled_between(rebalance: Rebalance, until_ms: int, facts: Facts) -> bool:
    """Return whether the group was stable or empty for a while after this rebalance."""
    outcome = rebalance.outcome
    if outcome == Outcome.INTERRUPTED:
        outcome = _as_loaded(rebalance, facts)
    if outcome == Outcome.EMPTY:
        return True
    return outcome == Outcome.STABLE and until_ms - rebalance.ended_ms >= facts.limits.settled_ms


def _as_loaded(rebalance: Rebalance, facts: Facts) -> str:
    """Return the outcome of an interrupted rebalance: another coordinator may have loaded the group at rest."""
    at_rest = {"Stable": Outcome.STABLE, "Empty": Outcome.EMPTY}
    loaded = [event for event in of_type(facts.events, EventType.LOADED) if event.time_ms == rebalance.ended_ms]
    return at_rest.get(loaded[-1].state, rebalance.outcome) if loaded else rebalance.outcome


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
    static_twice,
    _slow_assignment,
    _slow_revocation,
    assignor_mismatch,
    _idle_members,
    _stuck_partition,
    _offsets_expire,
    _never_stable,
    commits_refused,
)


# ---- what they ask of an event


def _is_poll_timeout(event: GroupEvent) -> bool:
    reason = (event.client_reason or "").lower()
    return any(words in reason for words in POLL_TIMEOUT)


def _ends_or_starts(event: GroupEvent) -> bool:
    return event.type in (EventType.REBALANCE_STARTED, EventType.ASSIGNED, EventType.EMPTIED, EventType.LOADED)

"""`rota groups why`: the last rebalances of a group in sentences, from the topic `__rota_group_timeline`.

Laws
    The timeline needs no support of the broker but Fetch: any client can read the same records (docs/TIMELINE.md).
    A record that cannot be decoded is skipped: a newer broker may have written it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import add_subcommand, seconds_or_zero, whole
from rota.cli.group_details import lag_documents, largest_seconds, total_lag
from rota.cli.session import Session
from rota.cli.settings import config_of
from rota.client.errors import AdminFailed, KafkaError
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import TOPIC, GroupEvent, decode_key, decode_value
from rota.protocol.wire import DecodeError

if TYPE_CHECKING:
    from rota.cli.arguments import Subcommands
    from rota.client import Admin, Consumer, GroupDescription
    from rota.coordinator.observe.lag import GroupLag

REBALANCES_SHOWN: Final = 3
LAGS_SHOWN: Final = 10  # partitions
POLL_MS: Final = 500
TREND_S: Final = 2.0
RETENTION: Final = "offsets.retention.minutes"


def add_why(commands: Subcommands) -> None:
    """Declare the subcommand."""
    add = add_subcommand(commands, "why", explain_group, "say why a group rebalanced, who was slow and what moved")
    add.add_argument("group", metavar="GROUP")
    add.add_argument(
        "--last", type=whole(1), default=REBALANCES_SHOWN, metavar="N", help="so many rebalances; default %(default)s"
    )
    add.add_argument(
        "--trend",
        type=seconds_or_zero,
        default=TREND_S,
        metavar="SECONDS",
        help="time between two looks at the lag, where a partition may be stuck; 0: look once; default %(default)s",
    )
    add.add_argument("--events", action="store_true", help="all events that are kept, one a line")


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What a broker says of a group: its timeline, the lag as JSON, the lag for the health rules, and when the
    offsets expire."""

    events: list[GroupEvent]
    offsets: list[dict[str, Any]]
    lag: GroupLag
    expires_ms: int | None


async def explain_group(session: Session) -> None:
    from rota.coordinator.observe.explain import as_json, event_name, event_sentence, sentences
    from rota.coordinator.observe.health import findings
    from rota.coordinator.observe.rebalances import rebalances

    options = session.options
    known = await _known(session)
    events, lags = known.events, known.offsets
    found = rebalances(events)
    shown = found[-options.last :]
    document = {
        "group": options.group,
        "rebalances": [{**as_json(each), "sentences": list(sentences(each))} for each in shown],
        "findings": [as_json(finding) for finding in findings(events, known.lag, known.lag.time_ms)],
        "lag": {
            "records": total_lag(lags),
            "seconds": largest_seconds(lags),
            "expires_ms": known.expires_ms,
            "offsets": lags,
        },
        "events": [as_json(event) for event in events] if options.events else None,
    }
    session.out.show(document)
    for number, rebalance in enumerate(shown):
        session.out.note("" if number else f"{len(found)} rebalances are kept; the last {len(shown)}:")
        for line in sentences(rebalance):
            session.out.note(line)
    for finding in document["findings"]:
        session.out.note("")
        session.out.note(f"{finding['severity']} ({finding['code']}): {finding['sentence']} {finding['remedy']}")
    for line in lag_lines(lags):
        session.out.note(line)
    for event in events if options.events else ():
        session.out.note(f"{event.sequence}  {event_name(event)}: {event_sentence(event)}")
    if not shown:
        session.out.note("no rebalance is kept; --events shows what is known")


async def _known(session: Session) -> GroupReport:
    """Return what is known of the group. Raises KafkaError."""
    from rota.cli.group_health import expires_ms, health_lag, is_possibly_stuck, trends

    group, trend_s = session.options.group, session.options.trend
    events = await _events(session)
    async with session.admin() as admin:
        described = await _described(admin, group)
        expiry_ms = expires_ms(described, events, await _retention_ms(admin, described))
        offsets, rates = lag_documents(await admin.group_lag(group, with_age=True)), {}
        if trend_s and is_possibly_stuck(offsets):
            before, began = offsets, time.monotonic()
            await asyncio.sleep(trend_s)
            offsets = lag_documents(await admin.group_lag(group, with_age=True))
            rates = trends(before, offsets, time.monotonic() - began)
    lag = health_lag(group, int(time.time() * 1000), offsets, rates, expiry_ms)
    return GroupReport(events, offsets, lag, expiry_ms)


async def _events(session: Session) -> list[GroupEvent]:
    from rota.client import Consumer, ConsumerConfig

    group = session.options.group
    settings = session.settings() | {"allow.auto.create.topics": "false", "enable.auto.commit": "false"}
    settings.pop("group.id", None)
    config = config_of(ConsumerConfig, settings)
    await session.require_listener(config)
    async with Consumer(config) as consumer:
        events = await read_events(consumer, group)
    if not events:
        raise KafkaError(
            f"nothing is known of group {group}: no event of it is kept. Check the name with `rota groups list`"
        )
    return events


async def _described(admin: Admin, group: str) -> GroupDescription | None:
    """Return the group; None when it was deleted: its events are kept for a while."""
    try:
        return (await admin.describe_groups([group]))[group]
    except AdminFailed as failure:
        if failure.codes == {ErrorCode.GROUP_ID_NOT_FOUND}:
            return None
        raise


async def _retention_ms(admin: Admin, group: GroupDescription | None) -> int | None:
    """Return the coordinator's offsets.retention.minutes in ms; None when that client may not see it."""
    from rota.client import ConfigResource

    if group is None or group.coordinator is None or group.state != "Empty":
        return None
    broker = ConfigResource.broker(group.coordinator.id)
    try:
        value = (await admin.describe_configs([broker], keys=[RETENTION]))[broker][RETENTION].value
    except (KafkaError, KeyError):
        return None
    return None if value is None else int(value) * 60_000


def lag_lines(lags: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Iterate over the lag in sentences, the partitions that are furthest behind first; nothing without offsets."""
    from rota.coordinator.observe.explain import plural, seconds

    known = sorted((lag for lag in lags if lag["lag"] is not None), key=lambda lag: -lag["lag"])
    if not known:
        return
    yield ""
    yield f"Lag: {plural(total_lag(known) or 0, 'record')} in {plural(len(known), 'partition')}."
    for lag in known[:LAGS_SHOWN]:
        owner = f"; its member is {lag['member']}" if lag["member"] else ""
        place = f"{lag['topic']}-{lag['partition']}"
        age = f", the oldest {seconds(int(lag['lag_seconds'] * 1000))} old" if lag["lag_seconds"] else ""
        yield f"  {place}: {plural(lag['lag'], 'record')}, read to {lag['committed']} of {lag['end']}{age}{owner}"


async def read_events(consumer: Consumer, group: str) -> list[GroupEvent]:
    """Return the events of a group, oldest first. Raises KafkaError where the cluster keeps no timeline."""
    from rota.coordinator.runtime.routing import shard_of

    partitions = (await consumer.topics()).get(TOPIC, ())
    if not partitions:
        raise KafkaError(
            f"this cluster keeps no timeline of its groups: it has no topic {TOPIC}. Rota writes it, when "
            "rota.group.timeline.topic.enable is true, with the first event of a group; Apache Kafka has none"
        )
    partition = TopicPartition(TOPIC, shard_of(group, len(partitions)))
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = (await consumer.end_offsets([partition]))[partition]
    events: dict[int, GroupEvent] = {}
    while await consumer.position(partition) < end:
        for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
            apply(events, group, records)
    return sorted(events.values(), key=lambda event: event.sequence)


def apply(events: dict[int, GroupEvent], group: str, records: Iterable[ConsumerRecord]) -> None:
    """Put the events of the group into their slots; a tombstone empties its slot."""
    for record in records:
        slot, event = _decoded(record, group)
        if slot is None:
            continue
        if event is None:
            events.pop(slot, None)
        else:
            events[slot] = event


def _decoded(record: ConsumerRecord, group: str) -> tuple[int | None, GroupEvent | None]:
    """Return slot and event; no slot for a record of another group or one that cannot be decoded."""
    try:
        key = decode_key(bytes(record.key or b""))
        if key is None or key.group != group:
            return None, None
        return key.slot, None if record.value is None else decode_value(bytes(record.value))
    except DecodeError:
        return None, None

"""A group's timeline in a cluster: the new coordinator has the events of the old one and continues it."""

from __future__ import annotations

from tests.cluster.brokers import Brokers, until
from tests.interop.clients import CLIENTS
from tests.interop.members import Member, Settings

from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, GROUP_TIMELINE
from rota.coordinator.observe.rebalances import rebalances
from rota.protocol.group_timeline import EventType, GroupEvent, Trigger


def timeline(brokers: Brokers) -> tuple[GroupEvent, ...]:
    """Return the events as the coordinator has them."""
    return brokers.by_id[brokers.coordinator("g")].groups.timelines.of("g")


def has(brokers: Brokers, event_type: EventType, broker: int) -> bool:
    return any(event.type == event_type and event.broker == broker for event in timeline(brokers))


def join(brokers: Brokers, client_id: str) -> Member:
    """Return a member of librdkafka, in a thread."""
    settings = Settings(group="g", topics=["t"], client_id=client_id, session_ms=6_000, metadata_age_ms=500)
    return CLIENTS["confluent-kafka"](brokers.bootstrap(), settings)


async def test_after_a_failover_the_new_coordinator_has_the_timeline() -> None:
    async with Brokers(3) as brokers:
        await brokers.by_id[1].topics.create("t", 4, 3)
        members = [join(brokers, "alpha")]
        await until(lambda: len(members[0].owned) == 4, "alpha has all partitions")
        members.append(join(brokers, "beta"))
        await until(lambda: all(len(member.owned) == 2 for member in members), "beta has its share")
        await until(lambda: brokers.high_watermarks(GROUP_TIMELINE) == len(timeline(brokers)), "events are replicated")
        old, before = brokers.coordinator("g"), timeline(brokers)
        for index in range(4):
            assert brokers.leader(GROUP_TIMELINE, index) == brokers.leader(CONSUMER_OFFSETS, index)
        await brokers.crash(old)
        await until(lambda: brokers.coordinator("g") not in (-1, old), "a new coordinator")
        new = brokers.coordinator("g")
        await until(lambda: has(brokers, EventType.LOADED, new), "the new coordinator has loaded the group")
        await until(lambda: timeline(brokers)[: len(before)] == before, "the events of the old coordinator")
        members[1].stop()
        left = EventType.MEMBER_LEFT, EventType.MEMBER_EXPIRED  # it may close before it has found the new coordinator
        await until(lambda: any(has(brokers, event_type, new) for event_type in left), "beta is gone")
        events = timeline(brokers)
        assert [event.sequence for event in events] == list(range(len(events)))
        assert {event.broker for event in events} == {old, new}
        assert [(each.trigger, each.triggered_by[0].client_id) for each in rebalances(events)][:2] == [
            (Trigger.MEMBER_JOINED, "alpha"),
            (Trigger.MEMBER_JOINED, "beta"),
        ]
        members[0].stop()
        await until(lambda: not any(member._thread.is_alive() for member in members), "the members are closed")

"""The faults of a session in this process. Its promises: tests/contract/test_store_sessions.py."""

from __future__ import annotations

import pytest

from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import EventType, OutcomeUnknown, StoreFailed, WatchEvent
from rota.coordinator.metadata.tree_session import TreeSession

CREATED, CHANGED = EventType.CREATED, EventType.CHANGED


def pair() -> tuple[TreeSession, TreeSession]:
    shared = SharedTree()
    return TreeSession(shared), TreeSession(shared)


def test_late_watches_fire_before_the_next_read() -> None:
    """Law S5."""
    writer, reader = pair()
    events: list[WatchEvent] = []
    reader.hold_events()
    for path in ("/a", "/b", "/c"):
        run_eagerly(reader.exists(path, events.append))
    run_eagerly(writer.create("/a"))
    assert events == []
    run_eagerly(reader.exists("/x"))
    assert events == [WatchEvent("/a", CREATED)]
    run_eagerly(writer.create("/b"))
    assert len(events) == 1
    reader.release_events()
    run_eagerly(writer.create("/c"))
    assert events == [WatchEvent(path, CREATED) for path in ("/a", "/b", "/c")]


def test_the_watches_of_a_session_s_own_change_are_never_late() -> None:
    """Law S5."""
    session, _ = pair()
    events: list[WatchEvent] = []
    session.hold_events()
    run_eagerly(session.exists("/a", events.append))
    run_eagerly(session.create("/a"))
    assert events == [WatchEvent("/a", CREATED)]


@pytest.mark.parametrize("applied", [True, False])
def test_a_change_whose_outcome_is_unknown_is_applied_or_not(applied: bool) -> None:
    writer, reader = pair()
    writer.lose_next_commit(applied=applied)
    with pytest.raises(OutcomeUnknown):
        run_eagerly(writer.create("/a"))
    assert (run_eagerly(reader.exists("/a")) is not None) is applied
    run_eagerly(writer.create("/b"))


def test_a_session_that_was_closed_is_not_followed_by_another() -> None:
    session, other = pair()
    run_eagerly(session.close())
    run_eagerly(session.expire())
    session.suspend()
    session.resume()
    with pytest.raises(StoreFailed, match="the store is closed"):
        run_eagerly(session.exists("/"))
    assert run_eagerly(other.exists("/")) is not None

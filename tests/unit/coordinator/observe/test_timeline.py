"""The timeline keeps the last lines of each group, in order and within bounds."""

from __future__ import annotations

from rota.coordinator.group.effects import Note
from rota.coordinator.observe.timeline import (
    GROUPS_MAX,
    LINES_MAX,
    LINES_PER_GROUP_MAX,
    TEXT_CHARS_MAX,
    Timelines,
    brief,
)


def test_lines_come_back_in_order() -> None:
    timelines = Timelines()
    for at_ms in range(3):
        timelines.add("g", at_ms, Note("Stabilized group", {"generation": at_ms}))
    assert [(line.at_ms, line.note.fields["generation"]) for line in timelines.of("g")] == [(0, 0), (1, 1), (2, 2)]
    assert timelines.of("other") == ()


def test_a_group_keeps_its_last_lines() -> None:
    timelines = Timelines()
    for at_ms in range(LINES_PER_GROUP_MAX + 10):
        timelines.add("g", at_ms, Note("Stabilized group"))
    lines = timelines.of("g")
    assert len(lines) == LINES_PER_GROUP_MAX
    assert (lines[0].at_ms, lines[-1].at_ms) == (10, LINES_PER_GROUP_MAX + 9)


def test_the_group_that_was_quiet_longest_is_forgotten_first() -> None:
    timelines = Timelines()
    for number in range(GROUPS_MAX):
        timelines.add(str(number), number, Note("Stabilized group"))
    timelines.add("0", GROUPS_MAX, Note("Stabilized group"))
    timelines.add("new", GROUPS_MAX, Note("Stabilized group"))
    assert timelines.of("1") == ()
    assert len(timelines.of("0")) == 2
    assert len(timelines.of("new")) == 1


def test_all_lines_together_are_bounded() -> None:
    timelines = Timelines()
    groups = LINES_MAX // LINES_PER_GROUP_MAX + 2
    for number in range(groups):
        for at_ms in range(LINES_PER_GROUP_MAX + 1):
            timelines.add(str(number), at_ms, Note("Stabilized group"))
    assert len(timelines) <= LINES_MAX
    assert timelines.of("0") == ()
    assert len(timelines.of(str(groups - 1))) == LINES_PER_GROUP_MAX


def test_long_texts_are_cut() -> None:
    note = Note("Stabilized group", {"reason": "x" * 30_000, "members": 3})
    told = brief(note).fields
    assert (len(str(told["reason"])), told["members"]) == (TEXT_CHARS_MAX, 3)
    short = Note("Stabilized group", {"reason": "a new member"})
    assert brief(short) is short

"""LG5: a group does not fill the log."""

from __future__ import annotations

from rota.coordinator.observe.line_limit import GROUPS_MAX, LINES_PER_GROUP_MAX, WINDOW_MS, LineLimit


class Clock:
    now_ms = 5

    def __call__(self) -> int:
        return self.now_ms


def written(limit: LineLimit, group_id: str, lines: int) -> int:
    return sum(limit.admit(group_id) for _ in range(lines))


def test_lg5_lines_of_a_group_beyond_the_limit_are_left_out_and_counted_once() -> None:
    clock = Clock()
    limit = LineLimit(clock)
    assert written(limit, "g", LINES_PER_GROUP_MAX + 7) == LINES_PER_GROUP_MAX
    assert written(limit, "other", 3) == 3
    assert list(limit.take_left_out()) == []  # the window has not ended
    clock.now_ms += WINDOW_MS
    assert list(limit.take_left_out()) == [("g", 7)]
    assert list(limit.take_left_out()) == []


def test_lg5_the_next_window_begins_with_the_first_line_after_the_last_one() -> None:
    clock = Clock()
    limit = LineLimit(clock)
    written(limit, "g", LINES_PER_GROUP_MAX + 1)
    clock.now_ms += WINDOW_MS
    assert written(limit, "g", LINES_PER_GROUP_MAX + 2) == LINES_PER_GROUP_MAX
    clock.now_ms += WINDOW_MS
    assert list(limit.take_left_out()) == [("g", 3)]


def test_the_number_of_counted_groups_is_limited() -> None:
    limit = LineLimit(Clock())
    written(limit, "g", LINES_PER_GROUP_MAX + 1)
    for number in range(GROUPS_MAX):
        assert limit.admit(f"group-{number}")
    assert list(limit.take_left_out()) == [("g", 1)]
    assert len(limit._counts) < GROUPS_MAX

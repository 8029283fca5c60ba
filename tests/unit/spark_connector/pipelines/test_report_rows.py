"""Tables that were written by several micro-batches, as the rows of charts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rota.spark_connector.pipelines.report_rows import (
    group_lags,
    member_bars,
    milliseconds,
    named_members,
    partition_lags,
    rebalances,
    timeline_marks,
    worst_groups,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minute: float) -> int:
    return milliseconds(START + minute * MINUTE)


def window(minute: int) -> dict[str, object]:
    return {"window_start": START + minute * MINUTE, "window_end": START + (minute + 1) * MINUTE}


def lag(batch: int, minute: int, partition: int, value: int | None, group: str = "g") -> dict[str, object]:
    row = {"batch_id": batch, "group": group, "topic": "t", "partition": partition, "lag": value, "committed": 1}
    return {**row, **window(minute)}


def generations(minute: int, *found: int, group: str = "g") -> dict[str, object]:
    return {**window(minute), "group": group, "generations": list(found)}


def member(generation: int, name: str, instance: str | None = None) -> dict[str, object]:
    row = {"group": "g", "generation": generation, "member_id": f"{name}-{generation if instance else 1}"}
    return {**row, "instance_id": instance, "client_id": name, "client_host": "/h", "partitions": 2}


def lags(rows: list[dict[str, object]]) -> list[int | None]:
    return [row["lag"] for row in group_lags(partition_lags(rows))]


def test_the_lags_of_a_groups_partitions_are_added() -> None:
    rows = group_lags(partition_lags([lag(0, 0, 0, 3), lag(0, 0, 1, 4), lag(0, 1, 0, 5)]))
    assert rows == [{"group": "g", "end": at(1), "lag": 7}, {"group": "g", "end": at(2), "lag": 5}]


def test_the_last_measurement_holds() -> None:
    assert lags([lag(10, 0, 0, 3), lag(9, 0, 0, 8)]) == [3]


@pytest.mark.parametrize("values", [(None, 1), (1, None)])
def test_an_unknown_lag_makes_the_sum_unknown(values: tuple[int | None, int | None]) -> None:
    assert lags([lag(0, 0, number, value) for number, value in enumerate(values)]) == [None]


def test_a_deleted_offset_is_not_counted() -> None:
    assert lags([lag(0, 0, 0, 3), lag(0, 0, 1, None) | {"committed": None}]) == [3]


def test_a_generation_is_one_mark_with_its_cause() -> None:
    members = [member(1, "a"), member(2, "a"), member(2, "b"), member(4, "b"), member(5, "b")]
    rows = [generations(0, 1, 2), generations(0, 2), generations(2, 2, 4), generations(3, 5, 6)]
    found = rebalances(rows, members)
    assert [(row["at"], row["generation"], row["members"], row["cause"]) for row in found] == [
        (at(0.5), 1, 1, "first generation in these tables"),
        (at(0.5), 2, 2, "b joined"),
        (at(2.5), 4, 1, "a left"),
        (at(3.5), 5, 1, "the same members: a subscription, the partitions or a restart"),
        (at(3.5), 6, 0, "b left"),
    ]


def test_a_static_member_that_restarts_is_the_same_member_and_long_lists_are_cut() -> None:
    members = [member(1, "a", "one"), member(2, "a", "one"), *(member(2, name) for name in "bcdef")]
    (_, second) = rebalances([generations(0, 1, 2)], members)
    assert second["cause"] == "b, c, d and 2 more joined"


def test_bars_reach_to_the_next_generation_and_the_last_one_to_the_end() -> None:
    members = [member(1, "a"), member(2, "a"), member(2, "a"), member(2, "b")]
    marks = rebalances([generations(0, 1), generations(2, 2)], members)
    bars = member_bars(members, marks, {"g": at(9)})
    assert [(bar["member_id"], bar["generation"], bar["from"], bar["to"]) for bar in bars] == [
        ("a-1", 1, at(0.5), at(2.5)),
        ("a-1", 2, at(2.5), at(9)),
        ("b-1", 2, at(2.5), at(9)),
    ]


def test_groups_are_chosen_by_their_highest_lag() -> None:
    rows = [lag(0, 0, 0, 1, "a"), lag(0, 0, 0, 9, "b"), lag(0, 1, 0, 0, "b"), lag(0, 0, 0, None, "c")]
    assert worst_groups(partition_lags(rows), 2) == ["b", "a"]


def test_a_member_of_the_consumer_protocol_has_the_names_of_its_own_record() -> None:
    no_client = {"instance_id": None, "client_id": None, "client_host": None}
    base = {"group": "g", "member_id": "m", "type": "consumer", "batch_id": 0}
    own = {**base, **window(0), "generation": 0, "instance_id": None, "client_id": "c", "client_host": "/h"}
    assigned = {**base, **window(1), **no_client, "generation": 4, "partitions": 3, "batch_id": 1}
    other = {**base, **window(1), **no_client, "generation": 4, "partitions": 1, "member_id": "expired"}
    classic = {**member(4, "old"), **window(2), "batch_id": 2}
    found = named_members([classic, assigned, other, own])
    assert {row["member_id"]: (row["client_id"], row["partitions"]) for row in found} == {
        "m": ("c", 3),
        "expired": ("expired", 1),
        "old-1": ("old", 2),
    }


def event(sequence: int, kind: str, generation: int | None = None, **more: object) -> dict[str, object]:
    texts = dict.fromkeys(("trigger", "reason", "client_reason"))
    row = {"group": "g", "sequence": sequence, "type": kind, "generation": generation, "members": []}
    return {**row, **texts, "time": START + sequence * MINUTE, **more}


def test_a_generation_has_the_reasons_of_the_rebalances_before_it() -> None:
    """In the order of their sequence, also those that were interrupted; an event that was written twice counts once."""
    events = [
        event(3, "generation-started", 2),
        event(1, "rebalance-started", 1, trigger="member-expired", reason="session ended", members=["a"]),
        event(2, "rebalance-started", 1, trigger="member-joined", client_reason="deploy", reason="r", members=["b"]),
        event(2, "rebalance-started", 1, trigger="member-joined", client_reason="deploy", reason="r", members=["b"]),
        event(4, "generation-started", 3),
    ]
    found = {row["generation"]: row["reason"] for row in rebalances([generations(0, 1, 2, 3)], [], events)}
    assert found == {1: "", 2: "member-expired (a): session ended; member-joined (b): deploy", 3: ""}


def test_an_event_is_a_mark_at_its_own_time() -> None:
    given = event(2, "member-left", members=["a", "b"], client_reason="rolling restart")
    assert timeline_marks([given, given]) == [
        {"group": "g", "at": at(2), "type": "member-left", "members": "a, b", "reason": "rolling restart"}
    ]


def test_the_events_of_a_group_that_was_deleted_and_came_again_are_others() -> None:
    """A group that is deleted is forgotten: its sequence starts at 0 again."""
    started = [
        event(0, "rebalance-started", 0, trigger="member-joined", reason="first"),
        event(1, "generation-started", 1),
        event(0, "rebalance-started", 0, trigger="member-joined", reason="second", time=START + 60 * MINUTE),
        event(1, "generation-started", 7, time=START + 61 * MINUTE),
    ]
    assert [row["at"] for row in timeline_marks(started)] == [at(0), at(1), at(60), at(61)]
    found = {row["generation"]: row["reason"] for row in rebalances([generations(0, 1, 7)], [], started)}
    assert found == {1: "member-joined: first", 7: "member-joined: second"}


def test_members_without_a_rebalance_in_the_period_have_no_bars() -> None:
    assert member_bars([member(1, "a")], [], {"g": at(9)}) == []

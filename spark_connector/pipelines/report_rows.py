"""What the report shows, from the rows of the tables: lags, rebalances with their cause, and bars of members. Pure.

Laws
    A window counts once: its lags are those of the last micro-batch, its generations those of all of them.
    A generation that an earlier window has is not a rebalance. Its cause is the difference between the members of the
    previous known generation and its own members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

Row = dict[str, Any]
Rows = Iterable[Mapping[str, Any]]
NAMES_SHOWN_MAX: Final = 3


def named_members(rows: Rows) -> list[Row]:
    """The members of each generation. A member of KIP-848 gets the fields of its own record, which is left out."""
    own: dict[tuple[str, str], Row] = {}
    found = []
    for row in sorted(rows, key=lambda row: (row["window_end"], row["generation"], row["batch_id"])):
        key = (row["group"], row["member_id"])
        if row.get("type") != "consumer":
            found.append(dict(row))
        elif row["generation"] == 0:
            own[key] = {name: row[name] for name in ("instance_id", "client_id", "client_host")}
        else:
            unknown = {"instance_id": None, "client_id": row["member_id"], "client_host": ""}
            found.append({**row, **own.get(key, unknown)})
    return found


def partition_lags(rows: Rows) -> list[Row]:
    """A row for each window, group and partition with a committed offset; `lag` None: unknown."""
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: int(row["batch_id"])):
        last[row["group"], row["window_end"], row["topic"], row["partition"]] = row
    return [
        {
            "group": row["group"],
            "start": milliseconds(row["window_start"]),
            "end": milliseconds(row["window_end"]),
            "partition": f"{row['topic']}-{row['partition']}",
            "lag": row["lag"],
        }
        for _, row in sorted(last.items())
        if row["committed"] is not None
    ]


def group_lags(rows: Iterable[Row]) -> list[Row]:
    """The lag of each group at the end of each window: the sum of its partitions; None when one of them is unknown."""
    sums: dict[tuple[str, int], int | None] = {}
    for row in rows:
        before = sums.get((row["group"], row["end"]), 0)
        sums[row["group"], row["end"]] = None if before is None or row["lag"] is None else before + row["lag"]
    return [{"group": group, "end": end, "lag": lag} for (group, end), lag in sums.items()]


def rebalances(rows: Rows, members: Rows, events: Rows = ()) -> list[Row]:
    """A row for each new generation, at the middle of its window, with its cause, and with the broker's reason when
    `events`, of the table timeline, have it."""
    names, reasons = _names(members), _reasons(events)
    first: dict[tuple[str, int], tuple[datetime, datetime]] = {}
    for row in rows:
        for generation in row["generations"]:
            window = (row["window_start"], row["window_end"])
            first[row["group"], generation] = min(first.get((row["group"], generation), window), window)
    found, previous = [], ("", 0)
    for (group, generation), (start, end) in sorted(first.items()):
        before = names.get(previous, {}) if previous[0] == group else None
        after = names.get((group, generation), {})
        mark = {"group": group, "at": (milliseconds(start) + milliseconds(end)) // 2, "generation": generation}
        reason = reasons.get((group, generation), "")
        found.append({**mark, "members": len(after), "cause": _cause(before, after), "reason": reason})
        previous = (group, generation)
    return found


def _reasons(events: Rows) -> dict[tuple[str, int], str]:
    """Return for each generation why the rebalances before it started, interrupted rebalances included."""
    found: dict[tuple[str, int], str] = {}
    started: dict[str, dict[str, None]] = {}
    for event in sorted(events, key=_event_order):
        if event["type"] == "rebalance-started":
            started.setdefault(event["group"], {})[_rebalance_text(event)] = None
        elif event["type"] == "generation-started" and event["generation"] is not None:
            found[event["group"], event["generation"]] = "; ".join(started.pop(event["group"], ()))
    return found


def _rebalance_text(event: Mapping[str, Any]) -> str:
    members = f" ({_listed(event['members'])})" if event["members"] else ""
    return f"{event['trigger']}{members}: {event['client_reason'] or event['reason'] or 'no reason given'}"


def timeline_marks(events: Rows) -> list[Row]:
    """A row for each event of the table timeline, at its own time."""
    found = {(*_event_order(event), event["type"]): event for event in events}
    return [
        {
            "group": group,
            "at": milliseconds(event["time"]),
            "type": event["type"],
            "members": _listed(event["members"] or []),
            "reason": event["client_reason"] or event["reason"] or event["trigger"] or "",
        }
        for (group, *_), event in sorted(found.items(), key=lambda item: item[0])
    ]


def _event_order(event: Mapping[str, Any]) -> tuple[str, datetime, int]:
    """A group that is deleted and comes again counts its sequence from 0 again."""
    return event["group"], event["time"], event["sequence"]


def member_bars(members: Rows, marks: Iterable[Row], ends: Mapping[str, int]) -> list[Row]:
    """A bar for each member and generation, until the next generation of the group; the last one until `ends`."""
    at = {(mark["group"], mark["generation"]): mark["at"] for mark in marks}
    following = {
        key: at[other] if other is not None and other[0] == key[0] else ends.get(key[0], at[key])
        for key, other in pairwise([*sorted(at), None])
        if key is not None
    }
    bars = {}
    for row in members:
        key = (row["group"], row["generation"])
        if key in at:
            bars[*key, row["member_id"]] = {
                "group": row["group"],
                "member": f"{row['client_id']} {row['client_host']}",
                "member_id": row["member_id"],
                "generation": row["generation"],
                "from": at[key],
                "to": max(at[key], following[key]),
                "partitions": row["partitions"],
            }
    return [bars[key] for key in sorted(bars)]


def worst_groups(lags: Iterable[Row], limit: int) -> list[str]:
    """The groups with the highest lag in any window, at most `limit`."""
    highest: dict[str, int] = {}
    for row in lags:
        highest[row["group"]] = max(highest.get(row["group"], 0), row["lag"] or 0)
    return sorted(highest, key=lambda group: (-highest[group], group))[:limit]


def milliseconds(time: datetime) -> int:
    """Since the epoch."""
    return round(time.timestamp() * 1000)


def _names(members: Rows) -> dict[tuple[str, int], dict[str, str]]:
    """The members of each generation: client ids by member id, or by instance id for static members."""
    found: dict[tuple[str, int], dict[str, str]] = {}
    for row in members:
        identity = row["instance_id"] or row["member_id"]
        found.setdefault((row["group"], row["generation"]), {})[identity] = row["instance_id"] or row["client_id"]
    return found


def _cause(before: Mapping[str, str] | None, after: Mapping[str, str]) -> str:
    if before is None:
        return "first generation in these tables"
    joined = [after[member] for member in sorted(after.keys() - before.keys())]
    left = [before[member] for member in sorted(before.keys() - after.keys())]
    parts = [f"{_listed(joined)} joined"] * bool(joined) + [f"{_listed(left)} left"] * bool(left)
    return ", ".join(parts) or "the same members: a subscription, the partitions or a restart"


def _listed(names: list[str]) -> str:
    rest = len(names) - NAMES_SHOWN_MAX
    return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")

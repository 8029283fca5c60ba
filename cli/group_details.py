"""`rota groups describe` and `rota groups lag`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rota.cli.session import Session
from rota.cli.text import Table
from rota.client.types import TopicPartition

if TYPE_CHECKING:
    from rota.client import BrokerInfo, GroupDescription, PartitionLag

LAG_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS", "MEMBER")
MEMBER_COLUMNS = ("GROUP", "MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")


async def describe_groups(session: Session) -> None:
    names = dict.fromkeys(session.options.groups)
    async with session.admin() as admin:
        found = await admin.describe_groups(names)
    documents = [group_document(group) for group in found.values()]
    states = [
        (group["group"], group["state"], group["assignor"], len(group["members"]), _address(group["coordinator"]))
        for group in documents
    ]
    members = [
        (group["group"], member["member_id"], member["group_instance_id"], member["client_id"], member["host"],
         summarized(member["assignment"]))
        for group in documents
        for member in group["members"]
    ]  # fmt: skip
    tables = [Table(("GROUP", "STATE", "ASSIGNOR", "MEMBERS", "COORDINATOR"), states)]
    tables += [Table(MEMBER_COLUMNS, members)] if members else []
    session.out.show({"groups": documents}, *tables)


def group_document(group: GroupDescription) -> dict[str, Any]:
    """Return a group as JSON."""
    return {
        "group": group.group_id,
        "state": group.state,
        "type": group.type,
        "protocol_type": group.protocol_type or None,
        "assignor": group.protocol or None,
        "coordinator": broker_document(group.coordinator),
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack": member.rack,
                "topics": list(member.topics),
                "topic_regex": member.topic_regex,
                "assignment": [partition_document(each) for each in sorted(member.assignment)],
                "owned": [partition_document(each) for each in sorted(member.owned)],
            }
            for member in group.members
        ],
    }


def broker_document(broker: BrokerInfo | None) -> dict[str, Any] | None:
    """Return a broker as JSON."""
    return None if broker is None else {"id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}


def partition_document(partition: TopicPartition) -> dict[str, Any]:
    """Return a partition as JSON."""
    return {"topic": partition.topic, "partition": partition.partition}


def _address(broker: Mapping[str, Any] | None) -> str | None:
    return None if broker is None else f"{broker['id']} ({broker['host']}:{broker['port']})"


def summarized(partitions: Iterable[Mapping[str, Any]]) -> str:
    """Return partitions as `orders:0-2,5 payments:1`."""
    topics: dict[str, list[int]] = {}
    for each in partitions:
        topics.setdefault(each["topic"], []).append(each["partition"])
    return " ".join(f"{topic}:{','.join(_ranges(sorted(numbers)))}" for topic, numbers in sorted(topics.items()))


def _ranges(numbers: list[int]) -> Iterable[str]:
    """Return ascending numbers as `0-2` and `5`."""
    first = 0
    for at, number in enumerate(numbers):
        if at + 1 == len(numbers) or numbers[at + 1] != number + 1:
            yield f"{numbers[first]}" if first == at else f"{numbers[first]}-{number}"
            first = at + 1


async def show_lag(session: Session) -> None:
    async with session.admin() as admin:
        names = list(dict.fromkeys(session.options.groups)) or list(await admin.list_groups())
        if session.options.groups:
            await admin.describe_groups(names)  # a group that does not exist is a failure, not a group without lag
        lags = {name: lag_documents(await admin.group_lag(name, with_age=True)) for name in names}
    totals = [
        {"group": name, "partitions": len(rows), "lag": total_lag(rows), "lag_seconds": largest_seconds(rows)}
        for name, rows in lags.items()
    ]
    document = {"groups": [{**total, "offsets": lags[total["group"]]} for total in totals]}
    if session.options.total:
        columns = ("GROUP", "PARTITIONS", "LAG", "SECONDS")
        table = Table(columns, [tuple(total.values()) for total in totals], empty="no groups")
    else:
        rows = [(name, *_lag_cells(row)) for name, rows in lags.items() for row in rows]
        table = Table(LAG_COLUMNS, rows, empty="no committed offsets and no assigned partitions")
    session.out.show(document, table)


def lag_documents(lags: Mapping[TopicPartition, PartitionLag]) -> list[dict[str, Any]]:
    """Return the lag of each partition as JSON; None is unknown."""
    return [
        {
            **partition_document(partition),
            "committed": lag.committed,
            "start": lag.start,
            "end": lag.end,
            "lag": lag.lag,
            "lag_seconds": None if lag.age_ms is None else lag.age_ms / 1000,
            "member": lag.member,
        }
        for partition, lag in sorted(lags.items())
    ]


def total_lag(rows: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the sum of the known lags; None when none is known."""
    known = [row["lag"] for row in rows if row["lag"] is not None]
    return sum(known) if known else None


def largest_seconds(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the largest of the known ages of unread records; None when none is known."""
    return max((row["lag_seconds"] for row in rows if row["lag_seconds"] is not None), default=None)


def _lag_cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("topic", "partition", "committed", "end", "lag", "lag_seconds", "member"))

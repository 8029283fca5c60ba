"""`rota topics`: list, describe, create, add-partitions, delete."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Set as AbstractSet
from typing import Any

from rota.cli.arguments import add_subcommand, name_and_value, subcommands, whole
from rota.cli.session import Session, as_plain
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.cli.topic_details import UNKNOWN, describe_existing, topic_document
from rota.client.errors import AdminFailed, BrokerError
from rota.protocol.errors import ErrorCode

INT32_MAX, INT16_MAX = (1 << 31) - 1, (1 << 15) - 1
EXISTS = {ErrorCode.TOPIC_ALREADY_EXISTS}


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = subcommands(parser)
    add = add_subcommand(commands, "list", list_topics, "list topics with their partitions and replicas")
    add.add_argument("--internal", action="store_true", help="internal topics too")
    add = add_subcommand(commands, "describe", describe_topics, "show each partition: leader, epoch, replicas, ISR")
    add.add_argument("topics", metavar="TOPIC", nargs="*", help="unset: all topics")
    add.add_argument(
        "--under-replicated", action="store_true", help="only partitions with replicas that are not in sync"
    )
    add.add_argument("--unavailable", action="store_true", help="only partitions without a leader")
    add = add_subcommand(commands, "create", create_topics, "create topics")
    add.add_argument("topics", metavar="TOPIC", nargs="+")
    add.add_argument("--partitions", type=whole(1, INT32_MAX), default=-1, help="unset: the broker's num.partitions")
    add.add_argument(
        "--replication-factor", type=whole(1, INT16_MAX), default=-1, help="unset: default.replication.factor"
    )
    add.add_argument(
        "--config",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the topic",
    )
    add.add_argument("--if-not-exists", action="store_true", help="a topic that exists is no failure")
    add.add_argument("--dry-run", action="store_true", help="let the broker check it; create nothing")
    add = add_subcommand(commands, "add-partitions", add_partitions, "raise the number of partitions of a topic")
    add.add_argument("topic", metavar="TOPIC")
    add.add_argument("--total", type=whole(1, INT32_MAX), required=True, help="the new number of partitions")
    add.add_argument("--dry-run", action="store_true", help="let the broker check it; change nothing")
    add = add_subcommand(commands, "delete", delete_topics, "delete topics with all their records")
    add.add_argument("topics", metavar="TOPIC", nargs="+")
    add.add_argument("--if-exists", action="store_true", help="a topic that does not exist is no failure")


async def list_topics(session: Session) -> None:
    async with session.admin() as admin:
        found = await describe_existing(admin, [*await admin.list_topics(internal=session.options.internal)])
    rows = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
            "internal": topic.is_internal,
            "id": as_plain(topic.id),
        }
        for topic in found
    ]
    columns = ("TOPIC", "PARTITIONS", "REPLICATION", "INTERNAL", "ID")
    table = Table(columns, [tuple(row.values()) for row in rows], empty="the cluster has no topics")
    session.out.show({"topics": rows}, table)


async def describe_topics(session: Session) -> None:
    options = session.options
    async with session.admin() as admin:
        if options.topics:
            found = await admin.describe_topics(dict.fromkeys(options.topics))
            topics = list(found.values())
        else:
            topics = await describe_existing(admin, [*await admin.list_topics()])
    documents = [topic_document(topic) for topic in topics]
    for document in documents:
        document["partitions"] = [each for each in document["partitions"] if _is_selected(each, session)]
    columns = ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE")
    rows = [(topic["name"], *each.values()) for topic in documents for each in topic["partitions"]]
    session.out.show({"topics": documents}, Table(columns, rows, empty="no such partitions"))


def _is_selected(partition: dict[str, Any], session: Session) -> bool:
    options = session.options
    is_under_replicated = len(partition["isr"]) < len(partition["replicas"])
    if not options.under_replicated and not options.unavailable:
        return True
    return (options.under_replicated and is_under_replicated) or (options.unavailable and partition["leader"] is None)


async def create_topics(session: Session) -> None:
    from rota.client import NewTopic

    options = session.options
    configs = dict(options.config)
    new = [
        NewTopic(name, options.partitions, options.replication_factor, configs=configs)
        for name in dict.fromkeys(options.topics)
    ]
    async with session.admin() as admin:
        created, existing = await _tolerating(
            admin.create_topics(new, validate_only=options.dry_run), EXISTS if options.if_not_exists else set()
        )
    rows = [
        {"name": topic.name, "id": as_plain(topic.id), "partitions": _known(topic.partitions),
         "replication_factor": _known(topic.replication_factor)}
        for topic in created.values()
    ]  # fmt: skip
    document = {"created": rows, "existing": existing, "dry_run": options.dry_run}
    done = "the broker would create" if options.dry_run else "created"
    table = Table(
        ("TOPIC", "ID", "PARTITIONS", "REPLICATION"),
        [tuple(row.values()) for row in rows],
        f"{done}:" if rows else "",
        empty=f"nothing to create: {', '.join(existing)} exist already",
    )
    session.out.show(document, table)


def _known(number: int) -> int | None:
    """Return the number; None for -1, which brokers before CreateTopics v5 leave."""
    return None if number < 0 else number


async def _tolerating(call: Any, codes: AbstractSet[ErrorCode]) -> tuple[dict[str, Any], list[str]]:
    """Await a call; return what it has done, and the names that failed with one of the codes. Raises AdminFailed."""
    try:
        return (await call) or {}, []
    except AdminFailed as failure:
        if not all(isinstance(error, BrokerError) and error.code in codes for error in failure.failed.values()):
            raise
        return failure.done, list(failure.failed)


async def add_partitions(session: Session) -> None:
    topic, total = session.options.topic, session.options.total
    async with session.admin() as admin:
        before = len((await admin.describe_topics([topic]))[topic].partitions)
        if total <= before:
            raise UsageError(f"{topic} has {before} partitions: --total {total} must be more; they cannot be removed")
        await admin.create_partitions({topic: total}, validate_only=session.options.dry_run)
    document = {"topic": topic, "partitions_before": before, "partitions": total, "dry_run": session.options.dry_run}
    session.out.show(document)
    what = "would have" if session.options.dry_run else "has"
    session.out.note(f"{topic} {what} {total} partitions (before: {before}); keys may map to other partitions now")


async def delete_topics(session: Session) -> None:
    names = list(dict.fromkeys(session.options.topics))
    async with session.admin() as admin:
        _, absent = await _tolerating(admin.delete_topics(names), UNKNOWN if session.options.if_exists else set())
    deleted = [name for name in names if name not in absent]
    session.out.show({"deleted": deleted, "absent": absent})
    session.out.note(f"deleted: {', '.join(deleted) or 'nothing'}")

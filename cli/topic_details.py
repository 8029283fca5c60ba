"""Topics as JSON, for several commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from rota.cli.session import as_plain
from rota.client.errors import AdminFailed
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.client import Admin, TopicDescription

UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


async def describe_existing(admin: Admin, names: Iterable[str]) -> list[TopicDescription]:
    """Describe listed topics; those that were deleted since they were listed are left out. Raises AdminFailed."""
    names = list(names)
    try:
        found = await admin.describe_topics(names) if names else {}
    except AdminFailed as failure:
        if failure.codes != UNKNOWN:
            raise
        found = failure.done
    return [found[name] for name in sorted(found)]


def topic_document(topic: TopicDescription) -> dict[str, Any]:
    """Return a topic as JSON; a partition without a leader has the leader None."""
    return {
        "name": topic.name,
        "id": as_plain(topic.id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": each.partition,
                "leader": None if each.leader < 0 else each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "offline": list(each.offline),
            }
            for each in topic.partitions
        ],
    }

"""The group machine's records as the bytes of `__consumer_offsets`, and back.

Laws
    Keys and values are byte-equal to Apache Kafka's, so that tools which read that topic keep working.
    Unknown key types (a newer broker's) are skipped, as Kafka does when it loads.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.coordinator.group.effects import GroupRecord, GroupValue, MemberValue, OffsetRecord, OffsetValue, Record
from rota.coordinator.group.events import InstanceId, MemberId
from rota.protocol import offsets_records as wire


class Encoded(NamedTuple):
    """One record of the offsets topic; a None value is a tombstone."""

    key: bytes
    value: bytes | None

"""Answers without what must differ: member ids, topic ids, names of this run, throttle times, free text."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

GENERATED_ID = re.compile(r"^(.*)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
LEFT_OUT = {"throttle_time_ms", "error_message"}
# lists whose order is that of a hash map in Kafka
UNORDERED = {
    ("JoinGroupResponse", "members"),
    ("DescribedGroup", "members"),
    ("DescribeGroupsResponse", "groups"),
    ("ListGroupsResponse", "groups"),
    ("OffsetCommitResponse", "topics"),
    ("OffsetCommitResponseTopic", "partitions"),
    ("OffsetDeleteResponse", "topics"),
    ("OffsetDeleteResponseTopic", "partitions"),
    ("OffsetFetchResponse", "topics"),
    ("OffsetFetchResponse", "groups"),
    ("OffsetFetchResponseGroup", "topics"),
    ("OffsetFetchResponseTopic", "partitions"),
    ("OffsetFetchResponseTopics", "partitions"),
}


class Labels:
    """Real names to names that two runs share: the third id given to client c1 is c1#3 everywhere."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._labels: dict[str, str] = {}
        self.topic_ids: dict[bytes, str] = {}

    def __getitem__(self, name: str) -> str:
        generated = GENERATED_ID.match(name)
        if generated is None:
            short = name.replace(self._run, "")
            return short if len(short) < 200 else f"{short[:10]}… {len(short)} characters"
        if name not in self._labels:
            prefix = generated[1].replace(self._run, "")
            same = sum(label.startswith(prefix + "#") for label in self._labels.values())
            self._labels[name] = f"{prefix}#{same + 1}"
        return self._labels[name]

    def canonical(self, thing: Any) -> Any:
        """`thing` as JSON values."""
        if dataclasses.is_dataclass(thing):
            return {f.name: self._field(thing, f.name) for f in dataclasses.fields(thing) if f.name not in LEFT_OUT}
        if isinstance(thing, tuple | list):
            return [self.canonical(item) for item in thing]
        if isinstance(thing, bytes):
            return self[thing.decode("latin-1")]
        return self[thing] if isinstance(thing, str) else thing

    def _field(self, message: Any, name: str) -> Any:
        value = getattr(message, name)
        if name == "topic_id":
            return self.topic_ids.get(value, value.hex())
        whole = self.canonical(value)
        if whole and (type(message).__name__, name) in UNORDERED:
            return sorted(whole, key=lambda item: json.dumps(item, sort_keys=True))
        return whole


def prefix(label: str) -> str:
    """Whose id it is: the client or the instance."""
    return label.partition("#")[0]

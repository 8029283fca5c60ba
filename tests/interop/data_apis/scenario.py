"""One long conversation about data, sent to any broker: what it answers, step by step, without what must differ."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any
from zlib import crc32

from tests.interop.differential.wire import Wire
from tests.interop.kit import unique, until

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.wire import UUID_ZERO

Line = dict[str, Any]

STEP_S = 5.0
SILENCE_S = 0.3
READY_S = 20.0
_MOMENT = re.compile(r"\d{13,}")  # a time of now, in a message for people


class Notice:
    """A broker, and the topics of this run: the name in the scenario to the real name and id."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.wire = Wire(bootstrap, "scenario")
        self.names: dict[str, str] = {}
        self.ids: dict[str, bytes] = {}
        self.session = 0  # the fetch session that the broker gave last
        self.producer_id = -1

    def close(self) -> None:
        self.wire.close()

    def topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Config names with underscores for dots."""
        self.names[name] = unique(name)
        requests = CreatableTopic(
            name=self.names[name],
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ),
        )
        (made,) = self.wire.send_request(CreateTopicsRequest(topics=(requests,), timeout_ms=10_000), 7).topics
        assert made.error_code == ErrorCode.NONE, made
        self.ids[name] = made.topic_id

    def send_request(self, step: str, request: Any, version: int) -> Line:
        """The answer, or how the connection ended."""
        try:
            self.wire.send(request, version)
            answer = self.wire.answer(SILENCE_S if getattr(request, "acks", 1) == 0 else STEP_S)
        except ConnectionError:
            answer = "closed"
        if answer == "closed" or answer is None:  # whatever is still coming must not be taken for a later answer
            self.wire.close()
            self.wire = Wire(self.bootstrap, "scenario")
        if answer is None:
            answer = "silence"
        self.session = getattr(answer, "session_id", 0) or self.session
        self.producer_id = getattr(answer, "producer_id", self.producer_id)
        line: Line = json.loads(json.dumps({"step": step, "version": version, "answer": self._plain(answer)}))
        return line

    def until_led(self, request: Any, version: int) -> None:
        """A new topic has no leader for a moment."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            text = json.dumps(self._plain(self.wire.send_request(request, version)))
            if '"error_code": 0' in text and not re.search(r'"error_code": [^0]', text):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{request} finds no leader")

    def _plain(self, value: Any, field: str = "") -> Any:
        match value:
            case bytes() | memoryview() if field == "records":
                return [len(value), crc32(value)]
            case bytes():
                return self._id(value)
            case str():
                return self._text(value)
            case list() | tuple() if field == "partition_responses":  # Kafka answers a Produce in no certain order
                return [self._plain(item) for item in sorted(value, key=lambda item: item.index)]
            case list() | tuple():
                return [self._plain(item, field) for item in value]
            case bool() | None:
                return value
            case int() if field == "session_id" and value > 0:
                return "a session"
            case int() if field == "producer_id" and value >= 0:
                return "an id"
            case int() if value > 1_600_000_000_000:
                return "now"
            case int():
                return int(value)
        assert is_dataclass(value), value
        return {item.name: self._plain(getattr(value, item.name), item.name) for item in fields(value)}

    def _id(self, value: bytes) -> str:
        if value == UUID_ZERO:
            return "no id"
        for name, topic_id in self.ids.items():
            if topic_id == value:
                return f"id of {name}"
        return "foreign id"

    def _text(self, value: str) -> str:
        for name, real in self.names.items():
            value = value.replace(real, name)
        return _MOMENT.sub("now", re.sub(r"\[-\d+, ", "[, ", value))


def run_scenario(bootstrap: str) -> Iterator[Line]:
    """The whole scenario."""
    from tests.interop.data_apis.chapters import CHAPTERS

    reply = Notice(bootstrap)
    # a Kafka that has just started has no block of producer ids yet
    first_id = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    until(lambda: reply.wire.send_request(first_id, 4).error_code == ErrorCode.NONE, "a producer id")
    try:
        for name, chapter in CHAPTERS.items():
            for line in chapter(reply):
                yield {"chapter": name, **line}
    finally:
        with suppress(OSError):
            reply.close()

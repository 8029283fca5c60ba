"""A new leader whose high watermark is behind: a proxy before a broker that answers as such a leader does.

Kafka's followers learn the high watermark one fetch late. A follower that becomes leader has every committed record,
but until the ISR has fetched from it, consumers see its old high watermark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.client.fault_proxy import ProxyConnection, proxy_in_thread

from rota.protocol.messages.fetch import FetchResponse
from rota.protocol.messages.list_offsets import ListOffsetsResponse
from rota.protocol.records.batch import headers

LATEST = -1


@dataclass
class Lag:
    """`marks`: partition number to high watermark, shown in `answers` answers (None: in all that come)."""

    marks: dict[int, int] = field(default_factory=dict)
    answers: int | None = None
    shown: int = 0

    def behind(self, marks: dict[int, int], answers: int | None) -> None:
        """From now on, for so many answers."""
        self.marks, self.answers, self.shown = marks, answers, 0

    def change(self, request: Any, answer: Any) -> None:
        """Lower what the answer says."""
        if not self.marks or (self.answers is not None and self.shown >= self.answers):
            return
        if isinstance(answer, FetchResponse):
            self.shown += self._fetch(answer)
        if isinstance(answer, ListOffsetsResponse):
            self.shown += self._list(request, answer)

    def _fetch(self, answer: FetchResponse) -> bool:
        is_changed = False
        for topic in answer.responses:
            for partition in topic.partitions:
                mark = self.marks.get(partition.partition_index)
                if mark is None or partition.error_code or partition.high_watermark <= mark:
                    continue
                partition.high_watermark = partition.last_stable_offset = mark
                view = memoryview(partition.records or b"")
                hidden = (at for at, header in headers(view) if header.base_offset >= mark)
                partition.records = bytes(view[: next(hidden, len(view))])
                is_changed = True
        return is_changed

    def _list(self, request: Any, answer: ListOffsetsResponse) -> bool:
        requests = {(t.name, p.partition_index): p.timestamp for t in request.topics for p in t.partitions}
        is_changed = False
        for topic in answer.topics:
            for partition in topic.partitions:
                mark = self.marks.get(partition.partition_index)
                if mark is None or partition.offset <= mark - 1:
                    continue
                time = requests[topic.name, partition.partition_index]
                if time == LATEST and partition.offset > mark:
                    partition.offset, is_changed = mark, True
                if time >= 0:
                    partition.offset, partition.timestamp, is_changed = -1, -1, True
        return is_changed


@contextlib.contextmanager
def lagging(bootstrap: str) -> Iterator[tuple[str, Lag]]:
    """HOST:PORT of the proxy, and what it changes: nothing until `Lag.behind`."""
    lag = Lag()

    class LaggingConnection(ProxyConnection):
        async def _send(self, slot: Any, answer: Any) -> None:
            lag.change(slot.request, answer)
            await super()._send(slot, answer)

    with proxy_in_thread(bootstrap, LaggingConnection) as address:
        yield address, lag

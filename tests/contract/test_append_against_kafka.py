"""Right, repeated, early, late, fenced and broken batches: Apache Kafka and the log answer alike.

Needs ROTA_PEER, the address of a running Apache Kafka.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import time

import pytest

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.header import read_response_header, request_header
from rota.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rota.protocol.records.batch import SEQUENCE_MAX
from rota.protocol.records.fast import Record
from rota.protocol.records.record import write_batch

PEER = os.environ.get("ROTA_PEER", "")
VERSION, ROUNDS = 9, 400
Answer = tuple[int, int, int]  # error code, base offset, append time

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not PEER, reason="ROTA_PEER names no running Apache Kafka"),
]


PATIENCE_S = 20.0
NOT_YET = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE}


class Kafka:
    """One partition of the peer, produced to by hand."""

    def __init__(self, topic: str, config: dict[str, str]) -> None:
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": PEER})
        admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(30)
        self.topic = topic
        host, port = PEER.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))

    def append(self, batch: bytes) -> Answer:
        """A topic that was just created is not known everywhere at once: nothing was written, and it is asked again."""
        deadline = time.monotonic() + PATIENCE_S
        while (answer := self._append(batch))[0] in NOT_YET:
            assert time.monotonic() < deadline, f"{self.topic} never appeared"
        return answer

    def _append(self, batch: bytes) -> Answer:
        data = TopicProduceData(name=self.topic, partition_data=(PartitionProduceData(index=0, records=batch),))
        request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=(data,))
        frame = request_header(0, VERSION, 7, "test") + codec(ProduceRequest, VERSION).encode(request)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        answer = self._read(struct.unpack(">i", self._read(4))[0])
        _, start = read_response_header(answer, 0, VERSION)
        response = codec(ProduceResponse, VERSION).decode(answer, start)[0].responses[0].partition_responses[0]
        return response.error_code, response.base_offset, response.log_append_time_ms

    def _read(self, count: int) -> bytes:
        read = b""
        while len(read) < count:
            chunk = self.socket.recv(count - len(read))
            assert chunk, "the peer closed the connection"
            read += chunk
        return read


class Producers:
    """Three idempotent producers that make every mistake there is."""

    def __init__(self, choose: random.Random, now_ms: int) -> None:
        self.choose, self.now_ms = choose, now_ms
        self.next: dict[int, tuple[int, int]] = {}
        self.first_id = now_ms * 10

    def batch(self) -> tuple[bytes, int, int, int]:
        """(batch, producer id, epoch, sequence after it)."""
        choose = self.choose
        producer_id, count = self.first_id + choose.randrange(3), choose.randint(1, 3)
        epoch, expected = self.next.get(producer_id, (0, choose.choice([0, 0, 5, SEQUENCE_MAX - 3])))
        sequence, what = expected, choose.random()
        if what < 0.25:
            sequence = (expected - choose.randint(1, 12)) & SEQUENCE_MAX
        elif what < 0.35:
            sequence = (expected + choose.randint(1, 3)) & SEQUENCE_MAX
        elif what < 0.42:
            epoch, sequence = epoch + 1, choose.choice([0, 0, 0, expected, 1])
        elif what < 0.46:
            epoch = max(0, epoch - 1)
        elif what < 0.5:
            sequence = -1
        elif what < 0.53:
            producer_id = epoch = sequence = -1
        keys = [b"k" if choose.random() < 0.95 else None for _ in range(count)]
        batch = write_batch(
            [Record(0, self.now_ms, key, b"v") for key in keys],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_control=choose.random() < 0.02,
        )
        return self._broken(batch), producer_id, epoch, (sequence + count) & SEQUENCE_MAX

    def _broken(self, batch: bytes) -> bytes:
        broken, how = bytearray(batch), self.choose.random()
        if how < 0.02:
            broken[self.choose.randrange(17, len(batch))] ^= 1
        elif how < 0.04:
            broken[7] = 3  # a base offset, which only a log may give
        return bytes(broken)


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_batch_gets_the_same_answer(policy: str, seed: int) -> None:
    kafka = Kafka(f"rota-append-{time.time_ns()}", {"cleanup.policy": policy})
    try:
        answer_alike(kafka, policy, seed)
    finally:
        kafka.socket.close()


def answer_alike(kafka: Kafka, policy: str, seed: int) -> None:
    log = MemoryLog(LogConfig(compact=policy == "compact"))
    now_ms = int(time.time() * 1000)
    producers = Producers(random.Random(seed), now_ms)
    taken = 0
    for number in range(ROUNDS):
        batch, producer_id, epoch, after = producers.batch()
        try:
            appended = log.append(batch, leader_epoch=0, now_ms=now_ms)
            ours: Answer = 0, appended.base_offset, appended.append_time_ms
            if not appended.duplicate and producer_id >= 0:
                producers.next[producer_id] = epoch, after
            taken += 1
        except AppendRefused as refused:
            ours = int(refused.code), -1, -1
        assert ours == kafka.append(batch), f"batch {number} of seed {seed}"
    assert 0.3 * ROUNDS < taken < 0.9 * ROUNDS

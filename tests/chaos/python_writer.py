"""A writer with kafka-python in a process of its own: its connections that fail leave sockets to the garbage collector.

    python -m tests.chaos.python_writer BOOTSTRAP TOPIC PARTITION GIVE_UP_MS PACE_MS

Sends 0, 1, 2, …, one each PACE_MS, until its standard input ends. Prints `acked VALUE OFFSET` for each record that was
acknowledged, and `error TEXT` for one that was given up.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from typing import Any, Final

import kafka  # type: ignore[import-untyped]

UNACKNOWLEDGED_MAX: Final = 2_000
FLUSH_SECONDS: Final = 30


def main(bootstrap: str, topic: str, partition: int, give_up_ms: int, pace_ms: int) -> None:
    stopping, room = threading.Event(), threading.Semaphore(UNACKNOWLEDGED_MAX)

    def acknowledged(value: int, metadata: Any) -> None:
        room.release()
        print("acked", value, metadata.offset, flush=True)

    def failed(error: BaseException) -> None:
        room.release()
        print("error", error, flush=True)

    def wait_for_end() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap.split(","), enable_idempotence=True, linger_ms=2, delivery_timeout_ms=give_up_ms
    )
    value = 0
    while not stopping.wait(pace_ms / 1000):
        if room.acquire(timeout=1):
            sent = producer.send(topic, str(value).encode(), partition=partition)
            sent.add_callback(partial(acknowledged, value)).add_errback(failed)
            value += 1
    producer.flush(FLUSH_SECONDS)
    producer.close(FLUSH_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))

"""Fetch over TLS, Rota beside Apache Kafka: `python -m benchmarks.tls`, about a minute.

Both brokers have one listener in plain text and one with TLS, and the same certificate. A topic is filled in plain
text; the TLS listener is then read from the first offset to the last, 1 MB a request, in turn on both brokers, the
best of three rounds. The client is Python's `ssl`, and has its share of the processor time.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tools.peer.secure import SecureKafka, SecureListeners

from benchmarks import rows
from benchmarks.brokers import has_kafka, rota
from benchmarks.wire import Wire

NAMES = ("PLAINTEXT", "SSL")
ROUNDS, TOTAL_BYTES = 3, 200_000_000
SIZES = (("100 B", 100, 64_000), ("1 KB", 1000, 128_000))
GOAL = 1.0


@contextmanager
def secure_rota(folder: Path) -> Iterator[SecureListeners]:
    """Rota with the listeners of SecureListeners."""
    listeners = SecureListeners(folder, NAMES)
    settings = {
        name: value for name, value in listeners.settings().items() if not name.startswith(("listener.name", "sasl"))
    }
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    with rota(*options, address=listeners.address("PLAINTEXT").replace("localhost", "127.0.0.1"), listen=False):
        yield listeners


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rota-tls-") as folder, ExitStack() as stack:
        brokers: list[SecureListeners] = [stack.enter_context(secure_rota(Path(folder, "rota")))]
        if has_kafka():
            kafka = SecureKafka(Path(folder, "kafka"))
            brokers.append(stack.enter_context(kafka))
        table = Table("work", "unit", "Rota", "Apache Kafka", "ratio", "goal")
        for name, record_bytes, batch_bytes in SIZES:
            topics = [filled(broker, record_bytes, batch_bytes) for broker in brokers]
            best = [0.0] * len(brokers)
            for _ in range(ROUNDS):
                for number, broker in enumerate(brokers):
                    best[number] = max(best[number], read(broker, topics[number]))
            shown = (f"{best[0]:,.0f}", *((f"{best[1]:,.0f}", f"{best[0] / best[1]:.2f}") if best[1:] else ("-", "-")))
            table.add_row(f"consume {name} records over TLS", "MB/s", *shown, f"at least {GOAL:g}")
        Console().print(table)


def filled(broker: SecureListeners, record_bytes: int, batch_bytes: int) -> str:
    """The name of a new topic with TOTAL_BYTES of batches."""
    topic, address = rows.unique("tls"), broker.address("PLAINTEXT")
    rows.create(address, topic, 1)
    rows.fill(address, topic, record_bytes, batch_bytes, TOTAL_BYTES)
    return topic


def read(broker: SecureListeners, topic: str) -> float:
    """MB a second."""
    wire = Wire(broker.address("SSL"), ssl.create_default_context(cafile=str(broker.ca)))
    try:
        return rows.read_all(wire, topic)
    finally:
        wire.close()


if __name__ == "__main__":
    main()

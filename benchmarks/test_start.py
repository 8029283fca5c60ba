"""From asking for a broker in a test to its first acknowledged record: `python -m benchmarks.test_start [RUNS]`.

Each run is a pytest process of its own with one test. The clock starts before the kit is imported and
stops when confluent-kafka's producer has its acknowledgement; that client is imported already, as an application's is.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 7
SUITE = """
import time
from confluent_kafka import Producer

began_s = []

def test_begins():
    began_s.append((time.perf_counter(), time.process_time()))

def test_first_record(rota_broker, rota_topic, capsys):
    producer = Producer({"bootstrap.servers": rota_broker.bootstrap_servers})
    producer.produce(rota_topic, b"first")
    assert producer.flush(10) == 0
    with capsys.disabled():
        wall_s, cpu_s = began_s[0]
        elapsed_s, used_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        print(f"first record after {elapsed_s:.6f} s, {used_s:.6f} s of CPU time")
"""


def run_once() -> tuple[float, float]:
    """Return milliseconds, elapsed and of CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_start.py").write_text(SUITE)
        options = ["-p", "rota.testing.plugin", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
        command = [sys.executable, "-m", "pytest", *options, folder, "--rootdir", folder]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = printed.partition("first record after ")[2].split()
    return float(words[0]) * 1000, float(words[2]) * 1000


def main() -> None:
    """Print the median and the range."""
    runs = [run_once() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)]
    for name, figures in zip(("elapsed", "CPU time"), zip(*runs, strict=True), strict=True):
        middle, first, last = statistics.median(figures), min(figures), max(figures)
        print(f"broker to first record in a test, {name}: {middle:.0f} ms ({first:.0f} to {last:.0f})")


if __name__ == "__main__":
    main()

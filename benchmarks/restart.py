"""A restart with many committed offsets: `python -m benchmarks.restart [--groups 20000] [--partitions 50]`.

A broker gets the offsets and is killed. It is started again, and asked for the offsets of some groups until the group
coordinator answers for all of them: no shard is loading then. Printed are elapsed time, the processor time of the
broker until then, and its memory; `--rota-only` is implied. `--partitions 1 --groups 100000` is many small groups.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.ports import free_port

from benchmarks.brokers import Running, first_answer
from benchmarks.check import cpu_s
from benchmarks.groups import find_coordinator
from benchmarks.rows import COMMIT_VERSION, commit_request, create, unique
from benchmarks.wire import Wire, frame
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

FETCH_VERSION = 8
IN_FLIGHT = 64
QUERIED_GROUPS = 2_000  # enough to have some in each shard
LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


@contextmanager
def broker(folder: str, address: str) -> Iterator[Running]:
    """A broker with its logs in `folder`; killed at the end."""
    command = [str(Path(sys.executable).with_name("rota")), "serve", "--data", folder, "--listen", address]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Running(address, process.pid, first_answer(address, began))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def fill(address: str, groups: list[str], partitions: int) -> None:
    """Commit the offsets of each group."""
    topic = unique("committed")
    create(address, topic, partitions)
    find_coordinator(address, groups[0])
    time.sleep(1)
    wire = Wire(address)
    for first in range(0, len(groups), IN_FLIGHT):
        some = groups[first : first + IN_FLIGHT]
        wire.socket.sendall(
            b"".join(frame(commit_request(group, topic, partitions), COMMIT_VERSION, 1) for group in some)
        )
        for _ in some:
            wire.read()
    wire.close()


def loading(wire: Wire, groups: list[str]) -> list[str]:
    """The groups whose coordinator does not answer yet."""
    request = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in groups))
    answer = wire.send_request(request, FETCH_VERSION, OffsetFetchResponse)
    return [group.group_id for group in answer.groups if group.error_code in LOADING]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restart", description="restart with many offsets")
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    groups, address = [f"group-{number}" for number in range(options.groups)], f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="rota-restart-") as folder:
        with broker(folder, address) as running:
            fill(address, groups, options.partitions)
            print(
                f"{options.groups * options.partitions:,} offsets of {options.groups:,} groups are committed:", end=" "
            )
            print(f"{running.memory_mb():.0f} MB, {cpu_s(running.pid):.1f} s of processor time", flush=True)
        for _ in range(options.rounds):
            began = time.perf_counter()
            with broker(folder, address) as running:
                wire, left, first_s = Wire(address), groups[:: max(1, len(groups) // QUERIED_GROUPS)], 0.0
                while still := loading(wire, left):
                    if len(still) < len(left) and not first_s:
                        first_s = time.perf_counter() - began
                    left = still
                    time.sleep(0.01)
                took_s, used_s = time.perf_counter() - began, cpu_s(running.pid)
                print(
                    f"port open {running.started_s:.2f} s, first groups {first_s:.2f} s, all {took_s:.2f} s,", end=" "
                )
                print(f"{used_s:.2f} s of processor time, {running.memory_mb():.0f} MB", flush=True)


if __name__ == "__main__":
    main()

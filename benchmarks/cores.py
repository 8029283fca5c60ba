"""Group traffic of one host with one broker process and with two: `python -m benchmarks.cores [SECONDS]`.

`rota serve --brokers N` spreads the groups over its processes by their coordinators. One generator process for each
broker pumps ready-made frames (pump.py): the same number of connections, requests in flight and groups in all. Besides
the rate it prints the brokers' processor time of a request: where other work keeps the cores busy, the rate says
little, and this says whether a second process costs more than it brings.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.ports import free_port

from benchmarks.brokers import PROPERTIES, first_answer
from benchmarks.groups import find_coordinator, settled
from benchmarks.pump import LoadConnection, Pumped, pump
from benchmarks.rows import COMMIT_VERSION, HEARTBEAT_VERSION, commit_request, committed_reply, create, unique
from benchmarks.wire import frame
from rota.protocol.messages.heartbeat import HeartbeatRequest

CONNECTIONS, IN_FLIGHT, GROUPS_PER_CONNECTION = 8, 16, 25
ROUNDS, SECONDS = 3, 4.0
SIZES = (1, 2)
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

Traffic = dict[str, list[LoadConnection]]  # by the address of the coordinator


@dataclass(slots=True)
class Host:
    """The first broker's address, and the process ids of all brokers."""

    address: str
    pids: list[int]

    def cpu_s(self) -> float:
        return sum(map(cpu_s_of, self.pids))


@contextlib.contextmanager
def host(brokers: int) -> Iterator[Host]:
    """`rota serve --brokers N` in a fresh folder."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        address = f"127.0.0.1:{free_port()}"
        command = [str(Path(sys.executable).with_name("rota")), "serve", "--data", folder, "--brokers", str(brokers)]
        command += ["--listen", address if brokers == 1 else "127.0.0.1:0"]
        for name, value in PROPERTIES.items():
            command += ["--set", f"{name}={value}"]
        reads, writes = os.pipe()
        began = time.perf_counter()
        with open(os.devnull, "wb") as nowhere:
            process = subprocess.Popen(
                [*command, "--ready-fd", str(writes)], stderr=nowhere, stdout=nowhere, pass_fds=[writes]
            )
        os.close(writes)
        try:
            with os.fdopen(reads) as ready:
                address = ready.readline().split(",")[0].strip()
            first_answer(address, began)
            yield Host(address, _children(process.pid) if brokers > 1 else [process.pid])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def heartbeats(address: str) -> Traffic:
    """Members of one-member groups."""
    traffic: Traffic = {}
    by_coordinator = _groups(address, "beat")
    for coordinator, groups in by_coordinator.items():
        for part in _shares(groups, CONNECTIONS // len(by_coordinator)):
            frames, replies = [], []
            for number, group in enumerate(part):
                (member,) = settled(coordinator, group, 1)
                heartbeat = HeartbeatRequest(
                    group_id=group, generation_id=member.generation, member_id=member.member_id
                )
                frames.append(frame(heartbeat, HEARTBEAT_VERSION, number))
                replies.append(struct.pack(">iibihb", 12, number, 0, 0, 0, 0))
            traffic.setdefault(coordinator, []).append(LoadConnection(frames, replies))
    return traffic


def commits(address: str) -> Traffic:
    """Commits of one partition, without members."""
    topic = unique("committed")
    create(address, topic, 1)
    traffic: Traffic = {}
    by_coordinator = _groups(address, "commit")
    for coordinator, groups in by_coordinator.items():
        for part in _shares(groups, CONNECTIONS // len(by_coordinator)):
            frames = [frame(commit_request(group, topic, 1), COMMIT_VERSION, n) for n, group in enumerate(part)]
            replies = [committed_reply(topic, 1, n) for n in range(len(part))]
            traffic.setdefault(coordinator, []).append(LoadConnection(frames, replies))
    return traffic


WORK = {"heartbeats": heartbeats, "OffsetCommit of 1 partition": commits}


def _groups(address: str, stem: str) -> dict[str, list[str]]:
    """Groups by the address of their coordinator."""
    found: dict[str, list[str]] = {}
    for _ in range(CONNECTIONS * GROUPS_PER_CONNECTION):
        group = unique(stem)
        found.setdefault(find_coordinator(address, group), []).append(group)
    return found


def _shares(groups: Sequence[str], count: int) -> list[Sequence[str]]:
    """Shares of one size: a lane's frames go round together with its replies."""
    size = len(groups) // count
    return [groups[at * size : (at + 1) * size] for at in range(count)]


def drive(traffic: Traffic, seconds: float) -> list[Pumped]:
    """Pump all lanes at once, one process for each coordinator."""
    context = multiprocessing.get_context("fork")
    with context.Pool(len(traffic)) as pool:
        return pool.starmap(pump, [(address, lanes, IN_FLIGHT, seconds) for address, lanes in traffic.items()])


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def cpu_s_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def main(seconds: float = SECONDS) -> None:
    print(f"{'':30} {'brokers':>8} {'requests/s':>12} {'CPU us':>8} {'cores used':>11}")
    for name, prepare in WORK.items():
        for size in SIZES:
            with host(size) as running:
                traffic = prepare(running.address)
                assert len(traffic) == size, f"{len(traffic)} of {size} brokers coordinate groups"
                for _ in range(ROUNDS):
                    before_s, began = running.cpu_s(), time.perf_counter()
                    done = drive(traffic, seconds)
                    took, spent_s = time.perf_counter() - began, running.cpu_s() - before_s
                    requests = sum(each.requests for each in done)
                    rate, cost_us = sum(each.per_s for each in done), spent_s / requests * 1e6
                    print(f"{name:30} {size:8} {rate:12,.0f} {cost_us:8.1f} {spent_s / took:11.2f}", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))

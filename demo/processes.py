"""The broker and the members as child processes. A thread for each process reads the JSON lines that it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from rota.protocol.dataclass import dataclass

STOP_S = 15.0


class Broker:
    """`rota serve` on a folder. Its log lines are appended to `events`."""

    def __init__(self, folder: Path, events: list[dict[str, Any]]) -> None:
        self.folder, self.events = folder, events
        self.address = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the broker and wait until it listens. A second start uses the same port. Raises SystemExit."""
        read, write = os.pipe()
        command = [sys.executable, "-m", "rota.coordinator", "serve", "--data", str(self.folder / "data")]
        command += ["--listen", self.address, "--ready-fd", str(write), "--log-format", "json", "--preset", "dev"]
        self.process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.PIPE, text=True)
        os.close(write)
        assert self.process.stderr is not None
        threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True).start()
        with os.fdopen(read) as ready:
            self.address = ready.readline().strip()
        if not self.address:
            raise SystemExit("the broker did not start: " + "; ".join(str(event) for event in self.events[-5:]))

    def stop(self, signal_number: signal.Signals = signal.SIGTERM) -> None:
        """Send the signal and wait for the end of the process."""
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.wait(STOP_S)

    def _read_log(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                try:
                    self.events.append(json.loads(line))
                except ValueError:
                    self.events.append({"event": line.strip()})


@dataclass
class Member:
    """A consumer process: which partitions it owns and which offsets it has read."""

    name: str
    process: subprocess.Popen[str]
    state: str = "consuming"
    partitions: list[int] = field(default_factory=list)
    ranges: list[tuple[int, int, int]] = field(default_factory=list)  # (partition, first offset, last offset)
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self.read_output, daemon=True)
        self.reader.start()

    @property
    def records_read(self) -> int:
        return sum(last - first + 1 for _, first, last in self.ranges)

    def apply(self, message: dict[str, Any]) -> None:
        """A line of the process: the partitions that it owns now, or the offsets of a batch that it has read."""
        if message["kind"] == "assigned":
            self.partitions = message["partitions"]
        else:
            self.ranges += [(int(part), first, last) for part, (first, last) in message["offsets"].items()]

    def stop(self, signal_number: signal.Signals, state: str) -> None:
        """Send the signal, wait for the end of the process, and apply the last lines that it printed.

        SIGTERM lets the member leave its group, SIGKILL does not.
        """
        self.process.send_signal(signal_number)
        self.process.wait(STOP_S)
        self.reader.join(STOP_S)
        self.state, self.partitions = state, []

    def read_output(self) -> None:
        """Apply each line that the process prints, until it ends."""
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.apply(json.loads(line))


def start_member(client: str, name: str, bootstrap: str, topic: str, group: str) -> Member:
    """Start a consumer of the group that uses `client` (a key of `member.CLIENTS`)."""
    command = [sys.executable, "-m", "rota.demo.member", client, name, bootstrap, topic, group]
    return Member(name, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))

"""The broker and the members as processes, each with a thread that reads the JSON lines it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

START_S, STOP_S = 15.0, 15.0


class Broker:
    """`rota serve` on its embedded store; `story` gathers what its log tells of groups."""

    def __init__(self, folder: Path, story: list[dict[str, Any]]) -> None:
        self.folder, self.story = folder, story
        self.address = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when it answers. Later starts keep the port."""
        read, write = os.pipe()
        command = [sys.executable, "-m", "rota.coordinator", "serve", "--data", str(self.folder / "data")]
        command += ["--listen", self.address, "--ready-fd", str(write), "--log-format", "json", "--preset", "dev"]
        self.process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.PIPE, text=True)
        os.close(write)
        assert self.process.stderr is not None
        threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True).start()
        with os.fdopen(read) as ready:
            self.address = ready.readline().strip()
        if not self.address:
            raise SystemExit("the broker did not start: " + "; ".join(str(line) for line in self.story[-5:]))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it; SIGKILL for a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(STOP_S)

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            try:
                self.story.append(json.loads(line))
            except ValueError:
                self.story.append({"event": line.strip()})


@dataclass
class Member:
    """One consumer process."""

    client: str
    process: subprocess.Popen[str]
    owns: list[int] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)  # (partition, first offset, last offset)
    fate: str = "consuming"

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if said["kind"] == "owns":
                self.owns = said["partitions"]
            else:
                self.spans += [(int(part), first, last) for part, (first, last) in said["spans"].items()]

    @property
    def records_read(self) -> int:
        return sum(last - first + 1 for _, first, last in self.spans)

    def stop(self, how: signal.Signals, fate: str) -> None:
        """SIGTERM: it leaves the group. SIGKILL: nobody hears of it."""
        self.fate, self.owns = fate, []
        self.process.send_signal(how)
        self.process.wait(STOP_S)


def join(client: str, bootstrap: str, topic: str, group: str) -> Member:
    """Start a member."""
    command = [sys.executable, "-m", "tools.demo.member", client, bootstrap, topic, group]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    member = Member(client, process)
    threading.Thread(target=member.listen, daemon=True).start()
    return member

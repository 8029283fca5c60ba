"""`rota serve` as a process on a data folder, which tests kill and start again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.chaos.line import Line

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest

START_S_MAX = 20.0
STOP_S_MAX = 20.0
# sessions outlive every test, so that nobody is removed for its silence
SETTINGS = {"offsets.topic.num.partitions": "4", "num.partitions": "3"}


class Daemon:
    """`async with Daemon(folder) as daemon`: runs; whatever still runs in the end is killed."""

    def __init__(self, data: Path, **settings: str) -> None:
        """Names of settings with underscores for dots."""
        self.data = data
        self.settings = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
        self.address = ""
        self.port = 0  # given by the system; whoever sets it has its lives at one address
        self.process: subprocess.Popen[bytes] | None = None
        self._lines: list[Line] = []

    @property
    def command(self) -> list[str]:
        command = [sys.executable, "-m", "rota.coordinator", "serve", "--data", str(self.data), "--preset", "dev"]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        return [*command, "--listen", f"127.0.0.1:{self.port}"]

    @property
    def log(self) -> Path:
        """What its lives wrote to stderr."""
        return self.data.with_name(self.data.name + ".log")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.log.read_text(errors="replace")[-4000:])
        if self.process is not None:
            self.kill()
        for line in self._lines:
            await line.close()

    async def start(self) -> None:
        """Returns when it answers."""
        self.address = await asyncio.wait_for(asyncio.to_thread(_line, self._spawn()), START_S_MAX)
        if not self.address:
            self.kill()
            raise AssertionError(f"the broker did not start: {self.log.read_text(errors='replace')[-4000:]}")

    async def line(self) -> Line:
        """A connection, and groups that answer: the coordinator is there, its shards are loaded."""
        line = await Line.open(self.address)
        self._lines.append(line)
        found = await line.send_request(FindCoordinatorRequest(key="g"), 2)
        assert found.error_code == ErrorCode.NONE
        return line

    def _spawn(self) -> int:
        """The descriptor on which it will say where it listens."""
        read, write = os.pipe()
        with self.log.open("ab") as log:
            command = [*self.command, "--ready-fd", str(write)]
            self.process = subprocess.Popen(command, pass_fds=[write], stdout=log, stderr=log)
        os.close(write)
        return read

    def kill(self) -> None:
        """SIGKILL. Returns when it is gone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    async def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self.process is not None
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(process.wait, STOP_S_MAX)

    async def crash(self) -> None:
        """kill -9, and a new life on the same data."""
        self.kill()
        await self.start()


def _line(descriptor: int) -> str:
    with os.fdopen(descriptor) as stream:
        return stream.readline().strip()

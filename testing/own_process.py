"""Brokers in a process of their own: `rota test-server`, driven over its control port."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rota.testing.errors import CommandRefused

STOP_S = 30.0
LIFETIME = "8760h"  # a year: the process ends with its input, not in the middle of a long test run
COMMAND_S_MAX = 60.0


class CannotStart(Exception):
    """The test server ended before it was ready; its standard error says why."""


class OwnProcess:
    """Starts the process. It ends with `close`, and by itself when this process is gone. Raises CannotStart."""

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, count: int = 1, data: Path | None = None, seed: int = 0
    ) -> None:
        command = [sys.executable, "-m", "rota.testing.server", "--json", "--brokers", str(count), "--seed", str(seed)]
        command += ["--for", LIFETIME]
        command += ["--data", str(data)] if data is not None else []
        for name, value in (properties or {}).items():
            command += ["--set", f"{name}={value}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise CannotStart(f"rota test-server ended with code {self._process.returncode}")
        ready = json.loads(line)
        self.bootstrap_servers: str = ready["bootstrap_servers"]
        self._address = urlsplit(ready["control"]).netloc

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def call(self, command: str, **arguments: Any) -> Any:
        """Perform a command and return its result. Raises CommandRefused."""
        connection = http.client.HTTPConnection(self._address, timeout=COMMAND_S_MAX)
        try:
            connection.request("POST", "/", json.dumps({"command": command, **arguments}))
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if "error" in answer:
            raise CommandRefused(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the process and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

"""Kafka's command-line tools in one Java for each test process (tests/interop/java/Tools.java)."""

from __future__ import annotations

import atexit
import select
import subprocess
import threading
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.interop.java_classes import command

TOOLS: Final = str(Path(__file__).with_name("java") / "Tools.java")


@dataclass(frozen=True, slots=True)
class Done:
    """How a tool ended."""

    code: int
    output: str
    errors: str


class JavaTools:
    """Starts with the first call. Calls of several threads run one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, *arguments: str, given: str, timeout_s: float) -> Done:
        """Run the class; `given` is its input. Raises TimeoutExpired, and then the next call has a new Java."""
        call = b" ".join(b64encode(word.encode()) for word in (tool, given, *arguments))
        with self._lock:
            answer = self._answer(self._started(), call + b"\n", timeout_s)
            if not answer.endswith(b"\n"):
                self._end()
                raise subprocess.TimeoutExpired([tool, *arguments], timeout_s)
        code, output, errors = answer.rstrip(b"\n").split(b" ")
        return Done(int(code), b64decode(output).decode(), b64decode(errors).decode())

    def close(self) -> None:
        """End the Java."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                command(TOOLS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], call: bytes, timeout_s: float) -> bytes:
        """A line; without its end when the Java has ended or has not answered within `timeout_s` of its last byte."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(call)
        answer = b""
        while not answer.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], timeout_s)
            more = process.stdout.read(1 << 16) if readable else None
            if not more:
                break
            answer += more
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


java_tools: Final = JavaTools()
atexit.register(java_tools.close)

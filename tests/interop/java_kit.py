"""Runs Kafka's own client and tools, if Java and Kafka's jars are installed."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from tests.interop.kit import until
from tools.peer.jars import java, lib

TALK = str(Path(__file__).with_name("java") / "Talk.java")
JAVA_S_MAX = 90

needs_java = [
    pytest.mark.java,
    pytest.mark.skipif(
        shutil.which("java") is None or lib() is None, reason="no Java, or no jars of Kafka: python -m tools.peer fetch"
    ),
]


def run_java(*arguments: str, given: str = "") -> str:
    """What a Java program prints; its complaint when it fails."""
    command = java("-XX:TieredStopAtLevel=1", *arguments)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=JAVA_S_MAX, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return done.stdout


def run_java_failing(*arguments: str) -> str:
    """All that a Java program prints that is expected to fail."""
    command = java("-XX:TieredStopAtLevel=1", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=JAVA_S_MAX, check=False)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def talk(bootstrap: str, *arguments: str) -> str:
    return run_java(TALK, bootstrap, *arguments)


class JavaProgram:
    """A Java program in a process of its own; `lines` are what it has printed."""

    def __init__(self, *arguments: str) -> None:
        command = java("-XX:TieredStopAtLevel=1", *arguments)
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self) -> int:
        """Wait for its end; return its exit code. Raises TimeoutExpired."""
        code = self._process.wait(JAVA_S_MAX)
        self._reader.join()
        return code

    def stop(self) -> int:
        """SIGTERM; return its exit code."""
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))


class JavaMember:
    """Talk's `member` in a process of its own."""

    def __init__(self, bootstrap: str, group: str, topic: str, assignor: str = "RangeAssignor") -> None:
        command = java("-XX:TieredStopAtLevel=1", TALK, bootstrap, "member", group, topic, assignor)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def partitions(self) -> set[int]:
        owns = [line for line in self.lines if line.startswith("owns ")]
        return {int(number) for number in owns[-1][5:].split(",") if number} if owns else set()

    @property
    def values(self) -> list[str]:
        return [line[4:] for line in self.lines if line.startswith("got ")]

    def close(self) -> None:
        """Have it leave."""
        self._process.communicate("end\n", timeout=JAVA_S_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        until(lambda: not self._reader.is_alive(), "the end of its output")
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

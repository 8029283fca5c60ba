"""Runs Kafka's own client and tools, if Java and Kafka's jars are installed."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from tests.interop.java_classes import command
from tests.interop.java_tools import Done, java_tools
from tests.interop.kit import until
from tools.peer.jars import lib

KAFKA_CLIENT = str(Path(__file__).with_name("java") / "KafkaClient.java")
JAVA_S_MAX = 90

needs_java = [
    pytest.mark.java,
    pytest.mark.skipif(
        shutil.which("java") is None or lib() is None, reason="no Java, or no jars of Kafka: python -m tools.peer fetch"
    ),
]


def run_java(name: str, *arguments: str, given: str = "") -> str:
    """What a class, or a source file of the tests, prints. Fails with what it says when its exit code is not 0."""
    done = _run(name, *arguments, given=given)
    assert done.code == 0, done.errors[-2000:] + done.output[-2000:]
    return done.output


def run_java_failing(name: str, *arguments: str) -> str:
    """All that a Java program prints that is expected to fail."""
    done = _run(name, *arguments)
    assert done.code != 0, done.output
    return done.output + done.errors


def _run(name: str, *arguments: str, given: str = "") -> Done:
    """Classes of Kafka run in a Java that lives on; programs of the tests in one of their own."""
    if not name.endswith(".java"):
        return java_tools.run(name, *arguments, given=given, timeout_s=JAVA_S_MAX)
    done = subprocess.run(
        command(name, *arguments), input=given, capture_output=True, text=True, timeout=JAVA_S_MAX, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_kafka_client(bootstrap: str, *arguments: str) -> str:
    return run_java(KAFKA_CLIENT, bootstrap, *arguments)


class JavaProgram:
    """A Java program in a process of its own; `lines` are what it has printed."""

    def __init__(self, name: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            command(name, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
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


class PrintingMember:
    """A group member in a process; it prints "owns P,P,..." and "got VALUE"; it leaves at its input's end."""

    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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

    def kill(self) -> None:
        """SIGKILL: it does not leave."""
        self._process.kill()
        self._process.wait()

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


class JavaMember(PrintingMember):
    """`member` of KafkaClient.java. `assignor` "consumer": a member of the consumer protocol (KIP-848)."""

    def __init__(self, bootstrap: str, group: str, topic: str, assignor: str = "RangeAssignor") -> None:
        super().__init__(command(KAFKA_CLIENT, bootstrap, "member", group, topic, assignor))

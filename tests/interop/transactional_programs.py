"""Transactional producers in another language: java/Transactional.java and go/transactional.go.

A program runs as long as its class has open producers, and does what each line says.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from tests.interop.client_suites import franz_go, sarama
from tests.interop.client_suites.kit import Unavailable, fetch, home, settle
from tests.interop.java_classes import command
from tests.interop.transactional import Transactional

HERE: Final = Path(__file__).parent
GO_SOURCE: Final = HERE / "go" / "transactional.go"


class Fenced(Exception):
    """Another producer has the id now."""


class Failed(Exception):
    """Any other error of the client, with its text."""


class ProgramProducer(Transactional):
    """A producer of `PROGRAM`, which is given by `program`."""

    PROGRAM: ClassVar[subprocess.Popen[str]]
    _names = itertools.count()

    @classmethod
    def command(cls) -> list[str]:
        """The command line of the program. Raises Unavailable, Missing."""
        raise NotImplementedError

    @classmethod
    @contextmanager
    def program(cls) -> Iterator[type[ProgramProducer]]:
        """The class, with a running program."""
        with subprocess.Popen(cls.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            cls.PROGRAM = process
            try:
                yield cls
            finally:
                assert process.stdin is not None
                process.stdin.close()

    def _send_request(self, action: str, *words: object) -> None:
        process = type(self).PROGRAM
        assert process.stdin is not None
        assert process.stdout is not None
        print(action, self._name, *words, file=process.stdin, flush=True)
        reply = process.stdout.readline().rstrip("\n")
        if reply == "fenced":
            raise Fenced(action)
        if reply != "ok":
            raise Failed(f"{action}: {reply}")

    def open(self) -> None:
        self._name = f"p{next(self._names)}"
        self._send_request("open", self.bootstrap, self.transactional_id, self.timeout_ms)

    def close(self) -> None:
        self._send_request("close")

    def begin(self) -> None:
        self._send_request("begin")

    def send(self, topic: str, value: bytes) -> None:
        self._send_request("send", topic, value.decode())

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        self._send_request("offset", group, topic, offset)

    def commit(self) -> None:
        self._send_request("commit")

    def abort(self) -> None:
        self._send_request("abort")

    def is_fenced(self, error: BaseException) -> bool:
        return isinstance(error, Fenced)


class Java(ProgramProducer):
    """Apache Kafka's own client."""

    @classmethod
    def command(cls) -> list[str]:
        return command(str(HERE / "java" / "Transactional.java"))


class FranzGo(ProgramProducer):
    """franz-go (kgo)."""

    @classmethod
    def command(cls) -> list[str]:
        return [str(built()), "franz-go"]


class Sarama(ProgramProducer):
    """sarama."""

    @classmethod
    def command(cls) -> list[str]:
        return [str(built()), "sarama"]


def built() -> Path:
    """The program of go/transactional.go. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    text = GO_SOURCE.read_bytes()
    folder = home() / "go-transactional"
    if not (folder / "transactional").exists() or (folder / "transactional.go").read_bytes() != text:
        shutil.rmtree(folder, ignore_errors=True)
        part = home() / f"go-transactional-part-{os.getpid()}"
        part.mkdir(parents=True, exist_ok=True)
        (part / "go.mod").write_text("module transactional\n\ngo 1.24\n")
        (part / "transactional.go").write_bytes(text)
        module, _, version = franz_go.MODULE.partition("@")
        fetch(["go", "get", f"{module}/pkg/kgo@{version}", sarama.MODULE], part, GOFLAGS="-mod=mod")
        fetch(["go", "build", "-o", str(part / "transactional"), "."], part, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder / "transactional"

"""Java's consumers as members, all in one Java (tests/interop/java/Members.java)."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Final

from tests.interop import java_kit
from tests.interop.java_classes import command
from tests.interop.java_kit import JAVA_S_MAX
from tests.interop.kit import until

MEMBERS: Final = str(Path(java_kit.__file__).with_name("java") / "Members.java")


class JavaMember:
    """One member; what it told."""

    def __init__(self, home: JavaMembers, group: str) -> None:
        self._home = home
        self._group = group

    @property
    def lines(self) -> list[str]:
        answer = self._group + " "
        return [line.removeprefix(answer) for line in list(self._home.lines) if line.startswith(answer)]

    @property
    def partitions(self) -> set[int]:
        owns = [line for line in self.lines if line.startswith("owns ")]
        return {int(number) for number in owns[-1][5:].split(",") if number} if owns else set()

    @property
    def values(self) -> list[bytes]:
        return [line[4:].encode() for line in self.lines if line.startswith("got ")]

    def close(self) -> None:
        """Have it leave, and wait for it."""
        self._home.send(f"leave {self._group}")
        until(lambda: "left" in self.lines, "Java's member to leave")


class JavaMembers:
    """A Java with members of any groups, one of each."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(command(MEMBERS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def join(self, bootstrap: str, group: str, topic: str, assignor: str) -> JavaMember:
        """`assignor`: the name of Java's class."""
        self.send(f"join {bootstrap} {group} {topic} {assignor}")
        return JavaMember(self, group)

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it, with all members that are left."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(JAVA_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(JAVA_S_MAX)
        self._process.stdout.close()
        assert self._process.returncode == 0

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

"""Log lines into real pipes: one that is read late, one that is never read, one that is closed."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator

import pytest

from rota.coordinator.observe.log_writer import LogWriter

LINE = "x" * 99
PATIENCE_S = 20.0


class Pipe:
    """Both ends of a pipe, as small as the system has them."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(self.write_fd, fcntl.F_SETPIPE_SZ, 4096)
        self.data = b""
        self._reader = threading.Thread(target=self._read)

    def read(self) -> None:
        """Begin to read, to the end."""
        self._reader.start()

    def text(self) -> str:
        """All that was written, once the writer is done."""
        os.close(self.write_fd)
        self.write_fd = -1
        self._reader.join(PATIENCE_S)
        return self.data.decode()

    def _read(self) -> None:
        while chunk := os.read(self.read_fd, 65536):
            self.data += chunk

    def close(self) -> None:
        if self.write_fd >= 0:
            os.close(self.write_fd)
        if self._reader.ident is not None:  # it must not read from a descriptor that somebody else has by then
            self._reader.join(PATIENCE_S)
        if self.read_fd >= 0:
            os.close(self.read_fd)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def report(lines: int) -> str:
    return f"{lines} dropped"


def test_lines_are_written_in_their_order(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_fd, report)
    pipe.read()
    for number in range(5_000):
        writer.write(f"line {number} \ud800 é")
    assert writer.close(PATIENCE_S)
    assert pipe.text().splitlines() == [f"line {number} \\ud800 é" for number in range(5_000)]
    assert writer.dropped_lines == 0


def test_of_lines_that_are_queued_together_those_are_dropped_for_which_there_is_no_room(pipe: Pipe) -> None:
    """Laws LG1, LG2."""
    writer = LogWriter(pipe.write_fd, report, bytes_max=2 * len(LINE) + 2)
    writer.write(f"{LINE}\n{LINE}\n{LINE}\n{LINE}\n{LINE}")
    pipe.read()
    assert writer.close(PATIENCE_S)
    assert (writer.dropped_lines, pipe.text()) == (3, f"{LINE}\n{LINE}\n3 dropped\n")


def test_a_pipe_that_is_not_read_blocks_no_writer_and_loses_a_counted_number_of_lines(pipe: Pipe) -> None:
    """Laws LG1, LG2."""
    writer = LogWriter(pipe.write_fd, report, bytes_max=10_000)
    for _ in range(10_000):
        writer.write(LINE)
    assert 0 < writer.dropped_lines < 10_000
    pipe.read()
    assert writer.close(PATIENCE_S)
    lines = pipe.text().splitlines()
    reports = [int(line.split()[0]) for line in lines if line != LINE]
    assert sum(reports) == writer.dropped_lines
    assert len(lines) - len(reports) == 10_000 - writer.dropped_lines


def test_lg2_lines_that_are_given_together_are_counted_one_by_one(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_fd, report, bytes_max=10)
    writer.write("\n".join([LINE] * 3))
    assert writer.dropped_lines == 3
    writer.write("a\nb")
    pipe.read()
    assert writer.close(PATIENCE_S)
    assert sorted(pipe.text().splitlines()) == ["3 dropped", "a", "b"]


def test_after_lines_were_dropped_the_next_ones_are_written(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_fd, report, bytes_max=10_000)
    while not writer.dropped_lines:
        writer.write(LINE)
    pipe.read()
    late = 0
    while b"late" not in pipe.data:
        writer.write(f"late {late}")
        late += 1
    assert writer.close(PATIENCE_S)


def test_closing_does_not_wait_for_a_pipe_that_is_not_read(pipe: Pipe) -> None:
    """Law LG3."""
    writer = LogWriter(pipe.write_fd, report)
    for _ in range(200):
        writer.write(LINE)
    assert not writer.close(0.01)
    pipe.read()
    assert writer.close(PATIENCE_S)


def test_lines_are_gathered_and_written_together_at_the_latest_when_it_closes(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law LG4."""
    monkeypatch.setattr("rota.coordinator.observe.log_writer.GATHER_S", 3 * PATIENCE_S)
    writes, write = list[bytes](), os.write

    def written(fd: int, data: memoryview) -> int:
        writes.append(bytes(data))
        return write(fd, data)

    monkeypatch.setattr("rota.coordinator.observe.log_writer.os.write", written)
    writer = LogWriter(pipe.write_fd, report)
    for line in ("one", "two", "three"):
        writer.write(line)
    assert writer.close(PATIENCE_S)
    assert writes == [b"one\ntwo\nthree\n"]


def test_a_pipe_that_was_closed_is_nobodys_failure(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_fd, report)
    os.close(pipe.read_fd)
    pipe.read_fd = -1
    for _ in range(10):
        writer.write(LINE)
    assert writer.close(PATIENCE_S)


def test_a_descriptor_that_does_not_block_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.write_fd, False)
    writer = LogWriter(pipe.write_fd, report)
    for _ in range(500):
        writer.write(LINE)
    pipe.read()
    assert writer.close(PATIENCE_S)
    assert pipe.text() == (LINE + "\n") * 500

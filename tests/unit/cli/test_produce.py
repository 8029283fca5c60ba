"""Reading lines; tests/cli/test_produce.py sends them to brokers."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path

import pytest
from tests.unit.client.producer.leader import Leader

from rota.cli import produce
from rota.cli.main import run
from rota.cli.produce import CHUNK_BYTES, read_lines
from rota.cli.session import EXIT_TIMED_OUT
from rota.cli.settings import UsageError


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\n\nb", [b"a", b"", b"b"]),
        (b"x" * CHUNK_BYTES * 3 + b"\ny\n", [b"x" * CHUNK_BYTES * 3, b"y"]),
        (b"z\n" * CHUNK_BYTES * 5, [b"z"] * CHUNK_BYTES * 5),
    ],
    ids=["empty", "one", "ended", "mixed", "longer than a chunk", "many chunks"],
)
async def test_lines_of_a_file(tmp_path: Path, content: bytes, lines: list[bytes]) -> None:
    file = tmp_path / "lines"
    file.write_bytes(content)
    descriptor = os.open(file, os.O_RDONLY)
    assert [line async for line in read_lines(descriptor)] == lines
    os.close(descriptor)


async def test_lines_of_a_pipe_are_read_before_its_end() -> None:
    reads, writes = os.pipe()
    os.write(writes, b"first\nsec")
    lines = read_lines(reads)
    assert await anext(lines) == b"first"
    os.write(writes, b"ond\n")
    assert await anext(lines) == b"second"
    os.close(writes)
    assert [line async for line in lines] == []
    os.close(reads)


async def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(produce, "LINE_BYTES_MAX", CHUNK_BYTES * 3)
    file = tmp_path / "lines"
    file.write_bytes(b"a\n" + b"x" * CHUNK_BYTES * 4)
    descriptor = os.open(file, os.O_RDONLY)
    lines = read_lines(descriptor)
    assert await anext(lines) == b"a"
    with pytest.raises(UsageError, match="a line has more than 196608 bytes"):
        await anext(lines)
    for thread in threading.enumerate():
        if thread.name == "input":
            await asyncio.to_thread(thread.join)  # it may still read
    os.close(descriptor)


async def test_an_input_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(UsageError, match="Is a directory"):
        assert [line async for line in read_lines(descriptor)]
    os.close(descriptor)


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["produce", "t", "--file", "/does/not/exist"]) == 2
    assert "cannot read /does/not/exist: No such file" in capsys.readouterr().err


def test_a_value_and_a_file_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["produce", "t", "--value", "v", "--file", "/dev/null"]) == 2
    assert "give --value or --file" in capsys.readouterr().err


async def test_cl25_what_was_sent_before_a_failure_of_the_cluster_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x" * 1_000 + b"\n" + b"y" * 10_000 + b"\n" * 1 + (b"z" * 10_000 + b"\n") * 100)
    async with Leader(partitions=1) as leader:
        leader.before = lambda *_: [] if leader.logs else None  # answers the first request alone
        properties = {"buffer.memory": 100_000, "max.block.ms": 500, "request.timeout.ms": 500, "linger.ms": 0,
                      "delivery.timeout.ms": 1_000}  # fmt: skip
        arguments = ["produce", "t", "--file", str(file), "--json", "--bootstrap-server", leader.address]
        for name, value in properties.items():
            arguments += ["--command-property", f"{name}={value}"]
        code = await asyncio.to_thread(run, arguments)
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert code == EXIT_TIMED_OUT
    assert (document["records"], document["partitions"][0]["first_offset"]) == (len(leader.logs[0]), 0)
    assert document["failed"]
    assert "buffer_memory" in printed.err

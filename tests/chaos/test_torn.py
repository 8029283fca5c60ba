"""The last write before a crash tore: what lies before it is there, and the broker starts. L2, J2."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.chaos.daemon import Daemon
from tests.chaos.requests import batch, commit, committed, create_topic, produce, produced, records_of

from rota.coordinator.runtime.routing import shard_of

BATCHES = 20


def cut(path: Path, count: int) -> None:
    """Tear off the last bytes."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - count])


def spoil(path: Path, count: int) -> None:
    """The last bytes never reached the medium; the length did."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - count] + bytes(count))


def active_segment(folder: Path) -> Path:
    return max(folder.glob("*.log"))


@pytest.mark.parametrize("tear", [cut, spoil])
async def test_a_torn_segment_loses_its_last_batch_and_no_other(seed: int, tear: object, tmp_path: Path) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        await create_topic(await daemon.line(), partitions=1)
        values = [b"value-%d" % at for at in range(BATCHES)]
        line = await daemon.line()
        for value in values:
            await line.send_request(produce(0, batch(value)), 9)
        daemon.kill()
        size_bytes = len(batch(values[-1]))
        tear(active_segment(daemon.data / "t-0"), Random(seed).randrange(1, size_bytes))  # type: ignore[operator]
        await daemon.start()
        line = await daemon.line()
        assert list((await records_of(line, 0)).values()) == values[:-1]
        assert produced(await line.send_request(produce(0, batch(b"next")), 9))[1] == BATCHES - 1
        assert list((await records_of(line, 0)).values()) == [*values[:-1], b"next"]


async def test_a_torn_offsets_partition_loses_its_last_commit_and_no_other(seed: int, tmp_path: Path) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        line = await daemon.line()
        await create_topic(line)
        for offset in range(1, BATCHES):
            await line.send_request(commit("g", 0, offset), 8)
            await line.send_request(commit("other", 0, offset), 8)
        daemon.kill()
        folder = daemon.data / f"__consumer_offsets-{shard_of('g', 4)}"
        assert shard_of("g", 4) != shard_of("other", 4)
        cut(active_segment(folder), Random(seed).randrange(1, 60))
        await daemon.start()
        line = await daemon.line()
        assert await committed(line, "g", 0) == (BATCHES - 2, "")
        assert await committed(line, "other", 0) == (BATCHES - 1, "")
        await line.send_request(commit("g", 0, 99), 8)
        await daemon.crash()
        assert await committed(await daemon.line(), "g", 0) == (99, "")


async def test_a_torn_journal_loses_its_last_change_and_no_other(seed: int, tmp_path: Path) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        line = await daemon.line()
        for name in ("first", "second"):
            await create_topic(line, name, 1)
            await line.send_request(produce(0, batch(name.encode()), name), 9)
        daemon.kill()
        cut(daemon.data / "metadata.journal", Random(seed).randrange(1, 20))
        await daemon.start()
        line = await daemon.line()
        assert await records_of(line, 0, "first") == {0: b"first"}
        await create_topic(line, "second", 1)
        assert await records_of(line, 0, "second") == {}, "A3"


async def test_missing_index_files_are_rebuilt(tmp_path: Path) -> None:
    async with Daemon(tmp_path / "data", log_segment_bytes="1048576") as daemon:
        line = await daemon.line()
        await create_topic(line, partitions=1)
        values = [b"%d/" % at + bytes(50_000) for at in range(60)]
        for value in values:
            await line.send_request(produce(0, batch(value)), 9)
        daemon.kill()
        for path in [*daemon.data.glob("t-0/*.index"), *daemon.data.glob("t-0/*.timeindex")]:
            path.unlink()
        await daemon.start()
        assert list((await records_of(await daemon.line(), 0)).values()) == values

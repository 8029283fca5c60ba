"""Law F11: loads run in another thread, as long as they bring the read further."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rota.coordinator.log.errors import StorageFailed
from rota.coordinator.log.index_rebuild import IndexRebuild, Rebuilt
from rota.coordinator.replica.cold_reads import PASSES_MAX, load_and_read


@dataclass(frozen=True)
class Page:
    """A load of one page. Pages of one number are equal."""

    number: int
    threads: list[int] = field(compare=False, default_factory=list)

    def __call__(self) -> None:
        self.threads.append(threading.get_ident())
        raise OSError(5, "a load that fails leaves the error to the read")


@dataclass
class Result:
    loads: list[Page] | list[IndexRebuild]
    waited: bool = False


def reader(*passes: list[Page]) -> Callable[[bool], Result]:
    """Return a read that needs these pages, pass by pass, and none if it may wait."""
    upcoming = iter(passes)
    return lambda wait: Result([], waited=True) if wait else Result(next(upcoming))


async def test_a_read_is_repeated_while_it_needs_other_data() -> None:
    pages = [Page(number) for number in range(6)]
    result = await load_and_read(Result(pages[:1]), reader(*([page] for page in pages[1:]), []))
    assert (result.loads, result.waited) == ([], False)
    assert [len(page.threads) for page in pages] == [1] * 6
    assert all(threading.get_ident() not in page.threads for page in pages)


async def test_a_read_is_repeated_while_it_needs_less_than_before() -> None:
    pages = [Page(number) for number in range(3)]
    result = await load_and_read(Result(pages), reader(pages[1:], pages[2:], []))
    assert not result.waited


async def test_a_read_waits_for_the_disk_when_loading_brings_it_no_further() -> None:
    page = Page(0)
    result = await load_and_read(Result([page]), reader([page]))
    assert result.waited
    assert len(page.threads) == 1


async def test_the_passes_have_a_limit() -> None:
    pages = [[Page(number)] for number in range(2 * PASSES_MAX)]
    result = await load_and_read(Result(pages[0]), reader(*pages[1:]))
    assert result.waited
    assert sum(len(page.threads) for (page,) in pages) == PASSES_MAX


async def test_readers_that_wait_for_one_rebuild_hold_no_other_work_up() -> None:
    goes_on = threading.Event()

    def rebuild() -> Rebuilt:
        goes_on.wait()
        raise StorageFailed("the file is gone")

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    load = IndexRebuild(rebuild)
    waiting = [asyncio.ensure_future(load_and_read(Result([load]), reader([]))) for _ in range(3)]
    try:
        await asyncio.wait_for(asyncio.to_thread(goes_on.set), 5)
    finally:
        goes_on.set()
    assert [result.waited for result in await asyncio.gather(*waiting)] == [False] * 3

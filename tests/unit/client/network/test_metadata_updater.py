import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.unit.client.network.scripted import eventually

from rota.client.config import ClientConfig
from rota.client.errors import Unreachable
from rota.client.network.metadata import Metadata
from rota.client.network.metadata_updater import MetadataUpdater
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker


class Paper:
    """Whoever prints the news: what was asked, when; answers wait for `gate`."""

    def __init__(self) -> None:
        self.requests: list[MetadataRequest] = []
        self.at: list[float] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.controller = 0

    async def send_request(self, request: MetadataRequest) -> MetadataResponse:
        self.requests.append(request)
        self.at.append(asyncio.get_running_loop().time())
        controller = self.controller
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        brokers = (MetadataResponseBroker(node_id=0, host="h", port=1),)
        return MetadataResponse(brokers=brokers, controller_id=controller)


Start = Callable[..., MetadataUpdater]


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture
async def start(paper: Paper) -> AsyncIterator[Start]:
    running: list[tuple[MetadataUpdater, asyncio.Task[None]]] = []

    def started(auto_create: bool = False, **settings: Any) -> MetadataUpdater:
        config = ClientConfig(bootstrap_servers="h:1", **{"retry_backoff_ms": 5, **settings})
        updater = MetadataUpdater(config, paper.send_request, auto_create)
        running.append((updater, asyncio.create_task(updater.run())))
        return updater

    yield started
    for updater, task in running:
        updater.close()
        task.cancel()
        await asyncio.wait([task])


def names(request: MetadataRequest) -> list[str | None] | None:
    return None if request.topics is None else [topic.name for topic in request.topics]


async def test_a_refresh_requests_the_set_topics(start: Start, paper: Paper) -> None:
    updater = start()
    assert (await updater.refresh()).brokers[0].host == "h"
    updater.set_topics(["b", "a", "b"])
    await updater.refresh()
    updater.set_topics(None)
    await updater.refresh()
    assert [names(item) for item in paper.requests] == [[], ["a", "b"], None]
    assert not any(item.allow_auto_topic_creation for item in paper.requests)
    await start(auto_create=True).refresh()
    assert paper.requests[-1].allow_auto_topic_creation


async def test_some_topics_are_wanted_for_a_while(start: Start, paper: Paper) -> None:
    updater = start()
    updater.set_topics(["a"])
    with updater.with_topics(["b"]), updater.with_topics(["b", "c"]):
        await updater.refresh()
    await updater.refresh()
    assert [names(item) for item in paper.requests] == [["a", "b", "c"], ["a"]]


async def test_a_refresh_during_a_request_gets_the_next_response(start: Start, paper: Paper) -> None:
    updater = start()
    paper.gate.clear()
    first = asyncio.create_task(updater.refresh())
    await eventually(lambda: paper.requests)
    paper.controller = 7
    later = [asyncio.create_task(updater.refresh()) for _ in range(3)]
    await asyncio.sleep(0)
    paper.gate.set()
    assert (await first).controller == 0
    assert [(await item).controller for item in later] == [7, 7, 7]
    assert len(paper.requests) == 2


async def test_cancelling_one_refresh_does_not_affect_the_others(start: Start, paper: Paper) -> None:
    updater = start()
    paper.gate.clear()
    waiting = [asyncio.create_task(updater.refresh()) for _ in range(2)]
    await eventually(lambda: paper.requests)
    waiting[0].cancel()
    paper.gate.set()
    assert (await waiting[1]).brokers


async def test_a_failure_is_raised_to_all_waiting_refreshes(start: Start, paper: Paper) -> None:
    updater = start()
    paper.failure = Unreachable("nobody there")
    failures = await asyncio.gather(updater.refresh(), updater.refresh(), return_exceptions=True)
    assert [str(item) for item in failures] == ["nobody there"] * 2
    assert failures[0] is not failures[1]
    paper.failure = None
    assert (await updater.refresh()).brokers


async def test_an_unexpected_exception_is_raised_and_the_updater_continues(
    start: Start, paper: Paper, caplog: pytest.LogCaptureFixture
) -> None:
    updater = start()
    paper.failure = ZeroDivisionError("ours")
    with pytest.raises(Unreachable, match="could not be processed: ZeroDivisionError: ours"):
        await updater.refresh()
    assert "ZeroDivisionError" in caplog.text
    paper.failure = None
    assert (await updater.refresh()).brokers


async def test_a_requested_refresh_is_retried_in_the_background(start: Start, paper: Paper) -> None:
    updater = start()
    paper.failure = Unreachable("nobody there")
    updater.request_refresh()
    await eventually(lambda: len(paper.requests) >= 3)
    paper.failure = None
    await eventually(lambda: updater.metadata.version)
    count = len(paper.requests)
    assert not updater._is_stale
    assert updater._due() > asyncio.get_running_loop().time() + 100
    assert len(paper.requests) == count


async def test_nc12_a_failure_is_raised_to_those_that_share_a_response_and_repeated_without_them(
    start: Start, paper: Paper
) -> None:
    updater = start()
    paper.failure = Unreachable("nobody there")
    failures = await asyncio.gather(updater.next_response(), updater.next_response(), return_exceptions=True)
    assert ([str(item) for item in failures], len(paper.requests)) == (["nobody there"] * 2, 1)
    paper.failure = None
    await eventually(lambda: updater.metadata.version)


async def test_background_reading_keeps_a_growing_distance(start: Start, paper: Paper) -> None:
    updater = start(retry_backoff_ms=20)
    for requests in range(1, 6):
        updater.request_refresh()
        await eventually(lambda requests=requests: len(paper.requests) == requests and not updater._is_stale)
    gaps = [later - earlier for earlier, later in zip(paper.at, paper.at[1:], strict=False)]
    least = [20, 20, 40, 80]  # the first answer was a change: the count begins again
    assert all(gap * 1000 >= wait * 0.79 for gap, wait in zip(gaps, least, strict=True)), gaps


async def test_the_first_alarm_after_a_quiet_time_is_answered_at_once(start: Start, paper: Paper) -> None:
    updater = start(retry_backoff_ms=1, retry_backoff_max_ms=1)
    await updater.refresh()
    updater._unchanged, updater._pause = 9, 3600.0
    loop = asyncio.get_running_loop()
    await eventually(lambda: loop.time() > updater._tried_at + 0.005)
    updater.request_refresh()
    await eventually(lambda: len(paper.requests) == 2)


async def test_metadata_is_refreshed_after_its_max_age(start: Start, paper: Paper) -> None:
    start(metadata_max_age_ms=10)
    await eventually(lambda: len(paper.requests) >= 3)


async def test_listeners_are_called_for_changes_only(start: Start, paper: Paper) -> None:
    updater = start()
    answers: list[Metadata] = []
    broken = updater.on_change(lambda _: 1 / 0)  # its failure harms nobody
    end = updater.on_change(answers.append)
    await updater.refresh()
    await updater.refresh()
    assert [item.version for item in answers] == [1]
    broken()
    paper.controller = 7
    assert await updater.refresh() is answers[-1]
    end()
    end()
    paper.controller = 8
    await updater.refresh()
    assert [item.controller for item in answers] == [0, 7]


async def test_replace_sets_metadata_and_calls_the_listeners(start: Start) -> None:
    updater = start()
    answers: list[Metadata] = []
    updater.on_change(answers.append)
    updater.replace(Metadata(version=1, controller=3))
    assert (updater.metadata.controller, len(answers)) == (3, 1)


async def test_closing_fails_waiting_refreshes(start: Start, paper: Paper) -> None:
    paper.gate.clear()
    updater = start()
    first = asyncio.create_task(updater.refresh())
    await eventually(lambda: paper.requests)
    second = asyncio.create_task(updater.refresh())
    await asyncio.sleep(0)
    updater.close()
    with pytest.raises(Unreachable, match="the client was closed"):
        await second
    with pytest.raises(Unreachable, match="the client was closed"):
        await updater.refresh()
    paper.gate.set()
    assert (await first).brokers


async def test_cancelling_the_updater_fails_waiting_refreshes() -> None:
    paper = Paper()
    paper.gate.clear()
    updater = MetadataUpdater(ClientConfig(bootstrap_servers="h:1"), paper.send_request, False)
    running = asyncio.create_task(updater.run())
    waiting = asyncio.create_task(updater.refresh())
    await eventually(lambda: paper.requests)
    running.cancel()
    with pytest.raises(Unreachable, match="the client was closed"):
        await waiting
    await asyncio.wait([running])

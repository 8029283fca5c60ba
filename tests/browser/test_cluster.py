"""The console in a real browser on a cluster: every broker's console shows all brokers, topics and groups."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.members import Members
from tests.cluster.brokers import Brokers

GROUP, TOPIC = "billing", "orders"
PATIENCE_SECONDS = 30


class Cluster:
    """Three brokers with consoles on an event loop in a thread, and members of a group."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.brokers = Brokers(3, {"rota.http.listener": "127.0.0.1:0", "default.replication.factor": "3"})
        self.run(self.brokers.__aenter__())
        self.members = Members(self.brokers.bootstrap())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def url(self, broker_id: int) -> str:
        return self.brokers.by_id[broker_id].console_url.rstrip("/")

    def coordinator(self) -> int:
        return self.brokers.coordinator(GROUP)

    def others(self) -> list[int]:
        return [broker_id for broker_id in self.brokers.by_id if broker_id != self.coordinator()]

    def stop(self) -> None:
        self.members.stop()
        self.run(self.brokers.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started() as cluster:
        yield cluster


@pytest.fixture
def mortal_cluster() -> Iterator[Cluster]:
    """A cluster of one test, which may stop its brokers."""
    with started() as cluster:
        yield cluster


@contextmanager
def started() -> Iterator[Cluster]:
    """A cluster with a topic, records and a group of two members."""
    cluster = Cluster()
    try:
        cluster.members.create(TOPIC, 6)
        for number in range(12):
            cluster.members.produce(TOPIC, b'{"order": %d}' % number, key=b"customer-%d" % number)
        for name in ("worker-1", "worker-2"):
            cluster.members.join(GROUP, name, TOPIC)
        yield cluster
    finally:
        cluster.stop()


def test_each_console_shows_all_brokers_and_one_controller(page: Page, cluster: Cluster) -> None:
    for broker_id in cluster.brokers.ids:
        page.goto(f"{cluster.url(broker_id)}/#/")
        table = page.get_by_role("table")
        expect(table).to_contain_text(f"as broker {broker_id} sees it")
        expect(table.get_by_role("row")).to_have_count(4, timeout=PATIENCE_SECONDS * 1000)
        expect(table.get_by_role("row", name=re.compile("controller"))).to_have_count(1)
        expect(page.get_by_text("does not answer")).to_have_count(0)


def test_a_group_of_another_coordinator_has_its_members_lag_timeline_and_reasons(page: Page, cluster: Cluster) -> None:
    page.goto(f"{cluster.url(cluster.others()[0])}/#/groups")
    page.get_by_role("link", name=GROUP, exact=True).click()
    members = page.get_by_role("region", name="Members and the partitions")
    expect(members.get_by_role("row")).to_have_count(3)
    expect(page.get_by_role("img", name=re.compile("Timeline from .* rebalances"))).to_be_visible()
    expect(page.locator("details.rebalance").filter(has_text="worker-2").first).to_be_attached()
    expect(page.get_by_role("row", name=re.compile(f"{TOPIC} 5 worker-"))).to_have_count(1)


def test_records_of_another_leader_are_shown(page: Page, cluster: Cluster) -> None:
    page.goto(f"{cluster.url(1)}/#/topic/{TOPIC}")
    leaders = {cluster.brokers.leader(TOPIC, index) for index in range(6)}
    assert len(leaders) > 1
    page.get_by_label("From offset").fill("0")
    shown = set()
    for index in range(6):
        page.locator("select[name=partition]").select_option(str(index))
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_text(f"are in partition {index}.")).to_be_visible()
        if page.get_by_role("region", name="Records of partition").count():
            shown.add(cluster.brokers.leader(TOPIC, index))
    assert len(shown) > 1


def test_a_broker_that_dies_disappears_and_its_groups_go_on(page: Page, mortal_cluster: Cluster) -> None:
    cluster = mortal_cluster
    dying = cluster.coordinator()
    page.goto(f"{cluster.url(cluster.others()[0])}/#/")
    table = page.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(4, timeout=PATIENCE_SECONDS * 1000)
    cluster.run(cluster.brokers.crash(dying))
    expect(table.get_by_role("row")).to_have_count(3, timeout=PATIENCE_SECONDS * 1000)
    page.goto(f"{cluster.url(next(iter(cluster.brokers.by_id)))}/#/group/{GROUP}")
    members = page.get_by_role("region", name="Members and the partitions")
    expect(members.get_by_role("row")).to_have_count(3, timeout=PATIENCE_SECONDS * 1000)

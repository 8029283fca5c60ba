"""The console's pages of clients that push their metrics, with an unmodified librdkafka that does."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect
from tests.browser.conftest import Served, violations_of_themes
from tests.interop.kit import until

from rota.client import Admin, AdminConfig, ConfigResource, ResourceType

CLIENT = "<b>app-1</b>"
PATHS = ["#/clients", "client"]


@pytest.fixture(scope="module", autouse=True)
def work(served: Served) -> Iterator[None]:
    """A producer that pushes ten times a second. It has pushed: an open page asks again only every five seconds."""

    async def subscribe() -> None:
        configs = {"metrics": "org.apache.kafka.producer.", "interval.ms": "100"}
        async with Admin(AdminConfig(bootstrap_servers=served.address)) as admin:
            await admin.alter_configs({ConfigResource(ResourceType.CLIENT_METRICS, "all"): configs})

    served.members.run(subscribe())
    producer = Producer({"bootstrap.servers": served.address, "client.id": CLIENT})
    is_over = threading.Event()

    def poll() -> None:
        while not is_over.is_set():
            producer.poll(0.1)

    polling = threading.Thread(target=poll)
    polling.start()
    try:
        until(lambda: pushes(served), "the first push")
        yield
    finally:
        is_over.set()
        polling.join()


def pushes(served: Served) -> int:
    """How many pushes the broker has had."""
    with urllib.request.urlopen(f"{served.url}/api/client-metrics") as answer:
        return int(json.load(answer)["pushes"])


def opened(page: Page, served: Served, path: str) -> Page:
    """The page of all clients, or with `client` that of the one that pushes, once it has pushed."""
    page.goto(f"{served.url}/#/clients")
    row = page.get_by_role("row", name=re.compile("rdkafka.*UTC"))
    expect(row).to_be_visible()
    if path == "client":
        row.get_by_role("link").click()
        expect(page.get_by_role("row", name=re.compile("org.apache.kafka.producer")).first).to_be_visible()
    return page


def test_a_client_that_pushes_is_shown_with_its_subscription(page: Page, served: Served) -> None:
    opened(page, served, "#/clients")
    expect(page.get_by_role("region", name="Clients that asked")).to_contain_text(CLIENT)  # as text
    expect(page.get_by_role("row", name="all interval.ms 100")).to_be_visible()
    expect(page.locator("nav a[aria-current]")).to_have_text("Clients")
    assert page.locator("main b", has_text="app-1").count() == 0


def test_the_values_of_its_last_push_are_shown(page: Page, served: Served) -> None:
    opened(page, served, "client")
    expect(page.get_by_text("Pushed at")).to_be_visible()
    cells = page.get_by_role("row", name=re.compile("connection.creation.total")).get_by_role("cell")
    expect(cells.first).to_have_text("org.apache.kafka.producer.connection.creation.total")
    expect(cells.nth(2)).to_have_text(re.compile(r"^\d+$"))  # since the push before


def test_a_client_that_is_not_known_says_so(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/#/client/AAAAAAAAAAAAAAAAAAAAAA")
    expect(page.get_by_role("alert")).to_contain_text("knows no client instance")


@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing_wrong(page: Page, served: Served, path: str) -> None:
    opened(page, served, path)
    assert violations_of_themes(page) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_narrow_screen_scrolls_in_one_direction(page: Page, served: Served, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    opened(page, served, path)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

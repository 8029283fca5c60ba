"""The pictures of docs/CONSOLE.md, taken in the browser. `make docs` keeps them; the gate only takes them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Served, broker_process

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PICTURE_BYTES_MAX = 200_000
PICTURES = {
    "console-cluster": ("#/", "light", 520),
    "console-topic": ("#/topic/orders", "light", 900),
    "console-groups": ("#/groups", "dark", 420),
    "console-group": ("#/group/billing", "light", 1150),
}


@pytest.fixture(scope="module")
def shown() -> Iterator[Served]:
    """A broker whose groups have something to show."""
    with broker_process() as served:
        members = served.members
        members.create("orders", 6)
        for number in range(30):
            members.produce("orders", b'{"order": %d, "items": ["book"]}' % number, key=b"customer-%d" % (number % 7))
        for name in ("worker-1", "worker-2", "worker-3"):
            members.join("billing", name, "orders")
            time.sleep(float(os.environ.get("ROTA_PICTURE_SECONDS", "0")))  # so that the drawing has room
        members.leave("worker-2")
        members.join("shipping", "packer-1", "orders")
        time.sleep(float(os.environ.get("ROTA_PICTURE_SECONDS", "0")))
        yield served


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_taken(page: Page, shown: Served, tmp_path: Path, name: str) -> None:
    path, theme, height = PICTURES[name]
    folder = IMAGES if os.environ.get("ROTA_PICTURE_SECONDS") else tmp_path
    folder.mkdir(exist_ok=True)
    page.set_viewport_size({"width": 1100, "height": height})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.goto(f"{shown.url}/{path}")
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("table").first).to_be_visible()
    page.screenshot(path=folder / f"{name}.png")
    assert (folder / f"{name}.png").stat().st_size < PICTURE_BYTES_MAX

"""A broker process with a console, real clients, and a headless Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.browser.members import Members

# the shell draws no window of its own: a test takes two thirds of the time
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
READY_SECONDS = 30
AXE = Path(__file__).with_name("axe-core") / "axe.min.js"


@dataclass
class Served:
    """A broker process: the address for Kafka's clients, the URL of its console, and its members."""

    address: str
    url: str
    members: Members


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with broker_process() as found:
        yield found


class broker_process:  # noqa: N801  # it reads as a function: `with broker_process(...) as served`
    """`rota serve` with a console, in memory; `settings` are properties."""

    def __init__(self, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        named = {"rota.http.listener": "127.0.0.1:0", "offsets.topic.num.partitions": "4", **named}
        self._properties = "".join(f"{name}={value}\n" for name, value in named.items())

    def __enter__(self) -> Served:
        command = [sys.executable, "-m", "rota.coordinator", "serve", "--memory", "--preset", "dev"]
        self._config = tempfile.NamedTemporaryFile("w", suffix=".properties")  # a password is no argument
        self._config.write(self._properties)
        self._config.flush()
        command += ["--listen", "127.0.0.1:0", "--log-format", "json", "--config", self._config.name]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout is not None
        found: dict[str, str] = {}
        for line in self._process.stdout:
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("event") == "listening":
                found["address"] = f"{entry['host']}:{entry['port']}"
            if entry.get("event") == "console":
                found["url"] = entry["url"].rstrip("/")
                break
        assert set(found) == {"address", "url"}, found
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()
        self._members = Members(found["address"])
        return Served(found["address"], found["url"], self._members)

    def __exit__(self, *_: object) -> None:
        self._members.stop()
        self._process.terminate()
        self._process.wait(READY_SECONDS)
        self._config.close()
        self._reader.join(READY_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Closed with its file: Playwright's event loop runs in this thread, where tests of other files need their own."""
    if CHROMIUM is None:
        if os.environ.get("ROTA_CI"):
            pytest.fail("chromium is not installed: the console is not tested")
        pytest.skip("chromium is not installed: the console is not tested")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page on which no script fails and nothing breaks the content policy."""
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda message: wrong.append(message.text) if "Content Security Policy" in message.text else None
    )
    yield page
    assert wrong == []


def violations(page: Page) -> list[str]:
    """What axe finds wrong: WCAG 2.1, A and AA, and its best practices."""
    page.evaluate(AXE.read_text())  # from outside of the page, so that its content policy does not matter
    return found_by_axe(page)


def violations_of_themes(page: Page) -> list[str]:
    """The same in light and in dark: style.css alone knows the theme, so that its colours alone differ."""
    page.emulate_media(color_scheme="light")
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    return found + found_by_axe(page, {"runOnly": ["color-contrast", "link-in-text-block"]})


def found_by_axe(page: Page, options: dict[str, list[str]] | None = None) -> list[str]:
    given = {"resultTypes": ["violations"], **(options or {})}
    found = page.evaluate("options => axe.run(document, options)", given)
    return [f"{each['id']}: {node['html']}" for each in found["violations"] for node in each["nodes"]]

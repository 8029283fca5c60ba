"""The documentation as a site: it builds without a warning, and its pages load nothing from another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")
BUILD_S_MAX = 200

# a proxy that refuses every connection: what wanted the internet would fail
NO_INTERNET = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # without --quiet, which hides warnings from --strict
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, **NO_INTERNET, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


def test_every_page_of_docs_is_in_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).exists()] == []


def test_changes_and_figures_are_pages(site: Path) -> None:
    assert "Changes that users notice" in (site / "CHANGELOG.html").read_text()
    assert "Apache Kafka" in (site / "FIGURES.html").read_text()


def test_the_gallery_is_in_the_site(site: Path) -> None:
    copied = {path.name for path in (site / "source" / "tests" / "gallery").glob("test_*.py")}
    assert copied == {path.name for path in (ROOT / "tests" / "gallery").glob("test_*.py")}


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert LOADED.findall(re.sub(r"<link rel=\"?canonical[^>]*>", "", page.read_text())) == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text()), style


def test_the_search_finds_a_property(site: Path) -> None:
    assert "rota.http.listener" in (site / "search" / "search_index.json").read_text()

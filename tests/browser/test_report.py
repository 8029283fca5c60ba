"""The report of group_activity in a browser: it loads nothing, is light or dark, and shows names as text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser.conftest import violations
from tests.unit.spark_connector.pipelines.activity_tables import HOSTILE, write_tables

from rota.spark_connector.pipelines.report import main


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Two groups in ten windows; `billing` has three generations."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        if os.environ.get("ROTA_CI"):
            pytest.fail("in CI nothing is skipped: vl-convert-python is missing")
        pytest.skip("vl-convert-python is not installed: the report is not tested")

    write_tables(tmp_path)
    file = tmp_path / "report.html"
    assert main([str(tmp_path), str(file), "--title", "Our <groups>"]) == 0
    return file


def test_the_report_shows_lag_rebalances_partitions_and_members(report: Path, page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(report.as_uri())
    root = page.locator(":root[data-drawn=light]")
    expect(root).to_have_count(1)
    expect(page).to_have_title("Our <groups>")
    expect(page.locator(".mark-rule.role-mark line")).to_have_count(3)
    expect(page.locator(".mark-rect.role-mark path")).to_have_count(30 + 4)  # the heat map, and the bars of members
    page.locator(".mark-rule.role-mark line").nth(1).hover(force=True)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("b joined")
    assert requests == [report.as_uri()]
    if folder := os.environ.get("ROTA_REPORT_PICTURE"):
        page.screenshot(path=folder, full_page=True)
    page.mouse.move(0, 0)
    expect(page.locator("#vg-tooltip-element.visible")).to_have_count(0)
    page.locator("select").select_option(HOSTILE)
    expect(page.locator(".mark-rule.role-mark line")).to_have_count(0)
    assert violations(page) == []


def test_the_report_is_dark_where_the_system_is_and_a_button_changes_it(report: Path, context: BrowserContext) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme="dark")
    page.goto(report.as_uri())
    expect(page.locator(":root[data-drawn=dark]")).to_have_count(1)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("select").select_option(HOSTILE)
    page.get_by_role("button", name="Dark or light").click()
    expect(page.locator(":root[data-drawn=light]")).to_have_count(1)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    expect(page.locator("select")).to_have_value(HOSTILE)
